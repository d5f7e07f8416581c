// The rollout filter on one vector of group scores: every strategy, both types, with and without zero scores, and edge
// cases.
import { describe, expect, it } from 'vitest';
import type { FilterEpisode, PromptGroup } from '../../../envs/api/plugins/filter';
import { builtInFilters, type FilterMetric } from '../../../extension/algorithms/built-in-filters';
import { selectGroups, type GroupSelection } from '../../../extension/algorithms/group-selection';
import { filterLossScale, filterRollouts, groupRewardMetrics } from '../../../extension/algorithms/rollout-filter';
import { UserError } from '../../../extension/common/user-error';
import { partial } from '../../support/partial';

type Call = Partial<{
  strategy: GroupSelection['rollout_filter_strategy'];
  type: 'largest' | 'smallest';
  zero: boolean;
  mode: 'linear' | 'softmax';
  eps: number;
}>;

const options = (
  value: number,
  { strategy = 'top_p', type = 'largest', zero = true, mode = 'linear', eps = 0.01 }: Call,
) => ({
  rollout_filter_value: value,
  rollout_filter_strategy: strategy,
  rollout_filter_type: type,
  rollout_filter_include_zero: zero,
  rollout_filter_top_p_prob_mode: mode,
  rollout_filter_selection_eps: eps,
});
const select = (scores: number[], value: number, call: Call = {}): number[] =>
  selectGroups(Float32Array.from(scores), options(value, call));

const S = [0.5, 0, 0.3, 0.1, 0, 0.4, 0.05, 0.2];
const all = [0, 1, 2, 3, 4, 5, 6, 7];
const nonZero = [0, 2, 3, 5, 6, 7];
const sorted = (groups: number[]): number[] => groups.toSorted((a, b) => a - b);

describe('linear top_p', () => {
  it('takes the largest scores until the mass is reached', () => {
    expect(select(S, 0.9)).toEqual([0, 5, 2, 7]);
    expect(select(S, 0.9, { zero: false })).toEqual([0, 5, 2, 7]);
    expect(select(S, 0.5)).toEqual([0, 5]);
  });

  it('stops at a leading zero score when it takes the smallest', () => {
    expect(select(S, 0.9, { type: 'smallest' })).toEqual([]);
    expect(select(S, 0.9, { type: 'smallest', zero: false })).toEqual([6, 3, 7, 2, 5, 0]);
    expect(select(S, 0.5, { type: 'smallest', zero: false })).toEqual([6, 3, 7, 2, 5]);
  });

  it('selects nothing for mass 0, and all for mass 1', () => {
    expect(select(S, 0)).toEqual([]);
    expect(select(S, 1)).toEqual(all);
    expect(select(S, 1, { zero: false })).toEqual(nonZero);
  });

  it('selects nothing from an all-zero batch or one whose mass is below eps', () => {
    expect(select([0, 0, 0, 0], 0.9)).toEqual([]);
    expect(select([0.004, 0.004, 0.001], 0.9, { zero: false })).toEqual([]);
  });

  it.each([
    { scores: [4, 3, 2, 1], value: 0.6, kept: [0, 1] },
    { scores: [3, 1, 1, 0], value: 0.9, kept: [0, 1, 2] },
    { scores: [4, 2, 0, 0], value: 0.9, kept: [0, 1] },
    { scores: [-0.5, 0.2, 0.4, -0.1], value: 0.9, kept: [] },
    { scores: [-0.5, -0.2], value: 0.9, kept: [] },
  ])('$scores at $value keeps $kept', ({ scores, value, kept }) => expect(select(scores, value)).toEqual(kept));
});

describe('softmax top_p', () => {
  const mode = 'softmax';
  it('keeps almost every group at .9', () => {
    expect(sorted(select(S, 0.9, { mode }))).toEqual(all);
    expect(sorted(select(S, 0.9, { mode, zero: false }))).toEqual(nonZero);
  });

  it('takes the smallest first for type smallest', () => {
    expect(select(S, 0.5, { mode, type: 'smallest' })).toEqual([1, 4, 6, 3]);
  });

  it('takes at least one group, and counts equal scores', () => {
    expect(select(S, 0, { mode })).toEqual([0]);
    expect(select([0, 0, 0, 0], 0.9, { mode })).toEqual([0, 1, 2, 3]);
    expect(select([1, 1, 1], 0.6, { mode })).toEqual([0, 1]);
    expect(select([1, 1, 1, 0], 0.6, { mode })).toEqual([0, 1, 2]);
  });
});

