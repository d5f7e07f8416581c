// Reward normalisation and the advantage weights, against hand-computed vectors.
import { describe, expect, it } from 'vitest';
import { lengthWeights, softAdvantageWeights } from '../../../extension/algorithms/advantage-weights';
import { normalizeRewards } from '../../../extension/algorithms/reward-normalization';
import { placeRewards } from '../../../extension/algorithms/token-sequences';
import { expectNumbers } from './expect-numbers';

describe('reward normalisation', () => {
  const group = { scores: [1, 0, 0, 1], groups: [0, 0, 0, 0], tags: ['A', 'A', 'A', 'A'] };
  const twoGroups = { scores: [1, 0, 0, 0], groups: [0, 0, 1, 1], tags: ['A', 'A', 'A', 'A'] };

  it('is off with identity', () => {
    expectNumbers(normalizeRewards(group, { grouping: 'state', method: 'identity' }), [1, 0, 0, 1]);
  });

  it('subtracts the mean, or also divides by the standard deviation', () => {
    expectNumbers(normalizeRewards(group, { grouping: 'state', method: 'mean' }), [0.5, -0.5, -0.5, 0.5]);
    expectNumbers(
      normalizeRewards(group, { grouping: 'state', method: 'mean_std' }),
      [0.866, -0.866, -0.866, 0.866],
      4,
    );
  });

  it('pools all groups of an environment with inductive', () => {
    expectNumbers(normalizeRewards(twoGroups, { grouping: 'inductive', method: 'mean_std' }), [1.5, -0.5, -0.5, -0.5]);
    expectNumbers(normalizeRewards(twoGroups, { grouping: 'state', method: 'mean_std' }), [0.707106, -0.707106, 0, 0]);
  });

  it('keeps environments apart with inductive and pools them with batch', () => {
    const mixed = { scores: [10, 20, 1, 2], groups: [0, 0, 1, 1], tags: ['A', 'A', 'B', 'B'] };
    expectNumbers(normalizeRewards(mixed, { grouping: 'inductive', method: 'mean' }), [-5, 5, -0.5, 0.5]);
    expectNumbers(normalizeRewards(mixed, { grouping: 'batch', method: 'mean' }), [1.75, 11.75, -7.25, -6.25]);
  });

  it('clips negative outliers at −1 and positive ones at 3 with asym_clip', () => {
    const winner = {
      scores: [10.9, ...new Array<number>(15).fill(-1)],
      groups: new Uint8Array(16),
      tags: [] as string[],
    };
    const asym = normalizeRewards(winner, { grouping: 'state', method: 'asym_clip' });
    expectNumbers(asym, [3, ...new Array<number>(15).fill(-0.25)]);
    // three at 2/3 and one at −2 have σ = 4/3, so z = .5, .5, .5, −1.5
    const loser = { scores: [2 / 3, 2 / 3, 2 / 3, -2], groups: new Uint8Array(4), tags: [] as string[] };
    expectNumbers(normalizeRewards(loser, { grouping: 'state', method: 'asym_clip' }), [0.5, 0.5, 0.5, -1]);
    const mirrored = { ...loser, scores: [-2 / 3, -2 / 3, -2 / 3, 2] };
    expectNumbers(normalizeRewards(mirrored, { grouping: 'state', method: 'asym_clip' }), [-0.5, -0.5, -0.5, 1.5]);
  });

  it('leaves scores unchanged when every episode is its own group, and gives 0 to a single one among others', () => {
    expectNumbers(
      normalizeRewards({ scores: [3, 4], groups: [0, 1], tags: ['A', 'A'] }, { grouping: 'state', method: 'mean' }),
      [3, 4],
    );
    expectNumbers(
      normalizeRewards(
        { scores: [3, 4, 6], groups: [0, 1, 1], tags: ['A', 'A', 'A'] },
        { grouping: 'state', method: 'mean_std' },
      ),
      [0, -0.707106, 0.707106],
    );
  });
});

describe('advantage weights', () => {
  it('weights groups by their standard deviation', () => {
    const { weights, metrics } = softAdvantageWeights([0.5, 0, 0.25]);
    expectNumbers(weights, [0.999998, 0, 0.499999], 6);
    expect(metrics.soft_reweight_max).toBeCloseTo(0.999998, 6);
    expect(metrics.soft_reweight_min).toBe(0);
    expect(metrics.soft_reweight_mean).toBeCloseTo(0.499999, 6);
  });

  it('is 0, not NaN, when no group has spread', () => {
    expectNumbers(softAdvantageWeights([0, 0]).weights, [0, 0]);
  });

  it('divides by relative length', () => {
    expectNumbers(lengthWeights([10, 30, 0]), [4 / 3, 4 / 9, 0]);
  });
});

describe('token rewards', () => {
  // A sequence of 19 tokens whose two assistant turns end at 11 and 18.
  it('puts the score on the last sampled token, or each turn’s reward on that turn’s last', () => {
    expect(placeRewards(19, [18], [3])).toEqual(Float32Array.from({ length: 19 }, (_, t) => (t === 18 ? 3 : 0)));
    const turns = placeRewards(19, [11, 18], [1, 2]);
    expect([turns[11], turns[18], turns.reduce((sum, reward) => sum + reward, 0)]).toEqual([1, 2, 3]);
  });
});
