// Training features of RAGEN, VAGEN and DAPO, each in real steps with the small random model. The logged values must be
// derivable from the episodes.
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { groupRowSchema } from '../../../../extension/run-data/step-lines';
import type { Episode } from '../../../../extension/run-data/episode';
import { nextKlCoefficient } from '../../../../extension/algorithms/kl-controller';
import { installation } from '../../../../extension/node/installation';
import { deviation, groupsOf, keepAll, mean, trainHere, unknownKeys } from '../../../support/train-here';
import type { Trained } from '../../../support/train-here';
import { makeWorkspace, wordsEnvironment } from '../../../support/workspace';
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

const trained = (overrides: string[], steps = 1): Promise<Trained> =>
  trainHere(workspace, [...keepAll, ...overrides], steps);
const turnScores = 'agent_proxy.use_turn_scores=true';
const gae = ['algorithm.adv_estimator=gae', 'critic.optim.lr=1e-2'];
const windowed = ['agent_proxy.context_window_mode=limited_multi_turn', 'agent_proxy.max_context_window=1'];

/** Advantages of the sampled tokens of each turn. */
const turnAdvantages = ({ turns, tokens }: Episode): number[][] =>
  turns.map(({ span }) => tokens.advantages!.slice(...span));
/** Return-to-go of each turn, including penalties. */
const earnedFrom = ({ turns }: Episode): number[] =>
  turns.map((_, i) => turns.slice(i).reduce((sum, { reward, penalty }) => sum + reward + penalty, 0));
const sampledAdvantages = (episodes: readonly Episode[]): number[] => episodes.flatMap(e => turnAdvantages(e).flat());

const expectTrained = ({ lines, end }: Trained): void => {
  expect(end).toBe('finished');
  expect(unknownKeys(lines)).toEqual([]);
  for (const line of lines) {
    expect(line['actor/grad_norm']).toBeGreaterThan(0);
    expect(line['actor/skipped_updates']).toBe(0);
  }
};

describe('estimators', () => {
  test("grpo with turn scores compares each turn's return-to-go with that of all turns of its group", async () => {
    const run = await trained([turnScores, 'algorithm.high_level_gamma=1']);
    expectTrained(run);
    for (const group of groupsOf(run.episodes)) {
      const all = group.flatMap(earnedFrom);
      for (const episode of group)
        turnAdvantages(episode).forEach((advantages, turn) => {
          const expected = (earnedFrom(episode)[turn] - mean(all)) / (deviation(all) + 1e-6);
          for (const a of advantages) expect(a).toBeCloseTo(expected, 3);
        });
    }
  });

  test.each([
    ['full', []],
    ['windowed', windowed],
  ])('reinforce_plus_plus with turn scores gives each token its whitened return-to-go (%s)', async (_, window) => {
    const run = await trained([turnScores, 'algorithm.adv_estimator=reinforce_plus_plus', ...window]);
    expectTrained(run);
    expect(run.episodes.some(({ turns }) => turns.length === 2)).toBe(true);
    const returns = run.episodes.flatMap(e =>
      e.turns.flatMap(({ span: [a, b] }, i) => Array(b - a).fill(earnedFrom(e)[i]) as number[]),
    );
    const expected = returns.map(r => (r - mean(returns)) / deviation(returns));
    sampledAdvantages(run.episodes).forEach((a, i) => expect(a).toBeCloseTo(expected[i], 2));
  });

  test.each([
    ['with turn scores', [turnScores]],
    ['with the score at the end', []],
    ['with turn scores in a windowed context', [turnScores, ...windowed]],
    ['between the first tokens of turns', [turnScores, 'workbench.turn_value=start', 'workbench.high_level_lam=0.9']],
    ['as RAGEN does', ['workbench.compat=ragen']],
  ])('bi-level GAE %s trains a critic and whitens', async (_, overrides) => {
    const run = await trained([...gae, 'algorithm.bi_level_gae=true', ...overrides]);
    expectTrained(run);
    const [line] = run.lines;
    expect(line['critic/advantages/mean']).toBeCloseTo(0, 3);
    expect(line['critic/grad_norm']).toBeGreaterThan(0);
    expect(line['critic/returns/max']).not.toBe(line['critic/returns/min']);
  });

  test.each([
    ['first', []],
    ['last', windowed],
  ])('gae over turns trains the critic at the %s token of each turn', async (token, overrides) => {
    const run = await trained([...gae, turnScores, `workbench.turn_gae=${token}`, ...overrides]);
    expectTrained(run);
    const [line] = run.lines;
    expect(line['critic/advantages/mean']).toBeCloseTo(0, 3);
    expect(line['critic/grad_norm']).toBeGreaterThan(0);
    for (const { turns, tokens } of run.episodes)
      for (const { span } of turns) {
        const advantages = tokens.advantages!.slice(...span);
        expect(new Set(advantages).size).toBe(1); // all tokens of a turn have its advantage
      }
  });

  test("gae with turn scores and without discount uses each token's return-to-go as target", async () => {
    const run = await trained([...gae, turnScores]);
    expectTrained(run);
    const returns = run.episodes.flatMap(earnedFrom);
    expect(run.lines[0]['critic/returns/max']).toBeCloseTo(Math.max(...returns), 4);
    expect(run.lines[0]['critic/returns/min']).toBeCloseTo(Math.min(...returns), 4);
  });

  test('brpo uses the complete batch as baseline, and arpo uses no baseline', async () => {
    const { episodes } = await trained(['algorithm.adv_estimator=brpo']);
    const scores = episodes.map(e => e.score);
    for (const { advantage, score } of episodes)
      expect(advantage).toBeCloseTo((score - mean(scores)) / (deviation(scores) + 1e-6), 4);
    const raw = await trained(['algorithm.adv_estimator=arpo']);
    for (const { advantage, score } of raw.episodes) expect(advantage).toBeCloseTo(score, 5);
  });

  test('the optimal token baseline differs from token to token, and needs no old log-probs of its own', async () => {
    const run = await trained([
      'algorithm.adv_estimator=tir_optimal_token_baseline',
      'algorithm.rollout_correction.bypass_mode=true',
    ]);
    expectTrained(run);
    const spreads = run.episodes.map(episode => new Set(turnAdvantages(episode).flat()).size);
    expect(Math.max(...spreads)).toBeGreaterThan(1);
  });

  test.each(['gspo', 'cispo', 'sapo', 'geo_mean', 'clip_cov', 'kl_cov'])('the loss of %s trains', async mode => {
    const run = await trained([`actor_rollout_ref.actor.policy_loss.loss_mode=${mode}`], 2);
    expectTrained(run);
  });
});

