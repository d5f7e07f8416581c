// Every estimator, loss aggregation, rollout filter and KL term trains for two steps on real episodes. The metrics are
// consistent and documented in docs/METRICS.md.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Episode } from '../../../../extension/run-data/episode';
import { installation } from '../../../../extension/node/installation';
import { groupsOf, keepAll, mean, trainHere, unknownKeys } from '../../../support/train-here';
import type { Trained } from '../../../support/train-here';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const trained = (overrides: string[], steps = 2): Promise<Trained> => trainHere(workspace, overrides, steps);

/** Invariants of every trained step. */
function expectSane({ lines, episodes, end }: Trained, steps = 2): void {
  expect(end).toBe('finished');
  expect(lines.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, i) => i + 1));
  expect(unknownKeys(lines)).toEqual([]);
  for (const line of lines) {
    const n = (key: string): number => {
      expect(line, `step ${line.step}`).toHaveProperty([key]);
      return line[key] as number;
    };
    expect(n('actor/grad_norm')).toBeGreaterThan(0);
    expect(n('actor/entropy')).toBeGreaterThan(0);
    expect(n('actor/entropy')).toBeLessThan(Math.log(800));
    expect(n('actor/skipped_updates')).toBe(0);
    expect(n('actor/lr')).toBeCloseTo(1e-2);
    for (const share of [
      'actor/pg_clipfrac',
      'actor/pg_clipfrac_lower',
      'rollout/filter_kept_ratio',
      'response_length/clip_ratio',
    ]) {
      expect(n(share)).toBeGreaterThanOrEqual(0);
      expect(n(share)).toBeLessThanOrEqual(1);
    }
    const kept = episodes.filter(({ step, kept }) => step === line.step && kept);
    expect(n('train/batch_size')).toBe(kept.length);
    expect(n('train/num_mini_batches')).toBe(Math.ceil(kept.length / 4));
    expect(n('critic/score/mean')).toBeCloseTo(mean(kept.map(({ score }) => score)), 5);
    expect(n('critic/score/max')).toBeCloseTo(Math.max(...kept.map(({ score }) => score)), 5);
    const advantages = kept.flatMap(({ tokens }) => tokens.advantages!.filter((_, t) => tokens.mask[t]));
    expect(n('critic/advantages/mean')).toBeCloseTo(mean(advantages), 4);
    expect(n('critic/advantages/max')).toBeCloseTo(Math.max(...advantages), 4);
    expect(advantages.some(a => a !== 0)).toBe(true);
  }
}

/** Kept episodes of step 1, with the mean advantage over their trained tokens. */
const stepOne = ({ episodes }: Trained) => episodes.filter(({ step, kept }) => step === 1 && kept);

