// The trajectory filter on worked examples: two groups of four episodes.
import { describe, expect, it } from 'vitest';
import { filterTrajectories, type TrajectoryFilter } from '../../../extension/algorithms/trajectory-filter';

const top: TrajectoryFilter = { strategy: 'top', value: 0.25, metric: 'reward', only_successful: true };
const batch = {
  groups: [0, 0, 0, 0, 7, 7, 7, 7],
  rewards: [1, 0, 1, 1, 0.5, 2, 3, 1],
  scores: [0.9, 0, 1, 0.7, 0.5, 1.9, 1.2, 1],
  successes: [true, false, true, true, false, true, false, true],
};
const keptOf = (filter: TrajectoryFilter, values = batch): number[] =>
  Array.from(filterTrajectories(values, filter).kept.entries())
    .filter(([, bit]) => bit === 1)
    .map(([episode]) => episode);

describe('trajectory filter', () => {
  it('is off with strategy none: all episodes, no metrics', () => {
    const { kept, metrics } = filterTrajectories(batch, { ...top, strategy: 'none' });
    expect([...kept]).toEqual(new Array(8).fill(1));
    expect(metrics).toEqual({});
  });

  it.each([
    [{}, [0, 5]], // a quarter of 8: the return of 3 has no success, and of the equals at 1 group 0 has its turn first
    [{ value: 0.375 }, [0, 5, 7]], // then the first of the equals of group 7, before the second of group 0
    [{ value: 0.49 }, [0, 5, 7]], // 3.92 is three
    [{ value: 0.5 }, [0, 2, 5, 7]],
    [{ value: 1 }, [0, 2, 3, 5, 7]], // fewer succeed than the share: all that do
    [{ value: 0.01 }, [5]], // at least one
    [{ only_successful: false }, [5, 6]],
    [{ metric: 'score' }, [2, 5]],
    [{ metric: 'score', value: 0.5 }, [0, 2, 5, 7]],
    [{ metric: 'score', only_successful: false, value: 0.5 }, [2, 5, 6, 7]],
  ] satisfies [Partial<TrajectoryFilter>, number[]][])('with %o keeps %j', (options, kept) => {
    expect(keptOf({ ...top, ...options })).toEqual(kept);
  });

  it('measures what it may keep, what it kept and the worst of that', () => {
    expect(filterTrajectories(batch, top).metrics).toEqual({
      'rollout/trajectory_filter_candidates': 5,
      'rollout/trajectory_filter_kept_count': 2,
      'rollout/trajectory_filter_kept_ratio': 0.25,
      'rollout/trajectory_filter_least': 1,
    });
  });

  it('keeps nothing where nothing succeeded or there is nothing', () => {
    const failed = { ...batch, successes: batch.successes.map(() => false) };
    expect(keptOf(top, failed)).toEqual([]);
    expect(filterTrajectories(failed, top).metrics).toEqual({
      'rollout/trajectory_filter_candidates': 0,
      'rollout/trajectory_filter_kept_count': 0,
      'rollout/trajectory_filter_kept_ratio': 0,
    });
    const none = { groups: [], rewards: [], scores: [], successes: [] };
    expect(filterTrajectories(none, top).metrics).toMatchObject({ 'rollout/trajectory_filter_kept_ratio': 0 });
  });

  it('never keeps an episode whose reward is no number', () => {
    const lost = { ...batch, rewards: batch.rewards.with(5, NaN) };
    expect(keptOf({ ...top, value: 1 }, lost)).toEqual([0, 2, 3, 7]);
  });
});
