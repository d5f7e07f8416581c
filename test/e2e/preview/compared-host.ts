// In-memory host for the Compare page: the six runs of an experiment of test/experiments, from its CSV.
import { groupRuns } from '../../../extension/vscode/pages/compared-runs';
import { compareColumns, compareReady, type CompareSnapshot } from '../../../extension/protocol/compare-page';
import { parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import type { Manifest } from '../../../extension/run-data/run-manifest';
import { runAt } from './data';
import type { MemoryHost } from './memory-host';
import { partial } from '../../support/partial';

const settings: Record<string, object> = {
  'filter on': { rollout_filter_value: 0.9, rollout_filter_include_zero: false },
  'filter off': { rollout_filter_value: 1, rollout_filter_include_zero: true },
};

/** `csv` has lines of arm, seed, step, metric and value; `metrics` is the text of docs/METRICS.md. */
export function comparedHost(csv: string, metrics: string): MemoryHost {
  const runs = new Map<string, { arm: string; seed: string; lines: Map<number, Map<string, number>> }>();
  for (const line of csv.trim().split('\n').slice(1)) {
    const [, arm, seed, step, metric, value] = /^"?([^",]+)"?,(\d+),(\d+),([^,]+),(.+)$/.exec(line)!;
    const run = runs.get(`${arm} ${seed}`) ?? { arm, seed, lines: new Map<number, Map<string, number>>() };
    runs.set(`${arm} ${seed}`, run);
    const at = run.lines.get(Number(step)) ?? new Map<string, number>();
    run.lines.set(Number(step), at.set(metric, Number(value)));
  }
  const all = [...runs.values()];
  const seen = all.map(({ arm, seed }) => {
    const name = `1-filter ${arm} seed ${seed}`;
    const rollout = settings[arm];
    const config = {
      actor_rollout_ref: { rollout },
      seed: { train: Number(seed) },
      trainer: { experiment_name: name },
    };
    return {
      name,
      events: [],
      manifest: partial<Manifest>({
        config,
        config_name: 'quickstart',
        sweep: { id: '1-filter', point: `${arm}, seed ${seed}` },
      }),
    };
  });
  const keysOf = (lines: Map<number, Map<string, number>>) => [
    ...new Set([...lines.values()].flatMap(at => [...at.keys()])),
  ];
  const answers: Record<string, (params: never) => unknown> = {
    [compareReady.method]: (): CompareSnapshot => ({
      ...groupRuns(seen),
      runs: all.map(({ arm, seed, lines }, i) => {
        const run = runAt(32, 32);
        Object.assign(run, { id: `${arm}-${seed}`, name: seen[i].name, folder: `/runs/${arm}-${seed}`, live: false });
        run.status.state = 'finished';
        return { run, seed, keys: [...keysOf(lines), 'perf/total_num_tokens'] };
      }),
      meanings: parseMetricMeanings(metrics),
    }),
    [compareColumns.method]: ({ keys }: { keys: string[] }) =>
      all.map(({ lines }, i) => {
        const steps = [...lines.keys()].sort((a, b) => a - b);
        const column = (key: string) =>
          key === 'wall_s'
            ? Float64Array.from(steps, step => step * (4 + 0.3 * i))
            : key === 'perf/total_num_tokens'
              ? Float64Array.from(steps, step => 9000 + 400 * i - 60 * step)
              : Float64Array.from(steps, step => lines.get(step)!.get(key) ?? Number.NaN);
        const columns = Object.fromEntries(keys.map(key => [key, column(key)]));
        return { steps: Float64Array.from(steps), columns };
      }),
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}
