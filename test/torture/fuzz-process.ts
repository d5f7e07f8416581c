// The process in which the fuzzer runs the product's parsers; started by fuzz-watch.ts.
import { serve } from './fuzz-session';
import { targets } from './fuzz-targets';

serve(targets);
