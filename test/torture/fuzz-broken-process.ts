// Fuzzer process for parsers that violate each guarantee.
import { brokenTargets } from './fuzz-broken';
import { serve } from './fuzz-session';

serve(brokenTargets);
