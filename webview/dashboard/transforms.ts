// What is told of a curve in numbers. Pure functions.
import type { Curve } from './curve';

/** Newest value minus the newest one at least ten steps before it; NaN when there is no such pair. */
export function changeOverTenSteps(steps: Float64Array, curve: Curve): number {
  const last = curve.lastFinite();
  if (last < 0) return Number.NaN;
  let before = curve.lastFinite(last - 1);
  while (before >= 0 && steps[before] > steps[last] - 10) before = curve.lastFinite(before - 1);
  return before < 0 ? Number.NaN : curve.values[last] - curve.values[before];
}
