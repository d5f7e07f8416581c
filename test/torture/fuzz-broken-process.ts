// Fuzzer process for parsers that violate each guarantee.
import { brokenTargets } from './fuzz-broken';
import { serve } from './fuzz-sitting';

serve(brokenTargets);
