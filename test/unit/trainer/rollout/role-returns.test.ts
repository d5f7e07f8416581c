// Credit by role, checked by numbers computed by hand: rewards earned while another role acts, returns, groups of
// samples, statistics of the rollout filter, and advantages.
import { describe, expect, test } from 'vitest';
import { builtInFilters } from '../../../../extension/algorithms/built-in-filters';
import { filterRollouts } from '../../../../extension/algorithms/rollout-filter';
import { promptGroups } from '../../../../extension/trainer/loop/group-filter';
import { builtInEstimators } from '../../../../extension/trainer/loop/built-in-estimators';
import { advantageBatch, estimatorSettings, tokenAdvantages } from '../../../../extension/trainer/loop/advantage-batch';
import { normalizedScores } from '../../../../extension/trainer/loop/rollout-collection';
import { batchSamples, tokenRewards } from '../../../../extension/trainer/loop/training-batch';
import type { LoadedEnvironment } from '../../../../extension/protocol/environment-link';
import { withComponentCheck } from '../../../../extension/trainer/rewards/component-check';
import { requireRoleSettings } from '../../../../extension/trainer/rewards/role-checks';
import { creditRoles, creditWaiting, roleReturns } from '../../../../extension/trainer/rollout/role-credit';
import { returnsOf, roleScoresOf } from '../../../../extension/trainer/rollout/role-returns';
import type { PlayedTurn, RolloutEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import { partial } from '../../../support/partial';
import { load } from '../config/presets';

const turn = (number: number, role: string, reward = 0, penalty = 0) =>
  partial<PlayedTurn>({ turn: number, role, reward, penalty });

describe('the credit of a step', () => {
  test('belongs to the last turn of each role; before its first turn, it waits', () => {
    const turns = [turn(1, 'white'), turn(2, 'black'), turn(3, 'white', 1)];
    const states = {
      white: { success: false, waiting: 0 },
      black: { success: false, waiting: 0 },
      judge: { success: false, waiting: 0 },
    };
    creditRoles(turns, states, [{ white: { success: true }, black: { reward: -1 }, judge: { reward: 0.25 } }]);
    creditRoles(turns, states, [{ black: { reward: -0.5, success: false } }]);
    expect(turns.map(({ reward }) => reward)).toEqual([0, -1.5, 1]);
    expect(states.white.success).toBe(true);
    expect(states.judge.waiting).toBe(0.25);
    const first = turn(4, 'judge', 1);
    creditWaiting(first, states);
    creditRoles([...turns, first], states, [{ judge: { reward: 0.5 } }]);
    expect([first.reward, states.judge.waiting]).toEqual([1.75, 0]);
  });

  test('is part of the return of a role that never plays', () => {
    const states = { white: { success: false, waiting: 0 }, black: { success: true, waiting: 2 } };
    expect(roleReturns(states, [turn(1, 'white', 1)])).toMatchObject({
      white: { turns: 1, reward: 1, score: 1 },
      black: { turns: 0, reward: 2, score: 2 },
    });
  });

  test('sums to the return of a role, with its penalties, its components and those of the episode', () => {
    const turns = [
      turn(1, 'white', 0.5, -0.1),
      { ...turn(2, 'black', -1), component_reward: 0.2 },
      turn(3, 'white', 1),
    ];
    expect(roleReturns({ white: { success: true }, black: { success: false } }, turns, 0.05)).toEqual({
      white: { turns: 2, reward: 1.5, penalty: -0.1, score: 1.5 - 0.1 + 0.05, success: true },
      black: { turns: 1, reward: -1, penalty: 0, score: -1 + 0.25, success: false },
    });
  });
});

/** A game of one turn per role, in group `group`. */
const game = (group: number, white: number, black: number): RolloutEpisode => {
  const turns = [turn(1, 'white', white), turn(2, 'black', black)];
  return partial<RolloutEpisode>({
    ...{
      group_id: group,
      tag: 'Game',
      seed: group,
      score: white + black,
      reward: white + black,
      success: white > 0,
      turns,
    },
    roles: roleReturns({ white: { success: white > 0 }, black: { success: black > 0 } }, turns),
    samples: ['white', 'black'].map((role, index) => ({
      ...{ ids: Int32Array.of(1, 2, 3), mask: Uint8Array.of(0, 1, 1), logprobs: new Float32Array(3), role },
      turns: [{ turn: index + 1, span: [1, 3] }],
    })),
  });
};
/** White wins three of four games of group 0; group 1 has equal results. */
const games = [game(0, 1, -1), game(0, 1, -1), game(0, 1, -1), game(0, -1, 1), game(1, 1, -1), game(1, 1, -1)];

describe('the samples of roles', () => {
  const { config } = load('base', 'algorithm.adv_estimator=grpo');
  const samples = batchSamples(games, config);

  test('are compared with the same role in the group', () => {
    expect(samples.map(({ group }) => group)).toEqual([0, -1, 0, -1, 0, -1, 0, -1, 1, -17, 1, -17]);
    expect(new Set(samples.map(({ countsAs }) => countsAs)).size).toBe(12);
  });

  test('get the advantage of their own role', () => {
    const rewards = tokenRewards(samples, normalizedScores(games, config), config);
    expect(rewards.slice(0, 2).map(row => [...row])).toEqual([
      [0, 0, 1],
      [0, 0, -1],
    ]);
    const zeros = samples.map(() => new Float32Array(3));
    const input = { rewards, values: zeros, logprobs: zeros, baselines: samples.map(() => 0) };
    const batch = advantageBatch(samples, input, config);
    const estimate = builtInEstimators.grpo.estimate(batch, estimatorSettings(config, 1));
    const { advantages } = tokenAdvantages(batch, estimate);
    // white: scores 1, 1, 1, −1 with mean 0.5 and deviation 1; black: −1, −1, −1, 1 with mean −0.5 and deviation 1
    const at = advantages.map(row => row[1]);
    for (const [index, expected] of [0.5, -0.5, 0.5, -0.5, 0.5, -0.5, -1.5, 1.5, 0, 0, 0, 0].entries())
      expect(at[index]).toBeCloseTo(expected, 5);
  });

  test('give turn scores to the turns of their role', () => {
    const turnwise = load('base', 'agent_proxy.use_turn_scores=true').config;
    const rewards = tokenRewards(batchSamples(games.slice(3, 4), turnwise), () => 9, turnwise);
    expect(rewards.map(row => [...row])).toEqual([
      [0, 0, -1],
      [0, 0, 1],
    ]);
  });
});

test('the rollout filter ranks groups by the spread within each role, which the sum of a zero-sum game hides', () => {
  const shown = {
    scoreOf: (game: RolloutEpisode, role?: string) => game.roles![role!].score,
    entropyOf: () => undefined,
  };
  const groups = promptGroups(games, shown, 1);
  const scores = Float32Array.from(builtInFilters.reward_variance.score(groups, { step: 1, seed: 1 }));
  const filtered = filterRollouts(groups, { scores, selected: [0] });
  expect([...scores]).toEqual([1, 0]);
  expect([...filtered.groupStds]).toEqual([1, 0]);
  expect([...filtered.selected]).toEqual([1, 0]);
  expect(filtered.metrics).toMatchObject({ 'rollout/in_group_reward_std': 0.5, 'rollout/zero_variance_ratio': 0.5 });
});

test('a role without a turn has no return to compare', () => {
  const alone = partial<RolloutEpisode>({
    ...game(2, 1, 0),
    roles: roleReturns({ white: { success: true }, black: { success: false } }, [turn(1, 'white', 1)]),
  });
  expect(returnsOf([alone]).map(({ role, score }) => [role, score])).toEqual([['white', 1]]);
  expect(roleScoresOf(alone, () => 1)).toEqual({ white: 1 });
});

test.each([
  ['algorithm.adv_estimator=remax', /adv_estimator is remax, but the environment Bandit has roles .*: set it to grpo/],
  [
    'agent_proxy.context_window_mode=single_turn',
    /is single_turn, but environment bandit has roles, .*: set it to full/,
  ],
  ['workbench.trajectory_filter.strategy=top', /strategy is top, but .* the filter ranks episodes: set it to none/],
])('%s is refused in one sentence, also in an edit', (override, message) => {
  const { config } = load('base', override, 'es_manager.train.env_configs.tags=[Bandit]');
  const plain = partial<LoadedEnvironment>({ tag: 'Bandit', name: 'bandit', source: '/bandit.ts' });
  const loaded = [{ ...plain, roles: [{ name: 'white' }] }];
  expect(() => requireRoleSettings(loaded, config)).toThrow(message);
  expect(() => requireRoleSettings([plain], config)).not.toThrow();
  const prepared = { tag: 'Bandit', files: ['/bandit.ts'], environment: loaded[0] };
  expect(withComponentCheck(prepared, config)).toMatchObject({
    problems: [{ message: expect.stringMatching(message) as string }],
  });
});
