// The process in which the fuzzer runs the product's parsers (started by fuzz-watch.ts).
import { serve } from './fuzz-sitting';
import { targets } from './fuzz-targets';

serve(targets);