describe('factors', () => {
  test('soft reweighting and length weights multiply GRPO’s advantages', async () => {
    const plain = await trained([]);
    const soft = await trained(['algorithm.soft_advantage_reweight=true']);
    const groups = groupsOf(plain.episodes).map(group => deviation(group.map(e => e.score)));
    groupsOf(soft.episodes).forEach((group, g) => {
      const weight = groups[g] / (Math.max(...groups) + 1e-6);
      group.forEach((e, i) => expect(e.advantage).toBeCloseTo(groupsOf(plain.episodes)[g][i].advantage! * weight, 4));
    });
    expect(soft.lines[0]['train/soft_reweight_max']).toBeCloseTo(1, 4);
    expect(unknownKeys(soft.lines)).toEqual([]);

    const short = await trained(['grpo_advantage_length_weight=true']);
    const lengths = plain.episodes.map(({ tokens }) => tokens.mask.filter(Boolean).length);
    short.episodes.forEach((e, i) =>
      expect(e.advantage).toBeCloseTo((plain.episodes[i].advantage! * mean(lengths)) / lengths[i], 4),
    );
  });
});

describe('KL in the reward', () => {
  test('reduces rewards by the divergence, and the adaptive controller follows it through checkpoints', async () => {
    const control = { type: 'adaptive' as const, kl_coef: 0.5, target_kl: 0.01, horizon: 100 };
    const run = await trained(
      [
        'actor_rollout_ref.actor.use_ref=true',
        'algorithm.use_kl_in_reward=true',
        'algorithm.kl_penalty=low-var-kl',
        ...Object.entries(control).map(([key, value]) => `algorithm.kl_ctrl.${key}=${value}`),
        'trainer.save_freq=1',
        'workbench.keep_checkpoints=3',
      ],
      3,
    );
    expectTrained(run);
    let beta = control.kl_coef;
    for (const line of run.lines) {
      expect(line['actor/reward_kl_penalty_coeff']).toBeCloseTo(beta, 6);
      beta = nextKlCoefficient(control, beta, line['actor/reward_kl_penalty'] as number, 8);
      const name = `step-${String(line.step).padStart(6, '0')}`;
      const manifest = JSON.parse(readFileSync(join(run.folder, 'checkpoints', name, 'checkpoint.json'), 'utf8')) as {
        state: { kl_coef: number };
      };
      expect(manifest.state.kl_coef).toBeCloseTo(beta, 6);
    }
    const [first, , third] = run.lines;
    expect(first['actor/reward_kl_penalty']).toBeCloseTo(0, 5); // the initial policy equals its reference
    expect(first['critic/rewards/mean']).toBeCloseTo(first['critic/score/mean'] as number, 4);
    expect(third['actor/reward_kl_penalty']).toBeGreaterThan(1e-4);
    expect(third['critic/rewards/mean']).toBeLessThan(third['critic/score/mean'] as number);
  });
});

