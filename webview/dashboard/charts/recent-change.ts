// The change of a curve over the last ten steps. Pure.
import type { Curve } from '../../charts/curve';

/** The latest value minus the latest value that is at least ten steps older; NaN if there is no older value. */
export function changeOverTenSteps(steps: Float64Array, curve: Curve): number {
  const last = curve.lastFinite();
  if (last < 0) return Number.NaN;
  let before = curve.lastFinite(last - 1);
  while (before >= 0 && steps[before] > steps[last] - 10) before = curve.lastFinite(before - 1);
  return before < 0 ? Number.NaN : curve.values[last] - curve.values[before];
}
