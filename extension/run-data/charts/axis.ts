// Computes axis ranges and ticks. A range is replaced only if the data no longer fits into it or fills less than a
// third of it, so that charts do not jump while data arrives.
import { appendAll } from '../../common/lists';

export interface Range {
  min: number;
  max: number;
  /** Distance between ticks. */
  step: number;
}

/**
 * Returns the relative position of a value in a range, from 0 to 1. If `log` is set, positions are computed on a
 * logarithmic scale.
 */
export function relativePosition(value: number, { min, max }: Range, log = false): number {
  return log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
}

/**
 * Returns a range that contains the positive values `low` and `high` and has integer powers of ten at both ends.
 * Returns `previous` if the values fit into it and fill at least a third of its decades.
 */
export function logRange(low: number, high: number, previous: Range | null): Range {
  const decades = (from: number, to: number) => Math.log10(to / from);
  if (previous && previous.min > 0 && low >= previous.min && high <= previous.max) {
    if (decades(low, high) >= decades(previous.min, previous.max) / 3 || previous.max / previous.min <= 10.001)
      return previous;
  }
  const min = Number(`1e${Math.floor(Math.log10(low) + 1e-9)}`); // exact; `10 ** n` has rounding errors
  const max = Number(`1e${Math.ceil(Math.log10(high) - 1e-9)}`);
  return { min, max: max > min ? max : min * 10, step: 0 };
}

/**
 * Returns the ticks of a logarithmic range: at most nine powers of ten if `roomy` is true, else at most four. A short
 * range has additional ticks. If `roomy` is true, a range of at most two decades also has ticks at 2 and 5 times its
 * powers of ten. If `roomy` is false, a range of one decade also has a tick at 3 times its lower power. Ticks outside
 * the range are left out.
 */
export function logTicks({ min, max }: Range, roomy: boolean): number[] {
  const [first, last] = [Math.floor(Math.log10(min) + 1e-9), Math.ceil(Math.log10(max) - 1e-9)];
  const every = Math.ceil((last - first) / (roomy ? 8 : 3));
  const ticks: number[] = [];
  for (let power = first; power <= last; power++) {
    if ((power - first) % Math.max(1, every) === 0) ticks.push(Number(`1e${power}`));
    if (last - first <= 2 && power < last)
      appendAll(
        ticks,
        (roomy ? [2, 5] : last - first === 1 ? [3] : []).map(n => Number(`${n}e${power}`)),
      );
  }
  return ticks.filter(tick => tick >= min * (1 - 1e-9) && tick <= max * (1 + 1e-9));
}

/**
 * Returns a rounded range around [low, high] with two to five tick intervals. Returns `previous` if the values fit into
 * it and fill at least a third of it.
 */
export function valueRange(low: number, high: number, previous: Range | null): Range {
  if (previous && low >= previous.min && high <= previous.max && high - low >= (previous.max - previous.min) / 3)
    return previous;
  const size = Math.max(Math.abs(low), Math.abs(high));
  // A constant value other than 0 gets a margin of half its magnitude on both sides; a range of width 0 has no ticks.
  const flat = high - low <= size * 1e-9;
  if (flat && size === 0) return { min: 0, max: 1, step: 0.5 }; // most metrics that stay at zero count something
  const pad = flat ? size * 0.5 : 0;
  let [from, to] = [low - pad, high + pad];
  // If the end closer to zero is less than 40 % of the other end, it is moved to zero.
  if (from > 0 && from < to * 0.4) from = 0;
  if (to < 0 && to > from * 0.4) to = 0;
  const step = roundUp((to - from) / 4, [1, 2, 2.5, 5]);
  const [first, last] = [Math.floor(from / step + 1e-9), Math.ceil(to / step - 1e-9)];
  return { min: clean(first * step, step), max: clean(Math.max(last, first + 1) * step, step), step };
}

/** The ends of an axis that the user has set; null for an end that follows the values. */
export interface Limits {
  readonly low: number | null;
  readonly high: number | null;
}

/**
 * Returns a range with the user's ends. An end that follows the values and would lie beyond the other end is moved: by
 * the length of the range, or by a power of ten if `log` is set. On a logarithmic axis, only positive ends apply.
 */
