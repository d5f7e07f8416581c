// In-memory hosts for the Compare page: the six runs of an experiment of test/experiments, from its CSV, and a generated
// sweep of any number of runs.
import { groupRuns } from '../../../extension/run-data/compared-runs';
import {
  compareColour,
  compareColumns,
  compareReady,
  type CompareSnapshot,
} from '../../../extension/protocol/compare-page';
import { comparedMarks } from '../../../extension/run-data/event-marks';
import { parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import type { RunColour } from '../../../extension/run-data/run-colour';
import type { Manifest } from '../../../extension/run-data/run-manifest';
import { runAt } from './data';
import type { MemoryHost } from './memory-host';
import { partial } from '../../support/partial';

const rollout = (value: number, zero: boolean): object => ({
  actor_rollout_ref: { rollout: { rollout_filter_value: value, rollout_filter_include_zero: zero } },
});
/** Events of the first run: a change of a setting, and an alarm of step 20 that was written later. */
const exampleMarks = comparedMarks([
  {
    ...{ time: '2026-02-03T00:00:00.000Z', step: 10, kind: 'setting', message: 'lr: 0.001 → 0.0005' },
    data: { key: 'lr', from: 0.001, to: 0.0005 },
  },
  {
    ...{ time: '2026-02-03T00:01:00.000Z', step: 22, kind: 'alarm', message: 'entropy falls' },
    data: { step: 20, metric: 'actor/entropy' },
  },
  { time: '2026-02-03T00:02:00.000Z', step: 24, kind: 'checkpoint', message: 'saved' },
]);

/** Configurations of the experiment, by arm. */
const filters: Record<string, object> = { 'filter on': rollout(0.9, false), 'filter off': rollout(1, true) };

/**
 * A sweep of `count` runs, one per configuration, over four keys: the result falls with the learning rate, peaks at a
 * middle coefficient, depends on the estimator, and does not depend on the clip.
 */
export function sweepHost(count: number, metrics: string): MemoryHost {
  const [rates, groups, clips] = [
    [0.0001, 0.0003, 0.001, 0.003],
    [0, 0.001, 0.01, 0.05, 0.1],
    [0.1, 0.2],
  ];
  const settings: Record<string, object> = {};
  const lines: string[] = ['arm,seed,step,metric,value'];
  for (let i = 0; i < count; i++) {
    const [lr, beta, clip] = [rates[i % 4], groups[(i * 3) % 5], clips[(i >> 2) % 2]];
    const estimator = ['gae', 'grpo', 'rloo'][(i * 7) % 3];
    const arm = `lr=${lr} entropy_coeff=${beta} clip=${clip} ${estimator} (${i})`;
    settings[arm] = {
      algorithm: { adv_estimator: estimator },
      actor_rollout_ref: { actor: { clip_ratio: clip, entropy_coeff: beta, optim: { lr } } },
    };
    const best = 0.9 - 0.16 * (i % 4) - 0.06 * Math.abs(((i * 3) % 5) - 2) - (estimator === 'gae' ? 0.1 : 0);
    for (let step = 0; step <= 40; step += 2) {
      const success = Math.max(0, best * (1 - Math.exp(-step / 12)) + 0.02 * Math.sin(i * 5 + step));
      for (const [metric, value] of [
        ['val-env/QuickFrozenLake/success', success],
        ['train/QuickFrozenLake/success', success * 0.9],
        ['actor/entropy', 2 - success],
      ])
        lines.push(`"${arm}",1,${step},${metric},${value}`);
    }
  }
  return comparedHost(lines.join('\n'), metrics, settings);
}

/**
 * `csv` has lines of arm, seed, step, metric and value; `metrics` is the text of docs/METRICS.md, and `settings` has a
 * configuration per arm.
 */
export function comparedHost(csv: string, metrics: string, settings = filters): MemoryHost {
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
    const config = { ...settings[arm], seed: { train: Number(seed) } };
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
  const colours = new Map<string, RunColour | null>();
  const answers: Record<string, (params: never) => unknown> = {
    [compareColour.method]: ({ folders, colour }: { folders: string[]; colour: RunColour | null }) => {
      for (const folder of folders) colours.set(folder, colour);
      return null;
    },
    [compareReady.method]: (): CompareSnapshot => ({
      ...groupRuns(seen),
      runs: all.map(({ arm, seed, lines }, i) => {
        const run = runAt(32, 32);
        Object.assign(run, { id: `${arm}-${seed}`, name: seen[i].name, folder: `/runs/${arm}-${seed}`, live: false });
        run.status.state = 'finished';
        const chosen = colours.get(run.folder);
        if (chosen) run.colour = chosen;
        return { run, seed, keys: [...keysOf(lines), 'perf/total_num_tokens'], marks: i === 0 ? exampleMarks : [] };
      }),
      meanings: parseMetricMeanings(metrics),
      own: [],
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
