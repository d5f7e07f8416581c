// Adapters read their trainer's metrics from TensorBoard event files if these are the only metrics.
import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { meaningOf, parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import { EventLog } from '../../../extension/trainer/store/event-log';
import { attachOnce, samples } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

/** Writes an event file as a trainer's process does, with these values at each step. */
function writeEvents(folder: string, steps: Readonly<Record<number, Readonly<Record<string, number>>>>): void {
  mkdirSync(folder, { recursive: true });
  const seconds = 1_796_000_000;
  const file = join(folder, `events.out.tfevents.${seconds}.vm.1.0`);
  const log = new EventLog(file, null, seconds, { fsync: 'explicit' });
  for (const [step, values] of Object.entries(steps)) log.scalars(Number(step), seconds + Number(step), values);
  log.close();
}

it('verl: event files beside the rollouts, without the file logger', async () => {
  const folder = join(workspace(), 'verl');
  cpSync(join(samples, 'verl'), folder, { recursive: true });
  const logger = await attachOnce(workspace(), folder);
  for (const name of ['verl_examples', 'train.log']) rmSync(join(folder, name), { recursive: true });
  const { adapter, metrics, missing, episodes } = await attachOnce(workspace(), folder);
  expect(adapter).toBe('verl');
  expect(missing.join()).not.toContain('trainer.logger');
  expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3]);
  const values = (line: (typeof metrics)[number] | undefined) =>
    ['critic/score/mean', 'actor/entropy', 'rollout_corr/prob_diff_mean'].map(name => line?.[name]);
  for (const [i, line] of metrics.entries())
    expect(values(line)).toEqual(
      values(logger.metrics[i]).map(value => (typeof value === 'number' ? expect.closeTo(value, 4) : value)),
    );
  expect(Object.keys(episodes)).toContain('step-000003');
});

it('RAGEN: its own training metrics, recognised by their names', async () => {
  const folder = join(workspace(), 'ragen');
  const own = {
    ...{ 'rollout/in_group_reward_std': 0.5, 'rollout/in_group_reward_mean': 0.25, 'rollout/filter_kept_ratio': 0.75 },
    ...{ 'rollout/filter_zero_count': 2, 'train/CoordSokoban/success': 0.125, 'train/CoordSokoban/pass@16': 0.5 },
    ...{ 'train/CoordSokoban/num_actions': 4, 'val-env/CoordSokoban/success': 0.375, 'critic/score/mean': -0.5 },
    ...{ 'collapse_first_turn_sample/mi_estimate': 1.5, 'collapse_first_turn_sample/retrieval_accuracy': 0.25 },
    ...{ 'collapse_first_turn_sample/conditional_entropy_est': 2, 'collapse/first_turn_valid_rate': 1 },
    ...{ 'actor/entropy': 0.5, 'response_length/mean': 100 },
  };
  writeEvents(join(folder, 'tensorboard_log/ragen_latest/sokoban'), { 1: own, 2: own });
  const { adapter, metrics, missing } = await attachOnce(workspace(), folder);
  expect(adapter).toBe('ragen');
  expect(missing.join()).toContain('training rollouts: RAGEN of 2026-04 cannot write them');
  expect(metrics.map(({ step }) => step)).toEqual([1, 2]);
  expect(metrics[0]).toMatchObject(own);
  const meanings = parseMetricMeanings(readFileSync('docs/METRICS.md', 'utf8'));
  expect(Object.keys(own).filter(name => meaningOf(meanings, name) === undefined)).toEqual([]);
});

it('RAGEN: evaluations beside the training’s event files', async () => {
  const folder = join(workspace(), 'ragen');
  cpSync(join(samples, 'ragen'), folder, { recursive: true });
  writeEvents(join(folder, 'tensorboard_log/run'), { 7: { 'rollout/filter_kept_ratio': 0.5 } });
  const { adapter, metrics, episodes } = await attachOnce(workspace(), folder);
  expect(adapter).toBe('ragen');
  expect(metrics).toMatchObject([{ step: 7, 'rollout/filter_kept_ratio': 0.5 }]);
  expect(Object.keys(episodes)).toEqual(['val-000001', 'val-000002', 'val-000003']);
});

it('TRL: event files before the first checkpoint, with and without completions', async () => {
  const folder = join(workspace(), 'trl');
  cpSync(join(samples, 'trl/trl-1.16'), folder, { recursive: true });
  rmSync(join(folder, 'checkpoint-3'), { recursive: true });
  const row = { 'train/reward': 0.5, 'train/entropy': 0.25, 'train/frac_reward_zero_std': 0.75, 'train/epoch': 1 };
  writeEvents(join(folder, 'runs/Nov30_10-00-00_vm'), { 1: row, 2: { ...row, 'train/reward': 0.625 } });
  for (const isTrained of [true, false]) {
    const { adapter, metrics, missing } = await attachOnce(workspace(), folder);
    expect(adapter).toBe('trl');
    expect(missing.join().includes('log_completions')).toBe(!isTrained);
    expect(missing.join()).not.toContain('report_to');
    expect(metrics).toMatchObject([
      { step: 1, 'critic/score/mean': 0.5, 'actor/entropy': 0.25, 'rollout/zero_variance_ratio': 0.75, epoch: 1 },
      { step: 2, 'critic/score/mean': 0.625 },
    ]);
    rmSync(join(folder, 'completions'), { recursive: true, force: true });
  }
});

it('SkyRL: event files beside evaluations, and alone', async () => {
  const folder = join(workspace(), 'skyrl');
  cpSync(join(samples, 'skyrl'), folder, { recursive: true });
  const row = { 'reward/avg_raw_reward': 0.5, 'policy/policy_entropy': 0.25, 'generate/avg_num_tokens': 100 };
  writeEvents(join(folder, 'tensorboard_log'), { 1: row, 3: { ...row, 'policy/policy_kl': 0.125, 'timing/step': 8 } });
  const both = await attachOnce(workspace(), folder);
  expect([both.adapter, both.missing.join().includes('TENSORBOARD_DIR')]).toEqual(['skyrl', false]);
  expect(both.metrics).toMatchObject([
    { step: 1, 'critic/score/mean': 0.5, 'actor/entropy': 0.25, 'response_length/mean': 100 },
    { step: 3, 'policy/policy_kl': 0.125, 'eval/frozenlake_test/avg_score': 0.75 },
  ]);
  expect(Object.keys(both.episodes)).toEqual(['val-000003']);
  rmSync(join(folder, 'exports'), { recursive: true });
  const alone = await attachOnce(workspace(), folder);
  expect(alone.adapter).toBe('skyrl');
  expect(alone.metrics.map(line => [line.step, line['critic/score/mean']])).toEqual([[1, 0.5], [3, 0.5]]); // prettier-ignore
  expect(alone.missing.join()).toContain('trainer.dump_eval_results');
});
