// In-memory host for the Sweep page: four arms (`hundreds`: sixty) and five seeds, at a chosen moment of the sweep.
// Finished runs have values around their arm's level.
import { sweepControl, sweepReady, type SweepCell, type SweepSnapshot } from '../../../extension/protocol/sweep-page';
import { parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import { runAt } from './data';
import type { MemoryHost } from './memory-host';

export type SweepPageScenario = 'start' | 'live' | 'finished' | 'hundreds' | 'planning';

const arms = [
  { label: 'GRPO, no filter', level: 0.48 },
  { label: 'GRPO, rollout_filter_value=0.9', level: 0.63 },
  { label: 'Dr. GRPO, rollout_filter_value=0.9', level: 0.6 },
  { label: 'PPO, rollout_filter_value=0.9', level: 0.3 },
];
const manyArms = Array.from({ length: 60 }, (_, i) => ({
  label: `lr=${(1 + (i % 10)).toFixed(0)}e-4, kl_loss_coef=${(i / 60).toFixed(2)}`,
  level: 0.2 + ((i * 7) % 30) / 60,
}));
const seeds = [10_000, 1_010_000, 2_010_000, 3_010_000, 4_010_000];
const steps = 40;

/** Number of runs, in the order of their start, that have finished in each scenario. */
const finishedBy: Record<Exclude<SweepPageScenario, 'planning'>, number> = {
  ...{ start: 1, live: 12, finished: 20, hundreds: 200 },
};

/** Returns the sweep. With `live`, two runs train, one has failed, and the last arm was stopped early. */
export function sweepPageSnapshot(scenario: Exclude<SweepPageScenario, 'planning'>, guide: string): SweepSnapshot {
  const finished = finishedBy[scenario];
  const shown = scenario === 'hundreds' ? manyArms : arms;
  const cells = shown.flatMap((arm, point) =>
    seeds.map((seed, s): SweepCell => {
      const order = s * shown.length + point;
      const isStopped = scenario === 'live' && point === 3 && order >= finished - 6;
      const isFailed = scenario === 'live' && order === 6;
      const isTraining = scenario !== 'finished' && order >= finished && order < finished + 2;
      if (!isStopped && order >= finished + 2) return { point, seed, attempts: 0, run: null, last: null, best: null };
      const step = isStopped ? 10 : isTraining ? 17 : isFailed ? 5 : steps;
      const state = isStopped ? 'stopped' : isTraining ? 'running' : isFailed ? 'failed' : 'finished';
      const run = runAt(step, steps, { state, phase: isTraining ? 'update' : 'idle' });
      const value = arm.level + (((order * 37) % 11) - 5) / 60;
      return {
        ...{ point, seed, attempts: isFailed ? 2 : 1 },
        ...(isFailed && { problem: 'trainer of run-7: it was killed (SIGKILL)' }),
        run: {
          ...run,
          status: { ...run.status, updated: new Date(Date.UTC(2026, 1, 3, order)).toISOString() },
          ...{ id: `run-${order}`, name: `${arm.label} seed ${seed}`, folder: `/runs/${order}`, live: isTraining },
        },
        last: isFailed ? null : value,
        best: isFailed ? null : value + 0.02,
      };
    }),
  );
  const stop = { step: 10, value: 0.2, rank: 4, of: 4 };
  return {
    ...{
      id: 'filters',
      isRunning: scenario !== 'finished',
      jobs: 2,
      rungs: scenario === 'live' ? [10, 20] : [],
      cells,
    },
    points: shown.map(({ label }, p) => ({ label, stopped: scenario === 'live' && p === 3 ? stop : null })),
    metric: 'val-env/CoordSokoban/success',
    keys: ['val-env/CoordSokoban/success', 'train/CoordSokoban/success', 'actor/entropy'],
    meanings: parseMetricMeanings(guide),
  };
}

export const sweepPageHost = (scenario: SweepPageScenario, guide: string): MemoryHost => ({
  answer: (method: string): unknown => {
    if (method === sweepReady.method) return scenario === 'planning' ? null : sweepPageSnapshot(scenario, guide);
    if (method === sweepControl.method) return null;
    throw new Error(`no answer to ${method}`);
  },
});
