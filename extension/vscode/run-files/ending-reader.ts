// Reads the data from which the end of a run is summarised (run-data/run-ending.ts). Must not import `vscode`.
import { endingOf, type RunEnding } from '../../run-data/run-ending';
import type { ColumnTable } from './metrics/column-table';
import type { RunReader } from './run-reader';

/** Summarises a run that has ended, from its complete metrics `table`; null if the run has not ended. */
export async function readEnding(reader: RunReader, table: ColumnTable): Promise<RunEnding | null> {
  const { manifest, summary } = reader;
  if (!manifest || !summary) return null;
  const { events } = await reader.events();
  return endingOf({ manifest, status: summary.status, events, checkpoints: await reader.checkpoints(), table });
}
