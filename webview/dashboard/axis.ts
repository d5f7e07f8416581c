// Ranges of axes that grow in steps, so that nothing jumps while data arrive: a range is kept as long as the data fit it and fill
// a third of it.

export interface Range {
  min: number;
  max: number;
  /** Distance of the ticks. */
  step: number;
}

/** A round range around [low, high] with two to five ticks' distance; `previous` is kept where it still serves. */
export function valueRange(low: number, high: number, previous: Range | null): Range {
  if (previous && low >= previous.min && high <= previous.max && high - low >= (previous.max - previous.min) / 3)
    return previous;
  const size = Math.max(Math.abs(low), Math.abs(high));
  // A constant still gets a range that has it in the middle, and one wide enough for floating point.
  const flat = high - low <= size * 1e-9;
  const pad = flat ? (size === 0 ? 0.5 : size * 0.5) : 0;
  let [from, to] = [low - pad, high + pad];
  // A baseline at zero where zero is near tells more than a tight range.
  if (from > 0 && from < to * 0.4) from = 0;
  if (to < 0 && to > from * 0.4) to = 0;
  const step = roundUp((to - from) / 4, [1, 2, 2.5, 5]);
  const [first, last] = [Math.floor(from / step + 1e-9), Math.ceil(to / step - 1e-9)];
  return { min: clean(first * step, step), max: clean(Math.max(last, first + 1) * step, step), step };
}

/** Shares: nought to one, whatever the data. */
export const shareRange: Range = { min: 0, max: 1, step: 0.5 };

/** From zero to a round number at or above `last`, at most `limit` (the run's planned length) once that is near. */
export function progressRange(last: number, limit: number | null): Range {
  const round = roundUp(Math.max(last, 1), [1, 1.2, 1.4, 1.6, 2, 3, 4, 5, 6, 8]);
  const max = limit !== null && limit >= last && limit <= Math.max(round, 10) ? limit : Math.max(round, 10);
  return { min: 0, max, step: max / 2 };
}

/** Round values inside a range: every `step`, or every other one where there is little room. */
export function ticksOf({ min, max, step }: Range, roomy: boolean): number[] {
  const count = Math.round((max - min) / step);
  const every = roomy || count <= 3 ? 1 : Math.ceil(count / 3);
  const first = Math.ceil(min / step - 1e-9);
  const ticks: number[] = [];
  for (let i = first; i * step <= max + step * 1e-9; i++) if (i % every === 0) ticks.push(clean(i * step, step));
  return ticks;
}

/** Ends and middle of a progress axis, or round values between where there is room. */
export function progressTicks(range: Range, roomy: boolean): number[] {
  if (!roomy) return [range.min, Math.round(range.step), range.max];
  return ticksOf({ ...range, step: roundUp(range.max / 8, [1, 2, 2.5, 5]) }, true);
}

/** The smallest number `multiple · 10ⁿ` at or above `value` (positive). */
function roundUp(value: number, multiples: readonly number[]): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const multiple of multiples) if (multiple * power >= value * (1 - 1e-9)) return multiple * power;
  return 10 * power;
}

/** Takes away what floating point left behind the tick's own digits. */
function clean(value: number, step: number): number {
  const digits = Math.max(0, 2 - Math.floor(Math.log10(step)));
  return digits > 15 ? value : Number(value.toFixed(Math.min(digits, 20)));
}
