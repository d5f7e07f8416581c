// Moving through the list by training steps. Pure functions.
import type { EpisodesState } from '../state';

/** Returns the step at the top of the list; null if the list is empty or not grouped by step. */
export function stepAtTop({ data, matches, settings, top }: EpisodesState): {
  step: number;
  mode: 'train' | 'val';
} | null {
  const row = settings.sort || !matches ? -1 : matches.listing.rowAt(top);
  return row < 0 ? null : data.table.row(row);
}

/**
 * Returns the index of the list item at which another training step begins: the step before (−1) or after (1) the
 * topmost visible step. Returns null if there is no such step.
 */
export function indexOfStep({ data: { table }, matches, settings, top }: EpisodesState, by: -1 | 1): number | null {
  const first = matches?.listing.rowAt(top) ?? -1;
  if (!matches || first < 0 || settings.sort) return null;
  const { listing } = matches;
  const { rows } = listing;
  const [step, mode] = [table.column('step'), table.column('mode')];
  const at = rows.indexOf(first);
  const other = (row: number, than: number): boolean => step[row] !== step[than] || mode[row] !== mode[than];
  // The newest rows come first, so later steps are above.
  let to = rows.findIndex((row, i) => i > at && other(row, first));
  if (by > 0) {
    const above = rows.findLast((row, i) => i < at && other(row, first));
    to = above === undefined ? 0 : rows.findIndex(row => !other(row, above));
  }
  // Minus 2, because the headings of the step and of its first group precede the step's first episode.
  return to < 0 ? null : Math.max(0, listing.find(table.row(rows[to]).id) - 2);
}
