// Reads the data from which the end of a run is summarised (run-data/run-ending.ts). Must not import `vscode`.
import { runEnding, type RunEnding } from '../../run-data/run-ending';
import type { ColumnTable } from './metrics/column-table';
import type { RunReader } from './run-reader';

/** Summarises a run that has ended, from its complete metrics `table`; null if the run has not ended. */
export async function readEnding(reader: RunReader, table: ColumnTable): Promise<RunEnding | null> {
  const { manifest, summary } = reader;
  if (!manifest || !summary) return null;
  const { events } = await reader.events();
  const ran = events.findLast(({ kind, message }) => kind === 'setting' && message.startsWith('the model runs on '));
  const cores = Number(manifest.hardware.cores);
  return runEnding({
    status: summary.status,
    config: manifest.config,
    cores: Number.isFinite(cores) ? cores : undefined,
    checkpoints: await reader.checkpoints(),
    steps: table.column('step'),
    success: table.keys.filter(key => /^val-env\/[^/]+\/success$/.test(key)).map(key => table.column(key)),
    wall: table.column('wall_s'),
    tokens: table.column('perf/total_num_tokens'),
    provider: /^the model runs on (\w+)/.exec(ran?.message ?? '')?.[1],
  });
}