describe('masks', () => {
  test('without a response mask observations are trained on too, with recomputed log-probs', async () => {
    const [narrow, wide] = [await trained([]), await trained(['enable_response_mask=false'])];
    expectTrained(wide);
    expect(wide.lines[0]['response_length/mean']).toBeGreaterThan(narrow.lines[0]['response_length/mean'] as number);
    expect(wide.lines[0]['train/response_length']).toBe(narrow.lines[0]['train/response_length']);
  });

  test('advantages can be estimated over the tokens between the answers', async () => {
    const run = await trained([...gae, 'rollout_manager.use_gae_mask=false']);
    expectTrained(run);
  });
});

describe('batches', () => {
  test.each([
    ['copy', 12, 4],
    ['delete', 6, 2],
    ['weights', 8, 3],
  ])('as %s, 8 samples in mini-batches of 3 are %d in %d steps', async (mode, size, steps) => {
    for (const compat of ['corrected', 'ragen']) {
      const run = await trained([
        `agent_proxy.batch_adjust_mode=${mode}`,
        `workbench.compat=${compat}`,
        ...['ppo_mini_batch_size=3', 'micro_batch_size_per_gpu=3'],
      ]);
      expectTrained(run);
      expect(run.lines[0]['train/batch_size']).toBe(size);
      expect(run.lines[0]['train/num_mini_batches']).toBe(steps);
    }
  });
});

describe('dynamic sampling', () => {
  test('samples until enough groups are informative, and trains on the informative groups', async () => {
    const file = 'environments/some.ts';
    // Groups with an even seed have equal scores.
    const flat =
      "if (seed % 2 === 0) return { observation: '', reward: 0, terminated: true, truncated: false, info: {} };";
    workspace.write(file, wordsEnvironment(flat));
    const some = [
      `custom_envs.Words.env_type=${file}`,
      'es_manager.format_penalty=0',
      'algorithm.filter_groups.enable=true',
      'algorithm.filter_groups.metric=score',
    ];
    const run = await trained(some, 2);
    expectTrained(run);
    for (const line of run.lines) {
      const played = run.episodes.filter(({ step }) => step === line.step);
      const kept = played.filter(e => e.kept);
      expect(line['train/rollout_attempts']).toBeGreaterThan(1);
      expect(played).toHaveLength(8 * (line['train/rollout_attempts'] as number));
      expect(new Set(played.map(e => e.id)).size).toBe(played.length);
      expect(groupsOf(kept)).toHaveLength(2);
      expect(kept.every(({ seed }) => seed % 2 === 1)).toBe(true);
      expect(line['rollout/filter_kept_ratio']).toBeCloseTo(2 / groupsOf(played).length, 6);
      for (const group of groupsOf(kept)) expect(deviation(group.map(e => e.score))).toBeGreaterThan(0);
    }
    // Seeds continue where the last batch of the previous step ended.
    const seeds = [...new Set(run.episodes.map(e => e.seed))];
    expect(seeds).toEqual(Array.from({ length: seeds.length }, (_, i) => 10_000 + i));

    const short = await trained([...some, 'algorithm.filter_groups.max_num_gen_batches=1']);
    expect(short.lines[0]['train/rollout_attempts']).toBe(1);
    expect(groupsOf(short.episodes.filter(e => e.kept))).toHaveLength(1);
  });
});