describe('top_k', () => {
  const strategy = 'top_k';
  it('counts relative to the original number of groups', () => {
    expect(select(S, 0.25, { strategy })).toEqual([0, 5]);
    expect(select(S, 0.25, { strategy, type: 'smallest' })).toEqual([1, 4]);
    expect(select(S, 0.25, { strategy, type: 'smallest', zero: false })).toEqual([6, 3]);
    expect(sorted(select(S, 0.9, { strategy, zero: false }))).toEqual(nonZero);
    expect(select(S, 0.05, { strategy })).toEqual([0]);
    expect(select([0, 0, 0, 0], 0.25, { strategy })).toEqual([0]);
  });

  it('takes an absolute number of groups with top_k_abs', () => {
    expect(select(S, 3, { strategy: 'top_k_abs' })).toEqual([0, 5, 2]);
    expect(select(S, 0, { strategy: 'top_k_abs' })).toEqual([0]);
    expect(sorted(select(S, 99, { strategy: 'top_k_abs', zero: false }))).toEqual(nonZero);
  });
});

describe('min_p', () => {
  const strategy = 'min_p';
  it.each([
    { value: 0.5, call: {}, kept: [0, 2, 5] },
    { value: 0.2, call: {}, kept: [0, 2, 3, 5, 7] },
    { value: 0, call: {}, kept: all },
    { value: 1, call: {}, kept: [0] },
    { value: 0.5, call: { type: 'smallest' }, kept: [1, 4] },
    { value: 0.5, call: { type: 'smallest', zero: false }, kept: [3, 6] },
  ] as const)('$value $call keeps $kept', ({ value, call, kept }) =>
    expect(select(S, value, { strategy, ...call })).toEqual(kept),
  );

  it('tolerates rounding', () => {
    expect(select([0.0001, 0.0001 - 3e-11], 1, { strategy })).toEqual([0, 1]);
  });

  it('keeps equal scores and can select nothing from negative ones', () => {
    expect(select([0, 0, 0, 0], 0.5, { strategy })).toEqual([0, 1, 2, 3]);
    expect(select([-1, -2], 0.5, { strategy })).toEqual([]);
  });
});

describe('selection edge cases', () => {
  it('select nothing when zero scores are excluded and all are zero', () => {
    for (const strategy of ['top_p', 'top_k', 'top_k_abs', 'min_p'] as const)
      expect(select([0, 1e-11, NaN], 1, { strategy, zero: false })).toEqual([]);
  });

  it('never select NaN, unless the filter is off', () => {
    expect(select([NaN, 1, 2], 0.9)).toEqual([2, 1]);
    expect(select([NaN, 1], 5, { strategy: 'top_k_abs', type: 'smallest' })).toEqual([1]);
    expect(select([NaN, 1], 1)).toEqual([0, 1]);
  });

  it('name the key of an unknown strategy', () => {
    const bad = { ...options(1, { zero: false }), rollout_filter_strategy: 'top' as 'top_p' };
    expect(() => selectGroups(Float32Array.of(1), bad)).toThrow(UserError);
    expect(() => selectGroups(Float32Array.of(1), bad)).toThrow(/rollout_filter_strategy is top/);
  });
});

/** Prompt groups with the given episodes' scores, entropies and lengths. */
const groupsOf = (
  groups: readonly (readonly { score: number; entropy?: number; tokens?: number }[])[],
): PromptGroup[] =>
  groups.map((episodes, group) => ({
    ...{ group: 4 + 5 * group, tag: 'T', seed: group, draw: 7 - group },
    episodes: episodes.map(values => partial<FilterEpisode>({ tokens: 0, ...values })),
  }));

/** Scores of the groups by a built-in filter. */
const scoresOf = (metric: FilterMetric, groups: readonly PromptGroup[]): number[] =>
  Array.from(builtInFilters[metric].score(groups, { step: 1, seed: 1 }));