describe('estimators', () => {
  test('gae trains a critic and logs its values, returns and losses', async () => {
    const run = await trained(['algorithm.adv_estimator=gae', 'critic.optim.lr=1e-2', ...keepAll]);
    expectSane(run);
    for (const line of run.lines) {
      for (const key of ['vf_loss', 'vf_explained_var', 'vf_clipfrac', 'vpred_mean', 'grad_norm', 'lr'])
        expect(line).toHaveProperty([`critic/${key}`]);
      for (const key of ['values', 'returns'])
        for (const stat of ['mean', 'max', 'min']) expect(line).toHaveProperty([`critic/${key}/${stat}`]);
      expect(line['critic/grad_norm']).toBeGreaterThan(0);
      expect(line['critic/vf_explained_var']).toBeLessThanOrEqual(1);
      expect(line['critic/lr']).toBeCloseTo(1e-2);
      // γ = λ = 1: the return of each token is its episode's score
      expect(line['critic/returns/max']).toBeCloseTo(line['critic/score/max'] as number, 4);
      expect(line['critic/returns/min']).toBeCloseTo(line['critic/score/min'] as number, 4);
      expect(line['critic/advantages/mean']).toBeCloseTo(0, 4); // whitened
    }
    expect(run.lines[1]['critic/values/mean']).not.toBe(run.lines[0]['critic/values/mean']);
  });

  test('critic_warmup leaves the actor unchanged before that step', async () => {
    const { lines } = await trained(['algorithm.adv_estimator=gae', 'trainer.critic_warmup=2', ...keepAll], 3);
    expect(lines.map(line => 'actor/grad_norm' in line)).toEqual([false, true, true]);
    expect(lines.every(line => 'critic/grad_norm' in line && 'actor/entropy' in line)).toBe(true);
    expect(unknownKeys(lines)).toEqual([]);
  });

  test('grpo: deviation from the mean of the group, divided by its standard deviation', async () => {
    const run = await trained(keepAll);
    expectSane(run);
    for (const group of groupsOf(stepOne(run))) {
      const scores = group.map(({ score }) => score);
      const deviation = Math.sqrt(scores.reduce((sum, s) => sum + (s - mean(scores)) ** 2, 0) / (scores.length - 1));
      for (const { advantage, score } of group)
        expect(advantage).toBeCloseTo((score - mean(scores)) / (deviation + 1e-6), 4);
    }
  });

  test('Dr. GRPO: deviation from the mean of the group', async () => {
    const run = await trained([
      'algorithm.norm_adv_by_std_in_grpo=false',
      'actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm',
      ...keepAll,
    ]);
    expectSane(run);
    for (const group of groupsOf(stepOne(run)))
      for (const { advantage, score } of group) expect(advantage).toBeCloseTo(score - mean(group.map(e => e.score)), 4);
  });

  test('rloo: deviation from the mean of the others', async () => {
    const run = await trained([
      'algorithm.adv_estimator=rloo',
      'actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum',
      ...keepAll,
    ]);
    expectSane(run);
    for (const group of groupsOf(stepOne(run)))
      for (const { advantage, score, id } of group) {
        const others = group.filter(e => e.id !== id).map(e => e.score);
        expect(advantage).toBeCloseTo(score - mean(others), 4);
      }
  });

  test('remax: the return of a token minus the score of its group’s greedy episode', async () => {
    const remax = ['algorithm.adv_estimator=remax', ...keepAll];
    const run = await trained(remax);
    expectSane(run);
    // Scores of a greedy policy on the same groups, from a run with greedy sampling before its first update.
    const greedy = await trained(['actor_rollout_ref.rollout.do_sample=false', ...keepAll], 1);
    const baselines = new Map(greedy.episodes.filter(e => e.member === 0).map(e => [e.seed, e.score]));
    for (const group of groupsOf(stepOne(run)))
      for (const { advantage, score, seed } of group) expect(advantage).toBeCloseTo(score - baselines.get(seed)!, 4);
    expect(run.lines[0]['rollout/greedy_score']).toBeCloseTo(mean([...baselines.values()]), 5);
    expect(new Set(stepOne(run).map(({ advantage }) => advantage)).size).toBeGreaterThan(1);
    // The training episodes equal the episodes of a run with any other estimator.
    const grpo = await trained(keepAll, 1);
    expect(stepOne(run).map(e => [e.id, e.seed, e.score])).toEqual(stepOne(grpo).map(e => [e.id, e.seed, e.score]));
  });

  test.each(['reinforce_plus_plus', 'reinforce_plus_plus_baseline'])('%s: whitened over the batch', async estimator => {
    const run = await trained([
      `algorithm.adv_estimator=${estimator}`,
      'actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean',
      ...keepAll,
    ]);
    expectSane(run);
    const tokens = stepOne(run).flatMap(({ tokens }) => tokens.advantages!.filter((_, t) => tokens.mask[t]));
    expect(mean(tokens)).toBeCloseTo(0, 3);
    expect(mean(tokens.map(a => a * a))).toBeCloseTo(1, 1);
  });
});

describe('reference policy', () => {
  test('the KL loss starts at zero, because the policy equals its reference, and grows as the policy changes', async () => {
    const run = await trained([
      'actor_rollout_ref.actor.use_ref=true',
      'actor_rollout_ref.actor.use_kl_loss=true',
      'actor_rollout_ref.actor.kl_loss_coef=0.01',
      'actor_rollout_ref.actor.kl_loss_type=low_var_kl',
      'actor_rollout_ref.actor.ppo_mini_batch_size=8',
      ...keepAll,
    ]);
    const [first, second] = run.lines;
    expect(first['actor/kl_coef']).toBe(0.01);
    expect(first['actor/kl_loss']).toBeCloseTo(0, 5);
    expect(second['actor/kl_loss']).toBeGreaterThan(1e-4);
    const sampled = stepOne(run).flatMap(({ tokens }) => tokens.logprobs.filter(p => p !== null));
    expect(first['rollout/ref_log_prob']).toBeCloseTo(mean(sampled), 3);
    expect(unknownKeys(run.lines)).toEqual([]);
  });

  test('without a KL term no reference policy is scored', async () => {
    const { lines } = await trained(['actor_rollout_ref.actor.use_ref=true', ...keepAll], 1);
    expect(lines[0]).not.toHaveProperty(['rollout/ref_log_prob']);
    expect(lines[0]).not.toHaveProperty(['actor/kl_loss']);
  });
});

