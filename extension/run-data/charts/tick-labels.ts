// The labels of an axis' ticks. Labels are as short as possible; if two ticks would have the same label, as on a zoomed
// axis, all labels show as many digits as the distance between the ticks needs.
import { minimum } from '../../common/lists';
import { minus } from '../../common/numbers';
import { formatTick, type Unit } from '../../common/format-values';
import { tickOfX } from './format-x';
import type { XAxis } from './format-x';

/** Returns the labels of ticks on the y axis, each different. */
export function labelsOfY(ticks: readonly number[], unit: Unit): string[] {
  const short = ticks.map(value => formatTick(value, unit));
  if (areDistinct(short)) return short;
  const [factor, suffix] = unit === 'share' ? [100, ' %'] : [1, unit === 'seconds' ? ' s' : ''];
  return exact(ticks.map(value => value * factor)).map(text => text + suffix);
}

/** Returns the labels of ticks on the x axis, each different. */
export function labelsOfX(ticks: readonly number[], axis: XAxis): string[] {
  const short = ticks.map(value => tickOfX(value, axis));
  if (areDistinct(short)) return short;
  return axis === 'time' ? clocks(ticks) : exact(ticks);
}

const areDistinct = (labels: readonly string[]): boolean => new Set(labels).size === labels.length;

/** Formats numbers with the digits that tell them apart. */
function exact(values: readonly number[]): string[] {
  const gaps = values.slice(1).map((value, i) => Math.abs(value - values[i]));
  const gap = minimum(
    gaps.filter(size => size > 0),
    Infinity,
  );
  const digits = Number.isFinite(gap) ? Math.max(0, Math.min(15, 1 - Math.floor(Math.log10(gap)))) : 0;
  return values.map(value => {
    const text = Math.abs(value).toFixed(digits);
    const short = digits > 0 ? text.replace(/\.?0+$/, '') : text;
    return (value < 0 && Number(short) !== 0 ? minus : '') + short;
  });
}

/** Formats seconds as `h:mm:ss`, with decimals if the ticks are less than a second apart. */
function clocks(ticks: readonly number[]): string[] {
  const two = (value: number): string => String(value).padStart(2, '0');
  const isWhole = ticks.every(value => Number.isInteger(value));
  const seconds = exact(ticks.map(value => value % 60));
  return ticks.map((value, i) => {
    const whole = Math.floor(value);
    const rest = isWhole ? two(whole % 60) : seconds[i];
    return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${rest}`;
  });
}
