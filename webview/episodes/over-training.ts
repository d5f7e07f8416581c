// When one prompt was played over training, which shows how the reasoning changed. Pure.
import type { EpisodeTable } from '../../extension/run-data/episode-table';

/** The rows of a prompt at one step. */
export interface Occurrence {
  step: number;
  mode: 'train' | 'val';
  rows: number[];
}

/** Groups rows, which are sorted by step, by step and kind. */
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

/** The representative row of an occurrence: the same member as `row`, else the first. */
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
