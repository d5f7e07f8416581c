// From a column to what is drawn of it: smoothing, gaps, and at most a few points a pixel. Pure functions on arrays; a chart of
// 100,000 steps costs a pass over the column and draws about a thousand points.

export interface Point {
  x: number;
  /** NaN breaks the line. */
  y: number;
}

/**
 * Exponential moving average over the finite values, with the start's bias taken out. The past fades with the rows between two
 * values, so that a metric of every tenth step is smoothed over the same span as its neighbours.
 * @param factor weight of the past one row on, 0 (off) … 0.99
 */
export function smooth(values: Float64Array, factor: number): Float64Array {
  if (factor <= 0) return values;
  const smoothed = new Float64Array(values.length).fill(Number.NaN);
  let mean = 0;
  let weight = 0;
  let last = 0;
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    const kept = factor ** Math.max(1, i - last);
    mean = mean * kept + values[i] * (1 - factor);
    weight = weight * kept + (1 - factor);
    smoothed[i] = mean / weight;
    last = i;
  }
  return smoothed;
}

/** How many rows apart the finite values usually are: the median spacing, 1 for a metric of every step. */
export function usualSpacing(values: Float64Array): number {
  const counts = new Map<number, number>();
  let total = 0;
  let last = -1;
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    if (last >= 0) {
      counts.set(i - last, (counts.get(i - last) ?? 0) + 1);
      total++;
    }
    last = i;
  }
  let seen = 0;
  for (const [spacing, count] of [...counts].sort(([a], [b]) => a - b)) {
    seen += count;
    if (seen * 2 >= total) return spacing;
  }
  return 1;
}

/**
 * The points to draw: of each of `buckets` equal parts of [from, to] its lowest and highest value in their order, so that no
 * spike is lost. A hole wider than one and a half usual spacings breaks the line (a value that was not finite), a metric that
 * comes every tenth step does not break at each.
 * @param xs growing, as long as `ys`
 */
export function linePoints(xs: Float64Array, ys: Float64Array, from: number, to: number, buckets: number): Point[] {
  const points: Point[] = [];
  const hole = usualSpacing(ys) * 1.5;
  const width = (to - from) / Math.max(1, buckets);
  const put = (index: number) => points.push({ x: xs[index], y: ys[index] });
  const few = countBetween(xs, from, to) <= buckets * 2;
  let bucket = -1;
  let low = -1;
  let high = -1;
  let last = -1;
  const flush = () => {
    if (low < 0) return;
    put(Math.min(low, high));
    if (low !== high) put(Math.max(low, high));
    low = high = -1;
  };
  for (let i = 0; i < ys.length; i++) {
    if (!Number.isFinite(ys[i]) || xs[i] < from || xs[i] > to) continue;
    if (last >= 0 && i - last > hole) {
      flush();
      points.push({ x: (xs[last] + xs[i]) / 2, y: Number.NaN });
    }
    last = i;
    if (few) {
      put(i);
      continue;
    }
    const here = Math.floor((xs[i] - from) / width);
    if (here !== bucket) {
      flush();
      bucket = here;
    }
    if (low < 0 || ys[i] < ys[low]) low = i;
    if (high < 0 || ys[i] > ys[high]) high = i;
  }
  flush();
  return points;
}

/** Lowest and highest finite value over all columns, null when there is none. */
export function extent(columns: readonly Float64Array[]): { low: number; high: number } | null {
  let low = Infinity;
  let high = -Infinity;
  for (const column of columns) {
    for (const value of column) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? { low, high } : null;
}

/** The row of the newest finite value at or before `row`, −1 when there is none. */
export function lastFinite(values: Float64Array, row = values.length - 1): number {
  let at = Math.min(row, values.length - 1);
  while (at >= 0 && !Number.isFinite(values[at])) at--;
  return at;
}

/** Newest value minus the newest one at least ten steps before it; NaN when there is no such pair. */
export function changeOverTenSteps(steps: Float64Array, values: Float64Array): number {
  const last = lastFinite(values);
  if (last < 0) return Number.NaN;
  let before = last - 1;
  while (before >= 0 && (steps[before] > steps[last] - 10 || !Number.isFinite(values[before]))) before--;
  return before < 0 ? Number.NaN : values[last] - values[before];
}

function countBetween(xs: Float64Array, from: number, to: number): number {
  let count = 0;
  for (const x of xs) if (x >= from && x <= to) count++;
  return count;
}
