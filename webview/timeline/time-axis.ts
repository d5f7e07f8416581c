// Computes the ticks of a time axis. Their distance is a round number of microseconds, and all labels of an axis have
// the same unit.

export interface Tick {
  us: number;
  label: string;
}

/** Returns the ticks in [from, to]. Their distance is chosen so that there are at most `most` + 1 ticks. */
export function timeTicks(from: number, to: number, most: number): Tick[] {
  const rough = Math.max(1e-3, (to - from) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= rough)!;
  const ticks: Tick[] = [];
  for (let k = Math.ceil(from / step); k * step <= to; k++)
    ticks.push({ us: k * step, label: timeLabel(k * step, step) });
  return ticks;
}

/**
 * Formats the time `us` since the start of the step, with enough digits to distinguish ticks that are `step`
 * microseconds apart.
 */
function timeLabel(us: number, step: number): string {
  if (us === 0) return '0';
  const [unit, size] = step >= 1e5 ? ['s', 1e6] : step >= 100 ? ['ms', 1e3] : ['µs', 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(us / size).toFixed(digits)} ${unit}`;
}

/** Formats a duration in microseconds with three significant digits. */
export function formatUs(us: number): string {
  const [unit, size] = us >= 1e6 ? ['s', 1e6] : us >= 1e3 ? ['ms', 1e3] : ['µs', 1];
  const value = us / size;
  return `${value >= 100 || size === 1 ? value.toFixed(0) : value.toPrecision(3)} ${unit}`;
}