describe('overlong shaping', () => {
  test('penalizes an answer in proportion to its tokens in the buffer before response_length', async () => {
    const run = await trained([
      'es_manager.format_penalty=0',
      'reward_model.overlong_buffer.enable=true',
      'reward_model.overlong_buffer.len=6',
      'reward_model.overlong_buffer.penalty_factor=3',
    ]);
    expectTrained(run);
    const turns = run.episodes.flatMap(e => e.turns);
    for (const { penalty, span } of turns)
      expect(penalty).toBeCloseTo(-3 * Math.min(1, Math.max(0, (span[1] - span[0] - 6) / 6)), 6);
    expect(new Set(turns.map(({ penalty }) => penalty)).size).toBeGreaterThan(1);
    for (const { score, reward, penalty } of run.episodes) expect(score).toBeCloseTo(reward + penalty, 6);
  });
});

describe('rollout filter', () => {
  test.each(['entropy', 'entropy_variance'])('by %s keeps groups, using the scored entropies', async metric => {
    const run = await trained([
      'actor_rollout_ref.rollout.rollout_filter_strategy=top_k',
      'actor_rollout_ref.rollout.rollout_filter_value=0.5',
      `actor_rollout_ref.rollout.rollout_filter_metric=${metric}`,
      'trainer.log_group_rv_table=true',
    ]);
    expectTrained(run);
    expect(groupsOf(run.episodes.filter(e => e.kept))).toHaveLength(1);
    const [line] = run.lines;
    expect(line['rollout/in_group_entropy_mean']).toBeGreaterThan(0);
    expect(line['rollout/in_group_entropy_mean']).toBeLessThan(Math.log(800));
    expect(line).not.toHaveProperty(['timing_s/old_log_prob']); // samples scored for the filter are not scored again

    const table = 'groups-000001.jsonl';
    expect(readdirSync(join(run.folder, 'diagnostics'))).toContain(table);
    const text = readFileSync(join(run.folder, 'diagnostics', table), 'utf8').trim();
    const rows = text.split('\n').map(row => groupRowSchema.parse(JSON.parse(row)));
    expect(rows).toEqual(
      groupsOf(run.episodes).map(group => ({
        ...{ step: 1, group_id: group[0].group_id, tag: 'Words', seed: group[0].seed },
        scores: group.map(e => e.score),
        reward_std: expect.closeTo(deviation(group.map(e => e.score)), 5),
        selected: group.every(e => e.kept),
      })),
    );
  });
});

describe('trajectory filter', () => {
  const best = ['workbench.trajectory_filter.strategy=top', 'workbench.trajectory_filter.only_successful=false'];
  const small = ['ppo_mini_batch_size=2', 'micro_batch_size_per_gpu=2'];

  test('trains only on the best quarter, with advantages computed over complete groups', async () => {
    const overrides = [...small, 'algorithm.norm_adv_by_std_in_grpo=false'];
    const all = await trained(overrides);
    const run = await trained([...overrides, ...best]);
    expectTrained(run);
    const kept = run.episodes.filter(e => e.kept);
    const count = Math.trunc(run.episodes.length / 4);
    expect(kept).toHaveLength(count);
    const least = Math.min(...kept.map(e => e.reward));
    for (const e of run.episodes.filter(e => !e.kept)) {
      expect(e.reward).toBeLessThanOrEqual(least);
      expect(e).toMatchObject({ advantage: null });
    }
    for (const e of kept) expect(e.advantage).toBe(all.episodes.find(({ id }) => id === e.id)!.advantage);
    expect(run.lines[0]).toMatchObject({
      'rollout/trajectory_filter_candidates': run.episodes.length,
      'rollout/trajectory_filter_kept_count': count,
      'rollout/trajectory_filter_kept_ratio': count / run.episodes.length,
      'rollout/trajectory_filter_least': least,
      'rollout/filter_kept_ratio': 1,
      'rollout/empty_after_filter': 0,
      'train/batch_size': count,
    });
    const scores = kept.map(e => e.score);
    const lengths = kept.map(({ tokens }) => tokens.mask.filter(bit => bit === 1).length);
    for (const [key, values] of [
      ['critic/score', scores],
      ['critic/rewards', scores],
      ['response_length', lengths],
    ] as const) {
      expect(run.lines[0][`${key}/mean`]).toBeCloseTo(values.reduce((sum, x) => sum + x, 0) / count, 5);
      expect(run.lines[0][`${key}/min`]).toBeCloseTo(Math.min(...values), 5);
      expect(run.lines[0][`${key}/max`]).toBeCloseTo(Math.max(...values), 5);
    }
    expect(run.lines[0]['critic/score/mean']).not.toBe(all.lines[0]['critic/score/mean']);
    expect(all.lines[0]).not.toHaveProperty(['rollout/trajectory_filter_kept_count']);
    expect(run.lines[0]['actor/grad_norm']).not.toBe(all.lines[0]['actor/grad_norm']);
  });

  test('skips a step in which no episode succeeds, and finally stops the run', async () => {
    const file = 'environments/never.ts';
    workspace.write(file, wordsEnvironment('seed = 0; action = "ab";')); // never ends, never succeeds
    const run = await trained(
      [
        ...[...small, `custom_envs.Words.env_type=${file}`, 'workbench.trajectory_filter.strategy=top'],
        'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=2',
      ],
      5,
    );
    expect(run.end).toBe('finished');
    expect(run.lines.map(line => line['rollout/empty_after_filter'])).toEqual([1, 1]);
    expect(run.lines.map(line => line['early_stopped/empty_filtered_steps'])).toEqual([undefined, 1]);
    expect(run.episodes.some(e => e.kept)).toBe(false);
    expect(run.events.at(-1)).toMatch(/^early_stop: the filters kept no episode in 2 steps in a row/);
  });

  test('keeps or drops complete episodes in a windowed context', async () => {
    const run = await trained([...small, ...best, ...windowed, ...gae]);
    expectTrained(run);
    const kept = run.episodes.filter(e => e.kept);
    expect(kept).toHaveLength(Math.trunc(run.episodes.length / 4));
    expect(run.lines[0]['train/batch_size']).toBe(kept.reduce((sum, e) => sum + e.turns.length, 0));
  });
});

