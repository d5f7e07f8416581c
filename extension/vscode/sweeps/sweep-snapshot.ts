// Joins the file of a sweep with the runs of the workspace and their metrics, for the Sweep page. Must not import
// `vscode`.
import pMap from 'p-map';
import { isRunnerAlive } from '../../node/sweep-runner';
import type { RunSummary } from '../../protocol/page-state';
import type { SweepCell, SweepSnapshot } from '../../protocol/sweep-page';
import type { SweepFile } from '../../run-data/sweep-file';
import type { RunFigures } from '../run-files/metrics/run-figures';

/** Number of runs whose metrics are read at the same time. */
const concurrency = 8;

/** Returns a run of the workspace by its id; undefined if its folder is gone. */
type RunLookup = (id: string) => { folder: string; summary: RunSummary } | undefined;

/**
 * Returns the sweep with the values of a metric. If no run has logged `metric`, the values are those of the validation
 * success. A run whose metrics cannot be read has no values.
 */
export async function sweepSnapshot(
  { id, jobs, halving, points, members, runner }: SweepFile,
  runOf: RunLookup,
  figures: Pick<RunFigures, 'values'>,
  metric: string,
): Promise<Omit<SweepSnapshot, 'meanings'>> {
  const runs = members.map(({ run }) => (run === null ? undefined : runOf(run)));
  const valuesOf = async (run: (typeof runs)[number], key: string) => {
    if (!run) return { values: [null, null], keys: [] };
    const requests = (['last', 'best'] as const).map(at => ({ key, at }));
    return figures
      .values({ folder: run.folder, live: run.summary.live }, requests)
      .catch(() => ({ values: [null, null], keys: [] as string[] }));
  };
  const read = (key: string) => pMap(runs, run => valuesOf(run, key), { concurrency });
  let figuresOfRuns = await read(metric);
  const keys = [...new Set(figuresOfRuns.flatMap(found => found.keys))];
  const shown = keys.includes(metric) ? metric : successKey(keys);
  if (shown !== metric) figuresOfRuns = await read(shown);
  const cells = members.map(({ point, seed, attempts, problem }, m): SweepCell => {
    const [last, best] = figuresOfRuns[m].values;
    return {
      point,
      seed,
      attempts,
      ...(problem !== undefined && { problem }),
      run: runs[m]?.summary ?? null,
      last,
      best,
    };
  });
  return {
    ...{ id, jobs, cells, keys, metric: shown },
    isRunning: isRunnerAlive(runner),
    rungs: halving?.rungs ?? [],
    points: points.map(({ label, stopped }) => ({ label, stopped })),
  };
}

/** Returns the key of the validation success or, without one, of the training success or any metric; empty without metrics. */
function successKey(keys: readonly string[]): string {
  const first = (pattern: RegExp): string | undefined => keys.filter(key => pattern.test(key)).sort()[0];
  return first(/^val-env\/[^/]+\/success$/) ?? first(/^train\/[^/]+\/success$/) ?? keys.at(0) ?? '';
}