export function limitedRange(range: Range, limits: Limits, log = false): Range {
  const [low, high] = [limits.low, limits.high].map(end => (log && end !== null && end <= 0 ? null : end));
  if (low === null && high === null) return range;
  let [min, max] = [low ?? range.min, high ?? range.max];
  if (!(max > min)) {
    const length = range.max - range.min || 1;
    if (low !== null) max = log ? min * 10 : min + length;
    else min = log ? max / 10 : max - length;
  }
  return { min, max, step: log ? 0 : roundUp((max - min) / 4, [1, 2, 2.5, 5]) };
}

/** Fixed range of shares: 0 to 1. */
export const shareRange: Range = { min: 0, max: 1, step: 0.5 };

/**
 * Returns the range of a progress axis, from zero to a rounded number at or above `last`. If `last` is close to `limit`
 * (the run's planned length), the range ends at `limit`.
 */
export function progressRange(last: number, limit: number | null): Range {
  const round = roundUp(Math.max(last, 1), [1, 1.2, 1.4, 1.6, 1.8, 2, 2.4, 2.8, 3.2, 3.6, 4, 5, 6, 7, 8, 9]);
  const near = Math.max(round, last * 1.3, 10);
  const max = limit !== null && limit >= last && limit <= near ? limit : Math.max(round, 10);
  return { min: 0, max, step: max / 2 };
}

/**
 * Returns ticks at multiples of `step` inside a range, at least three. If `roomy` is false, some multiples are left
 * out, so that at most five ticks remain.
 */
export function ticksOf({ min, max, step }: Range, roomy: boolean): number[] {
  const count = Math.round((max - min) / step);
  let every = roomy ? 1 : Math.max(1, Math.ceil(count / 4));
  while (every > 1 && multiplesIn({ min, max }, step * every).length < 3) every--;
  return multiplesIn({ min, max }, step * every).map(value => clean(value, step));
}

/** Returns the multiples of `step` in a range. */
function multiplesIn({ min, max }: Pick<Range, 'min' | 'max'>, step: number): number[] {
  const [first, last] = [Math.ceil(min / step - 1e-9), Math.floor(max / step + 1e-9)];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
}

/** Returns the range of a progress axis that is zoomed to [`from`, `to`]. */
export const zoomRange = (from: number, to: number): Range => ({
  min: from,
  max: to,
  step: roundUp((to - from) / 4, [1, 2, 2.5, 5]),
});

/** Round distances in seconds, up to an hour. Above, distances are multiples of hours. */
const roundSeconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800];
const hour = 3600;

/**
 * Returns the ticks of a progress axis, at round values: at least three, or at least five if `roomy` is true. With
 * `isTime`, the range is in seconds and the values are round in seconds, minutes or hours.
 */
export function progressTicks(range: Range, roomy: boolean, isTime = false): number[] {
  const least = roomy ? 5 : 3;
  const length = range.max - range.min;
  if (!(length > 0)) return [range.min];
  for (let step = roundStep(length / (least - 1), isTime); ; step = roundStep(step * 0.9, isTime, true)) {
    const ticks = multiplesIn(range, step);
    if (ticks.length >= least) return ticks.map(value => clean(value, step));
  }
}

/** Returns the smallest round distance at or above `size`, or with `below` the largest at or below it. */
function roundStep(size: number, isTime: boolean, below = false): number {
  const among = (steps: readonly number[]): number | undefined =>
    below ? steps.findLast(step => step <= size * (1 + 1e-9)) : steps.find(step => step >= size * (1 - 1e-9));
  if (isTime && size >= 1 && size < hour * 0.95) return among([...roundSeconds, hour]) ?? hour;
  if (isTime && size >= hour * 0.95) return hour * roundStep(Math.max(1, size / hour), false, below);
  const power = 10 ** Math.floor(Math.log10(size * (1 + 1e-9)));
  // Steps and episodes are whole numbers, so 2.5 is no round distance, but 25 is.
  const steps = (power >= 10 ? [1, 2, 2.5, 5, 10] : [1, 2, 5, 10]).map(multiple => multiple * power);
  return among(steps) ?? power;
}

/** Returns the smallest number of the form `multiple · 10ⁿ` that is at least `value`. `value` must be positive. */
function roundUp(value: number, multiples: readonly number[]): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const multiple of multiples) if (multiple * power >= value * (1 - 1e-9)) return multiple * power;
  return 10 * power;
}

/** Rounds a tick to the digits of `step`, to remove floating-point noise. */
function clean(value: number, step: number): number {
  const digits = Math.max(0, 2 - Math.floor(Math.log10(step)));
  return digits > 15 ? value : Number(value.toFixed(Math.min(digits, 20)));
}
