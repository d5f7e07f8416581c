// Which samples a step trains on: DAPO's dynamic sampling and overlong penalty, and RAGEN's ways to make the batch
// divisible.
import { describe, expect, it } from 'vitest';
import { adjustedSamples, batchMultiple } from '../../../extension/algorithms/batch-adjustment';
import { groupsToSample, overlongReward, filterGroups } from '../../../extension/algorithms/dapo';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';

describe('dynamic sampling', () => {
  it('drops groups with equal scores, and keeps single samples', () => {
    const batch = { groups: [5, 5, 7, 7, 9, 5, 7], scores: [0.1, 0.1, 1, 0, 3, 0.1, 1] };
    expect(filterGroups(batch)).toEqual({ kept: [7, 9], dropped: [5] });
  });

  it.each([
    { progress: { kept: 0, sampled: 0, rounds: 0 }, next: 8 },
    { progress: { kept: 8, sampled: 8, rounds: 1 }, next: 0 },
    { progress: { kept: 6, sampled: 8, rounds: 1 }, next: 3 },
    { progress: { kept: 1, sampled: 8, rounds: 1 }, next: 8 },
    { progress: { kept: 0, sampled: 8, rounds: 1 }, next: 8 },
    { progress: { kept: 6, sampled: 24, rounds: 3 }, next: 0 },
  ])('requests $next of 8 after $progress', ({ progress, next }) => {
    expect(groupsToSample({ wanted: 8, max_num_gen_batches: 3, ...progress })).toBe(next);
  });

  it('continues without a limit of rounds', () => {
    const progress = { wanted: 8, kept: 7, sampled: 80, rounds: 10 };
    expect(groupsToSample({ ...progress, max_num_gen_batches: 0 })).toBe(8);
  });
});

describe('overlong answers', () => {
  const buffer = { len: 4, penalty_factor: 0.5 };
  it.each([
    [10, 0],
    [12, 0],
    [13, -0.125],
    [16, -0.5],
    [20, -0.5],
  ])('of %i tokens with a limit of 16 get %f', (length, reward) =>
    expect(overlongReward(length, 16, buffer)).toBeCloseTo(reward, 12),
  );

  it('are penalized only beyond the limit when there is no buffer', () => {
    const none = { len: 0, penalty_factor: 1 };
    expect([16, 17].map(length => overlongReward(length, 16, none))).toEqual([0, -1]);
  });
});

describe('batch adjustment', () => {
  const adjusted = (count: number, multiple: number, mode: 'weights' | 'copy' | 'delete'): number[] =>
    Array.from(adjustedSamples(count, multiple, mode, new RandomStream(3)));

  it('makes the size divisible by groups, mini-batch and devices', () => {
    expect(batchMultiple(8, 32, 1)).toBe(32);
    expect(batchMultiple(6, 4, 1)).toBe(12);
  });

  it('adds RAGEN’s 16 copies to 80 samples, removes 16, or leaves the batch unchanged', () => {
    const copied = adjusted(80, 32, 'copy');
    expect(copied.slice(0, 80)).toEqual([...Array(80).keys()]);
    expect(new Set(copied.slice(80)).size).toBe(16);
    const deleted = adjusted(80, 32, 'delete');
    expect([deleted.length, new Set(deleted).size]).toEqual([64, 64]);
    expect(deleted).toEqual(deleted.toSorted((a, b) => a - b));
    expect(adjusted(80, 32, 'weights')).toEqual([...Array(80).keys()]);
    for (const mode of ['copy', 'delete', 'weights'] as const) expect(adjusted(64, 32, mode)).toHaveLength(64);
  });

  it('copies samples several times when there are few, and returns an empty batch when all are removed', () => {
    const copied = adjusted(3, 8, 'copy');
    const counts = [0, 1, 2].map(sample => copied.filter(other => other === sample).length);
    expect(counts.toSorted((a, b) => a - b)).toEqual([2, 3, 3]);
    expect(adjusted(3, 8, 'delete')).toEqual([]);
  });
});
