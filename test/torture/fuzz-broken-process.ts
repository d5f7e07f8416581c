// Fuzzer process with the parsers of fuzz-broken.ts, which violate each guarantee.
import { brokenTargets } from './fuzz-broken';
import { serve } from './fuzz-session';

serve(brokenTargets);