describe('rollout filter', () => {
  const batch = groupsOf([
    [
      { score: 1, entropy: 0.5, tokens: 10 },
      { score: 0, entropy: 0.7, tokens: 20 },
    ],
    [
      { score: 3, entropy: 2, tokens: 5 },
      { score: 3, entropy: 4, tokens: 5 },
    ],
  ]);

  it('scores groups as RAGEN does', () => {
    const score = (scores: number[], metric: FilterMetric) =>
      scoresOf(metric, groupsOf([scores.map(score => ({ score }))]))[0];
    expect(score([1, 0, 0, 1], 'reward_variance')).toBeCloseTo(0.57735, 5);
    expect(score([1, 0, 0, 1], 'reward')).toBe(0.5);
    expect(score([10.9, -1, -1, -1], 'reward_std')).toBeCloseTo(5.95, 5);
    expect(score([10.9, -1, -1, -1], 'reward')).toBeCloseTo(1.975, 6);
    expect(score([10.9, -1, -1, -1], 'reward_sum')).toBeCloseTo(7.9, 6);
    expect(score([0.1, 0.1, 0.1], 'reward_std')).toBe(0);
    expect(scoresOf('entropy_variance', groupsOf([[{ score: 1, entropy: 5 }]]))).toEqual([0]);
  });

  it.each([
    ['reward_variance', [Math.SQRT1_2, 0], undefined],
    ['reward', [0.5, 3], undefined],
    ['entropy', [0.6, 3], 'entropy'],
    ['entropy_variance', [0.1 * Math.SQRT2, Math.SQRT2], 'entropy'],
    ['entropy_std', [0.1 * Math.SQRT2, Math.SQRT2], 'entropy'],
    ['length', [15, 5], 'length'],
    ['random', [7, 6], undefined],
  ] as const)('scores by %s, and logs the values that it scores', (metric, expected, name) => {
    const scores = scoresOf(metric, batch);
    expected.forEach((score, group) => expect(scores[group]).toBeCloseTo(score, 9));
    const { measured } = builtInFilters[metric];
    const { metrics } = filterRollouts(batch, { scores: Float32Array.from(scores), selected: [0] }, measured);
    const kinds = Object.keys(metrics).flatMap(key => /in_group_(\w+)_std$/.exec(key)?.[1] ?? []);
    expect([...new Set(kinds)]).toEqual(['reward', ...(name ? [name] : [])]);
    expect(metrics['rollout/zero_variance_ratio']).toBe(0.5); // of the scores, whatever the filter measures
  });

  it('describes all groups and the selected ones by metrics', () => {
    const result = filterRollouts(batch, { scores: Float32Array.of(Math.SQRT1_2, 0), selected: [0] });
    expect(result.groups).toEqual([4, 9]);
    expect([...result.selected]).toEqual([1, 0]);
    expect(result.groupStds[0]).toBeCloseTo(Math.SQRT1_2, 6);
    expect(result.metrics).toMatchObject({
      'rollout/filter_kept_count': 1,
      'rollout/filter_kept_ratio': 0.5,
      'rollout/filter_zero_count': 1,
      'rollout/in_group_max': 2,
      'rollout/in_group_mean': 1.75,
      'rollout/chosen_in_group_mean': 0.5,
      'rollout/in_group_reward_sum': 3.5,
      'rollout/chosen_in_group_reward_sum': 1,
    });
    expect(result.metrics['rollout/in_group_reward_std']).toBeCloseTo(Math.SQRT1_2 / 2, 9);
    expect(result.metrics['rollout/chosen_in_group_std']).toBeCloseTo(Math.SQRT1_2, 9);
  });

  it('computes the statistics of rewards in groups without a filter; groups of one are left out', () => {
    const { scores, groups } = { scores: [1, 0, 3, 3, 7], groups: [4, 4, 9, 9, 5] };
    expect(groupRewardMetrics({ scores, groups })).toEqual({
      'rollout/in_group_reward_std': Math.SQRT1_2 / 2,
      'rollout/in_group_reward_max': 2,
      'rollout/in_group_reward_mean': 1.75,
      'rollout/in_group_reward_sum': 3.5,
      'rollout/zero_variance_ratio': 0.5,
    });
    expect(groupRewardMetrics({ scores: [7], groups: [5] })).toEqual({});
  });

  it('omits metrics of the selection when nothing is selected', () => {
    const { metrics } = filterRollouts(batch, { scores: Float32Array.of(0, 0), selected: [] });
    expect(metrics['rollout/filter_kept_count']).toBe(0);
    expect(metrics).not.toHaveProperty(['rollout/chosen_in_group_std']);
  });

  it('names an episode without the entropy that a filter needs', () => {
    expect(builtInFilters.entropy.needs).toBe('entropy');
    expect(() => scoresOf('entropy', groupsOf([[{ score: 1 }]]))).toThrow('has no entropy');
  });

  it('scales the loss by the kept share', () => {
    expect(filterLossScale('none', 0.5)).toBe(1);
    expect(filterLossScale('linear', 4 / 8)).toBe(0.5);
    expect(filterLossScale('sqrt', 4 / 8)).toBeCloseTo(0.7071, 4);
  });
});
