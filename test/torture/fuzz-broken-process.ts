// The process of the parsers that break each promise.
import { brokenTargets } from './fuzz-broken';
import { serve } from './fuzz-sitting';

serve(brokenTargets);
