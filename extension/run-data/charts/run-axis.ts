// Positions of runs on the x axis: training steps, tokens processed so far, or seconds of run time. Tokens and seconds
// come from metric columns. Pure functions.
import { formatDuration } from '../../common/format-values';
import { formatNumber } from '../../common/numbers';
import type { RunCurve } from './group-curves';

export type CompareAxis = 'step' | 'tokens' | 'time';

/** The metric from which the positions of an axis are computed; null for steps. */
export const axisKeys: Record<CompareAxis, string | null> = {
  step: null,
  tokens: 'perf/total_num_tokens',
  time: 'wall_s',
};

/**
 * Returns the positions of a run's rows. `curve` is the run's curve of the axis's metric. Tokens are summed over the
 * rows; a row without a value stays at the position of the row before.
 */
export function positionsOf(axis: CompareAxis, { steps, values }: RunCurve): Float64Array {
  if (axis === 'step') return steps;
  let at = 0;
  return values.map(value => {
    if (Number.isFinite(value)) at = axis === 'tokens' ? at + value : Math.max(at, value);
    return at;
  });
}

/** Formats a position for the crosshair. */
export function formatPosition(x: number, axis: CompareAxis): string {
  if (axis === 'time') return formatDuration(x);
  return axis === 'tokens' ? `${formatNumber(x)} tokens` : String(x);
}
