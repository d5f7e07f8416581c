// Ranges of axes that grow in steps, so that nothing jumps while data arrive: a range is kept as long as the data fit it and fill
// a third of it.
import { appendAll } from '../../extension/protocol/lists';

export interface Range {
  min: number;
  max: number;
  /** Distance of the ticks. */
  step: number;
}

/** How far along a range a value is, 0…1; of a logarithmic range by its logarithm. */
export function placeOf(value: number, { min, max }: Range, log = false): number {
  return log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
}

/** A range of whole powers of ten around positive values; `previous` is kept while they fit it and fill a third of its decades. */
export function logRange(low: number, high: number, previous: Range | null): Range {
  const decades = (from: number, to: number) => Math.log10(to / from);
  if (previous && previous.min > 0 && low >= previous.min && high <= previous.max) {
    if (decades(low, high) >= decades(previous.min, previous.max) / 3 || previous.max / previous.min <= 10.001)
      return previous;
  }
  const min = Number(`1e${Math.floor(Math.log10(low) + 1e-9)}`); // exact, which a power need not be
  const max = Number(`1e${Math.ceil(Math.log10(high) - 1e-9)}`);
  return { min, max: max > min ? max : min * 10, step: 0 };
}

/** Powers of ten inside a logarithmic range, thinned to few; with 2 and 5 between them where it has one decade or two. */
export function logTicks({ min, max }: Range, roomy: boolean): number[] {
  const [first, last] = [Math.round(Math.log10(min)), Math.round(Math.log10(max))];
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
  return ticks;
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
  const round = roundUp(Math.max(last, 1), [1, 1.2, 1.4, 1.6, 1.8, 2, 2.4, 2.8, 3.2, 3.6, 4, 5, 6, 7, 8, 9]);
  const near = Math.max(round, last * 1.3, 10);
  const max = limit !== null && limit >= last && limit <= near ? limit : Math.max(round, 10);
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

/** A part of a progress axis, as the user chose it. */
export const zoomRange = (from: number, to: number): Range => ({
  min: from,
  max: to,
  step: roundUp((to - from) / 4, [1, 2, 2.5, 5]),
});

/** Ends and middle of a progress axis, or round values between where there is room or a part is shown. */
export function progressTicks(range: Range, roomy: boolean): number[] {
  if (!roomy && range.min === 0 && range.step * 2 === range.max) return [0, Math.round(range.step), range.max];
  return ticksOf({ ...range, step: roundUp((range.max - range.min) / (roomy ? 8 : 2.5), [1, 2, 2.5, 5]) }, true);
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