describe('rollout filters', () => {
  const filter = (strategy: string, value: number, metric = 'reward_variance'): string[] => [
    `actor_rollout_ref.rollout.rollout_filter_strategy=${strategy}`,
    `actor_rollout_ref.rollout.rollout_filter_value=${value}`,
    `actor_rollout_ref.rollout.rollout_filter_metric=${metric}`,
    'es_manager.train.env_groups=4',
    'es_manager.train.env_configs.n_groups=[4]',
  ];
  const spread = (group: Episode[]): number => {
    const scores = group.map(({ score }) => score);
    return Math.sqrt(scores.reduce((sum, s) => sum + (s - mean(scores)) ** 2, 0) / (scores.length - 1));
  };

  test.each([
    ['top_k', 0.5, 'reward_variance'],
    ['top_p', 0.5, 'reward_variance'],
    ['min_p', 0.9, 'reward_variance'],
    ['top_k', 0.25, 'length'],
  ])('%s %d by %s keeps complete groups, and trains only on the kept groups', async (strategy, value, metric) => {
    const run = await trained(filter(strategy, value, metric), 1);
    expectSane(run, 1);
    const groups = groupsOf(run.episodes);
    const kept = groups.filter(group => group.every(e => e.kept));
    expect(kept.length).toBeGreaterThan(0);
    expect(kept.length).toBeLessThan(4);
    expect(groups.filter(group => group.some(e => e.kept)).length).toBe(kept.length);
    expect(run.lines[0]['rollout/filter_kept_count']).toBe(kept.length);
    const left = groups.filter(group => !kept.includes(group));
    if (metric !== 'length')
      expect(Math.min(...kept.map(spread))).toBeGreaterThanOrEqual(Math.max(...left.map(spread)));
    expect(left.flat().every(e => e.advantage === null && e.tokens.advantages === undefined)).toBe(true);
  });

  test('scaling the loss by the kept share scales the advantages', async () => {
    const whole = await trained(filter('top_k', 0.5), 1);
    const scaled = await trained([...filter('top_k', 0.5), 'actor_rollout_ref.actor.filter_loss_scaling=sqrt'], 1);
    expect(stepOne(scaled).map(e => e.advantage! / Math.SQRT1_2)).toEqual(
      stepOne(whole).map(e => expect.closeTo(e.advantage!, 4)),
    );
  });

  test('a run whose filter keeps no group makes no update and stops early with a message', async () => {
    const same = 'environments/same.ts';
    const { wordsEnvironment } = await import('../../../support/workspace');
    workspace.write(
      same,
      wordsEnvironment("return { observation: '', reward: 0, terminated: false, truncated: false, info: {} };"),
    );
    const run = await trained(
      [
        `custom_envs.Words.env_type=${same}`,
        'es_manager.format_penalty=0',
        'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=2',
      ],
      5,
    );
    expect(run.end).toBe('finished');
    expect(run.lines.map(line => [line.step, line['rollout/empty_after_filter'], line['rollout/empty_steps']])).toEqual(
      [
        [1, 1, 1],
        [2, 1, 2],
      ],
    );
    expect(run.lines.some(line => 'actor/grad_norm' in line)).toBe(false);
    expect(run.episodes.every(e => e.kept === false)).toBe(true);
    expect(run.events.at(-1)).toMatch(/^early_stop: the rollout filter kept no group in 2 steps in a row/);
  });
});

describe('control runs', () => {
  test('with zero_task_advantage, only the entropy bonus is trained', async () => {
    const { lines, episodes } = await trained(['algorithm.zero_task_advantage=true', ...keepAll], 1);
    expect(lines[0]['actor/pg_loss']).toBeCloseTo(0, 6);
    expect(lines[0]['actor/grad_norm']).toBeGreaterThan(0);
    expect(episodes.every(({ advantage }) => advantage === 0)).toBe(true);
  });

  test('bypass_mode uses the sampler’s log-probs as old log-probs, and the first ratio is one', async () => {
    const run = await trained(
      ['algorithm.rollout_correction.bypass_mode=true', 'actor_rollout_ref.actor.ppo_mini_batch_size=8', ...keepAll],
      1,
    );
    expect(run.lines[0]['actor/ppo_kl']).toBeCloseTo(0, 4);
    expect(run.lines[0]['actor/pg_clipfrac']).toBe(0);
    expect(run.lines[0]).not.toHaveProperty(['timing_s/old_log_prob']);
  });
});
