// The change of a curve over the last ten steps. Pure.
import type { Curve } from '../../../extension/run-data/charts/curve';

/**
 * Returns the difference between the latest value and an earlier value. The earlier value is the newest one that is at
 * least ten steps older. Returns NaN if there is none.
 */
export function changeOverTenSteps(steps: Float64Array, curve: Curve): number {
  const last = curve.lastFinite();
  if (last < 0) return Number.NaN;
  let before = curve.lastFinite(last - 1);
  while (before >= 0 && steps[before] > steps[last] - 10) before = curve.lastFinite(before - 1);
  return before < 0 ? Number.NaN : curve.values[last] - curve.values[before];
}
