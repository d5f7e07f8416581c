// The process in which the product's parsers are given their inputs (fuzz-watch.ts starts it).
import { serve } from './fuzz-sitting';
import { targets } from './fuzz-targets';

serve(targets);
