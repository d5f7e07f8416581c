// The metrics of every trainer's sample are in the dashboard's sections of their meaning, the trainer's own names under
// "other" or with their tag, and alarms work on metrics that a trainer calls otherwise.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { arrange } from '../../../extension/run-data/charts/catalogue';
import type { LineBand } from '../../../extension/run-data/charts/chart-lines';
import { eventSchema } from '../../../extension/run-data/run-events';
import { attachOnce, samples } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

/** Sections in which texts alone are diagnosed; the same for all trainers that store texts and groups. */
const diagnosed = ['rollout/in_group_reward_std', 'rollout/zero_variance_ratio', 'thoughts/prompt_information'];

/** Of each sample, some metrics by the section that must have them. */
const expected: [sample: string, sections: Record<string, string[]>][] = [
  [
    'verl',
    {
      task: ['critic/score/mean', 'critic/rewards/mean'],
      policy: ['actor/entropy', 'actor/ppo_kl', 'actor/kl_loss', 'actor/lr', 'actor/pg_loss'],
      stability: ['actor/grad_norm', 'response_length/mean', 'response_length/clip_ratio'],
      collapse: diagnosed,
      timing: ['timing_s/step', 'perf/time_per_step'],
      other: ['val-core/FrozenLake/reward/mean@1'],
    },
  ],
  ['ragen', { task: ['val-env/FrozenLake/success', 'val-env/FrozenLake/pass@2'] }],
  ['vagen/rollout_data', { task: ['critic/score/mean'], collapse: diagnosed }],
  [
    'prime-rl',
    {
      task: ['train/frozenlake/success', 'critic/score/mean'],
      policy: ['actor/entropy', 'actor/lr'],
      stability: ['actor/grad_norm', 'response_length/mean', 'response_length/clip_ratio'],
      collapse: diagnosed,
      other: ['mismatch_kl/all/mean', 'off_policy/mean'],
    },
  ],
  ['verifiers/outputs/evals', { task: ['val-env/frozenlake/success', 'val-env/frozenlake/pass@1'] }],
  [
    'trl/trl-1.16',
    {
      task: ['critic/score/mean'],
      policy: ['actor/entropy', 'actor/kl_loss', 'actor/lr'],
      stability: ['actor/grad_norm', 'response_length/mean', 'response_length/clip_ratio'],
      collapse: diagnosed,
      other: ['rewards/goal_reward/mean', 'clip_ratio/region_mean'],
    },
  ],
  ['skyrl', { task: ['val-env/charts/avg_episode_return'], other: ['eval/frozenlake_test/avg_score'] }],
  [
    'tinker-cookbook',
    {
      task: ['train/all/success', 'critic/score/mean'],
      policy: ['actor/lr'],
      collapse: ['rollout/in_group_reward_std', 'rollout/zero_variance_ratio'],
      other: ['optim/entropy', 'env/all/total_turns'],
    },
  ],
  ['openrlhf', { environments: ['train/reward', 'train/entropy_loss'], other: ['eval/eval_frozenlake_pass1'] }],
  ['openai-messages', { task: ['critic/score/mean'], collapse: diagnosed }],
];

it.each(expected)('%s: metrics are in their sections, each in one', async (sample, sections) => {
  const { metrics } = await attachOnce(workspace(), join(samples, sample));
  const keys = [...new Set(metrics.flatMap(line => Object.keys(line)))].filter(key => key !== 'step' && key !== 'time');
  const edges = (band: LineBand | undefined): string[] => (band && 'low' in band ? [band.low, band.high] : []);
  const shown = new Map(
    arrange({ keys }).map(({ id, charts }) => [
      id,
      charts.flatMap(({ lines }) => lines.flatMap(({ key, band }) => [key, ...edges(band)])),
    ]),
  );
  for (const [id, wanted] of Object.entries(sections))
    expect(shown.get(id), id).toEqual(expect.arrayContaining(wanted));
  const all = [...shown.values()].flat();
  expect(all.sort()).toEqual(keys.filter(key => key !== 'wall_s').sort());
});

it('an alarm is raised on a metric that TRL calls otherwise', async () => {
  const folder = join(workspace(), 'grpo');
  mkdirSync(join(folder, 'checkpoint-16'), { recursive: true });
  const history = Array.from({ length: 16 }, (_, i) => ({ step: i + 1, reward: 0.5, grad_norm: i === 13 ? 50 : 1 }));
  const state = { global_step: 16, max_steps: 16, log_history: history };
  writeFileSync(join(folder, 'checkpoint-16/trainer_state.json'), JSON.stringify(state));
  const { adapter, folder: run } = await attachOnce(workspace(), folder);
  const events = readFileSync(run.file('events.jsonl'), 'utf8').trim().split('\n');
  const alarms = events.map(text => eventSchema.parse(JSON.parse(text))).filter(({ kind }) => kind === 'alarm');
  expect([adapter, ...alarms.map(({ step, data }) => [data?.alarm, data?.metric, step])]).toEqual([
    'trl',
    ['gradient_spike', 'actor/grad_norm', 14],
  ]);
});