describe('validation', () => {
  test('of several batches plays additional groups, which are the same each time', async () => {
    const run = await trained(['trainer.test_freq=1', 'trainer.validation_steps=3'], 2);
    const seeds = (step: number) => run.validation.filter(e => e.step === step).map(e => e.seed);
    expect(seeds(1)).toEqual([123, 124, 125]);
    expect(seeds(2)).toEqual(seeds(1));
    expect(new Set(run.validation.filter(e => e.step === 1).map(e => e.id)).size).toBe(3);
    expect(run.lines[0]['val-env/Words/success']).toBeCloseTo(
      mean(run.validation.filter(e => e.step === 1).map(e => Number(e.success))),
      6,
    );
    const ragen = await trained(['trainer.test_freq=1', 'trainer.validation_steps=2', 'workbench.compat=ragen']);
    expect(ragen.validation.map(e => e.seed)).toEqual([123, 123]);
  });

  test.each([-1, 0])('never runs with test_freq %i, not even after the last step', async frequency => {
    const run = await trained([`trainer.test_freq=${frequency}`], 2);
    expect(run.end).toBe('finished');
    expect(run.validation).toEqual([]);
    expect(run.lines.flatMap(Object.keys).filter(key => key.startsWith('val-env/'))).toEqual([]);
  });

  test('runs after the last step, even if test_freq does not divide it', async () => {
    const run = await trained(['trainer.test_freq=2'], 3);
    expect([...new Set(run.validation.map(({ step }) => step))]).toEqual([2, 3]);
  });

  test('without success ends the run after five times, with a message and metrics', async () => {
    const file = 'environments/hopeless.ts';
    workspace.write(file, wordsEnvironment('seed = 0; action = "ab";')); // never ends, never succeeds
    const run = await trained([`custom_envs.Words.env_type=${file}`, 'trainer.test_freq=1'], 8);
    expect(run.end).toBe('finished');
    expect(run.lines.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5]);
    expect(run.lines.map(line => line['early_stopped/low_validation_success'])).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      1,
    ]);
    expect(run.events.at(-1)).toMatch(/^early_stop: val-env\/Words\/success was under 1 % in 5 validations in a row/);
    expect(unknownKeys(run.lines)).toEqual([]);
  });

  test('runs once more when the filter ends the run', async () => {
    const file = 'environments/alike.ts';
    workspace.write(
      file,
      wordsEnvironment("return { observation: '', reward: 0, terminated: false, truncated: false, info: {} };"),
    );
    const run = await trained(
      [
        `custom_envs.Words.env_type=${file}`,
        'trainer.test_freq=4',
        'es_manager.format_penalty=0',
        'actor_rollout_ref.rollout.rollout_filter_include_zero=false',
        'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=2',
      ],
      5,
    );
    expect(run.lines.map(line => line['early_stopped/empty_filtered_steps'])).toEqual([undefined, 1]);
    expect(run.validation.map(({ step }) => step)).toEqual([2]);
  });
});
