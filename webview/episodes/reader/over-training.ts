// Finds the episodes of the same prompt at different steps, which show how the reasoning changes over training. Pure
// functions.
import type { EpisodeTable } from '../../../extension/run-data/episode-table';

/**
 * One occurrence of a prompt: all its episodes in the same step and mode. `rows` are the rows of these episodes in the
 * table.
 */
export interface Occurrence {
  step: number;
  mode: 'train' | 'val';
  rows: number[];
}

/** Groups rows by step and mode; `rows` must be sorted by step. */
export function occurrences(table: EpisodeTable, rows: readonly number[]): Occurrence[] {
  const found: Occurrence[] = [];
  for (const row of rows) {
    const { step, mode } = table.row(row);
    const last = found.at(-1);
    if (last?.step === step && last.mode === mode) last.rows.push(row);
    else found.push({ step, mode, rows: [row] });
  }
  return found;
}

/**
 * Chooses from an occurrence the row that the reader compares with `row`. This is the row with the same group and
 * member. If there is no such row, it is the row with the same member; if there is no such row either, the first row.
 */
export function counterpart(table: EpisodeTable, { rows }: Occurrence, row: number): number {
  const [group, member] = [table.column('group'), table.column('member')];
  return (
    rows.find(other => group[other] === group[row] && member[other] === member[row]) ??
    rows.find(other => member[other] === member[row]) ??
    rows[0]
  );
}

export const occurrenceName = ({ step, mode }: Pick<Occurrence, 'step' | 'mode'>): string =>
  mode === 'val' ? `validation ${step}` : `step ${step}`;
