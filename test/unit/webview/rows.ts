// Episode rows as a table, for tests of lists and filters.
import { indexColumns, indexLine } from '../../../extension/run-data/episode-index-line';
import type { IndexColumn } from '../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../extension/run-data/episode-table';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';

type Given = Omit<EpisodeRow, 'id'> & { seed?: number; first?: number };

/** A table of these rows, in their order. */
export function tableOf(rows: readonly Given[]): EpisodeTable {
  const table = new EpisodeTable();
  for (const row of rows) {
    const line = indexLine(row.mode, row.step, 0);
    line.tags.push(row.tag);
    const values: Record<IndexColumn, number | null> = {
      group: row.group_id,
      member: row.member,
      tag: 0,
      seed: row.seed ?? 0,
      success: Number(row.success),
      score: row.score,
      reward: row.reward ?? row.score,
      advantage: row.advantage ?? null,
      turns: row.turns,
      tokens: row.tokens,
      invalid: row.invalid ?? 0,
      kept: row.kept === null ? null : Number(row.kept),
      first: row.first ?? 0,
      at: 0,
      bytes: 0,
      texts: 0,
    };
    for (const name of indexColumns) line.columns[name].push(values[name]);
    table.addLine(line);
  }
  return table;
}
