// Coordinates of a run's diagnoses in the plane of H(Z|X) and I(X;Z), in a unit square with the origin at the upper
// left. The axis of H(Z|X) has a square-root scale, because collapses happen near zero.
import { regimeRule } from '../../../extension/run-data/regimes';
import { valueRange, type Range } from '../../../extension/run-data/charts/axis';
import type { PathPoint } from '../../../extension/run-data/collapse-path';

/** A path with its coordinates, computed once per path. */
export interface Layout {
  path: readonly PathPoint[];
  scales: Scales;
  /** Coordinates (x, y) of each point of the path, 0 to 1. */
  spots: [number, number][];
}

export interface Scales {
  xMax: number;
  range: Range;
  /** Converts an entropy H(Z|X) to the x coordinate in the unit square, whose origin is at the upper left. */
  x(entropy: number): number;
  y(information: number): number;
}

export function layoutOf(path: readonly PathPoint[]): Layout {
  const scales = scalesOf(path);
  const spots = path.map(({ entropy, information }): [number, number] => [
    scales.x(entropy.value),
    scales.y(information.value),
  ]);
  return { path, scales, spots };
}

function scalesOf(path: readonly PathPoint[]): Scales {
  let [low, high] = [0, 0.1];
  let xMax = 4 * regimeRule.entropy;
  for (const { entropy, information, judgement } of path) {
    const level = 1.6 * judgement.thresholds.information;
    for (const x of [entropy.value, entropy.high]) if (x > xMax && Number.isFinite(x)) xMax = x;
    for (const y of [information.value, information.low, information.high, level]) {
      if (y < low && Number.isFinite(y)) low = y;
      if (y > high && Number.isFinite(y)) high = y;
    }
  }
  [xMax, high] = [xMax * 1.04, high * 1.04];
  return {
    xMax,
    range: { min: low, max: high, step: valueRange(low, high, null).step },
    x: entropy => Math.sqrt(Math.max(0, Math.min(entropy, xMax)) / xMax),
    y: information => 1 - (information - low) / (high - low),
  };
}

/** Returns tick values of H(Z|X) whose labels do not overlap on the square-root scale. */
export const acrossTicks = (max: number): number[] =>
  [0, 0.05, 0.2, 0.5, 1, 2, 3, 5, 8, 12].filter(tick => tick <= max);

/**
 * Thresholds in the unit square. `y` is the threshold of I(X;Z). H(Z|X) has two thresholds: `above` applies above the
 * threshold of I(X;Z), and `below` applies below it.
 */
export interface ThresholdLines {
  above: number;
  below: number;
  y: number;
}

/** Returns the thresholds between the regimes for a diagnosis, as coordinates in the unit square. */
export const thresholdsOf = ({ judgement }: PathPoint, { x, y }: Scales): ThresholdLines => ({
  above: x(regimeRule.entropy),
  below: x(regimeRule.entropyAlone),
  y: y(judgement.thresholds.information),
});
