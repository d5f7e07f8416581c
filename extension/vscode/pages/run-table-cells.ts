// The values of the run table for one run: configuration keys from the manifest, metrics from the run's figures. The
// flat configuration of a manifest is computed once. Must not import `vscode`.
import { configLeaves } from '../../run-data/config-leaves';
import type { Manifest } from '../../run-data/run-manifest';
import { parseColumn, type Cell } from '../../run-data/table-columns';
import type { RunCells } from '../../protocol/run-table-page';
import type { MetricRequest, RunFigures } from '../run-files/metrics/run-figures';

const flat = new WeakMap<Manifest, Map<string, number | string>>();

/** Returns the configuration of a run by dotted key, with the sweep and the sweep's point if the run has one. */
function leavesOf(manifest: Manifest): Map<string, number | string> {
  const known = flat.get(manifest);
  if (known) return known;
  const leaves = configLeaves(manifest.config);
  if (manifest.sweep) leaves.set('sweep.id', manifest.sweep.id).set('sweep.point', manifest.sweep.point);
  flat.set(manifest, leaves);
  return leaves;
}

/** Returns all configuration keys of the runs, and the keys among them in which the runs differ. */
export function configKeysOf(manifests: readonly Manifest[]): { configKeys: string[]; variedKeys: string[] } {
  const counts = new Map<string, Map<number | string, number>>();
  for (const manifest of manifests)
    for (const [key, value] of leavesOf(manifest)) {
      const values = counts.get(key) ?? new Map<number | string, number>();
      counts.set(key, values.set(value, (values.get(value) ?? 0) + 1));
    }
  const isVaried = (key: string): boolean => {
    const values = counts.get(key)!;
    return values.size > 1 || [...values.values()].some(count => count < manifests.length);
  };
  const configKeys = [...counts.keys()];
  return { configKeys, variedKeys: configKeys.filter(key => key !== 'trainer.experiment_name' && isVaried(key)) };
}

/** A run of the store, as far as its values are concerned. */
export interface TableRun {
  folder: string;
  summary: { live: boolean };
  reader: { manifest: Manifest | undefined };
}

/** Returns the values of columns for a run, and the run's metric keys; metrics that cannot be read are null. */
export async function runCells(
  figures: RunFigures,
  { folder, summary, reader }: TableRun,
  ids: readonly string[],
): Promise<RunCells & { keys: string[] }> {
  const columns = ids.map(parseColumn);
  const requests = columns.flatMap((column): MetricRequest[] => (column?.kind === 'metric' ? [column] : []));
  const leaves = reader.manifest ? leavesOf(reader.manifest) : new Map<string, number | string>();
  const valuesWith = (metrics: readonly (number | null)[]): Cell[] => {
    let next = 0;
    return columns.map(column => {
      if (column?.kind === 'metric') return metrics[next++];
      return column?.kind === 'config' ? (leaves.get(column.key) ?? null) : null;
    });
  };
  try {
    const { values, keys } = await figures.values({ folder, live: summary.live }, requests);
    return { folder, values: valuesWith(values), keys };
  } catch (error) {
    return { folder, values: valuesWith(requests.map(() => null)), problem: (error as Error).message, keys: [] };
  }
}
