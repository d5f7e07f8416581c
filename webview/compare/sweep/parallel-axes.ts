// The axes of parallel coordinates, and the ranges that the user marks on them. Positions on an axis are shares of its
// length, 0 (bottom) to 1 (top). Pure functions.
import { maximum, minimum } from '../../../extension/common/lists';
import { formatNumber } from '../../shared/format';
import type { KeyColumn } from './key-importance';

export interface ParallelAxis {
  /** Key of the configuration or of the metric. */
  readonly key: string;
  readonly title: string;
  /** Position of each run. */
  readonly shares: readonly number[];
  readonly ticks: readonly { readonly share: number; readonly label: string }[];
}

/** A marked range of an axis, with both ends. */
export interface Brush {
  readonly low: number;
  readonly high: number;
}

/** Factor between the lowest and the highest value from which positive numbers have a logarithmic axis. */
const logFactor = 20;
const mostLevels = 6;
const mostNames = 8;

/** Returns the axis of a key: numbers, or evenly spaced names. */
export function keyAxis({ key, values, names }: KeyColumn, title: string): ParallelAxis {
  if (!names) return numberAxis(key, title, values, configured);
  const at = (index: number): number => (names.length === 1 ? 0.5 : index / (names.length - 1));
  const every = Math.ceil(names.length / mostNames);
  const ticks = names.map((label, i) => ({ share: at(i), label })).filter((_, i) => i % every === 0);
  return { key, title, shares: values.map(at), ticks };
}

/** Formats a number as it is written in a configuration, unless it is long. */
const configured = (value: number): string => (String(value).length <= 7 ? String(value) : formatNumber(value));

/** Returns the axis of numbers; logarithmic if all are positive and span a factor of 20. */
export function numberAxis(
  key: string,
  title: string,
  values: readonly number[],
  format: (value: number) => string,
): ParallelAxis {
  const [low, high] = [minimum(values), maximum(values)];
  const on = low > 0 && high / low >= logFactor ? Math.log : (value: number): number => value;
  const at = (value: number): number => (high === low ? 0.5 : (on(value) - on(low)) / (on(high) - on(low)));
  const levels = [...new Set(values)].sort((a, b) => a - b);
  const marked = levels.length <= mostLevels ? levels : [low, high];
  // Labels of neighbouring values must not overlap.
  const apart = marked.filter((value, i) => i === 0 || i === marked.length - 1 || at(value) - at(marked[i - 1]) > 0.07);
  return {
    key,
    title,
    shares: values.map(at),
    ticks: apart.map(value => ({ share: at(value), label: format(value) })),
  };
}

/** Whether a position is within a range; without a range, every position is. */
export const isWithin = (brush: Brush | undefined, share: number): boolean =>
  brush === undefined || (share >= brush.low && share <= brush.high);

/** Returns the indices of the runs that are within the ranges of all axes. */
export function runsWithin(axes: readonly ParallelAxis[], brushes: ReadonlyMap<string, Brush>): number[] {
  return [...(axes[0]?.shares.keys() ?? [])].filter(run =>
    axes.every(({ key, shares }) => isWithin(brushes.get(key), shares[run])),
  );
}

/** Returns the range between two positions of a drag; null for a click. */
export function draggedBrush(from: number, to: number): Brush | null {
  const [low, high] = [Math.max(0, Math.min(from, to)), Math.min(1, Math.max(from, to))];
  return high - low < 0.02 ? null : { low, high };
}

/**
 * Returns the range after an arrow key: the next value of the axis above (`direction` 1) or below (−1) the range; with
 * `extend`, the range is extended to this value. Without a range, the key starts at the end from which it moves away.
 */
export function steppedBrush(
  shares: readonly number[],
  brush: Brush | undefined,
  direction: 1 | -1,
  extend: boolean,
): Brush {
  const levels = [...new Set(shares)].sort((a, b) => a - b);
  const inside = brush ? levels.filter(level => isWithin(brush, level)) : [];
  const first = levels.at(direction === 1 ? 0 : -1) ?? 0.5;
  if (inside.length === 0) return { low: first, high: first };
  const [bottom, top] = [inside[0], inside.at(-1)!];
  const next =
    direction === 1 ? (levels.find(level => level > top) ?? top) : (levels.findLast(level => level < bottom) ?? bottom);
  return extend ? { low: Math.min(bottom, next), high: Math.max(top, next) } : { low: next, high: next };
}
