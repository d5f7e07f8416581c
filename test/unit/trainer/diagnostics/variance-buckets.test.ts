// The groups in each bucket of reward deviation.
import { expect, it } from 'vitest';
import { varianceBuckets } from '../../../../extension/trainer/diagnostics/variance-buckets';

const held = (...args: Parameters<typeof varianceBuckets>) =>
  Object.fromEntries(varianceBuckets(...args).map(({ name, groups }) => [name, groups]));

it('quantile buckets are in ascending order of deviation, and the last has the remaining groups', () => {
  expect(held([0.5, 0.1, 0.4, 0.2, 0.3, 0.6, 0, 0.7], 'quantile', 3)).toEqual({
    bucket_1: [6, 1],
    bucket_2: [3, 4],
    bucket_3: [2, 0, 5, 7],
    all: [0, 1, 2, 3, 4, 5, 6, 7],
  });
  expect(held([2, 1], 'quantile', 6)).toEqual({ bucket_1: [1], bucket_2: [0], all: [0, 1] });
});

it('buckets with fixed bounds include their lower bound and keep their number; empty buckets are omitted', () => {
  expect(held([0, 0.99, 1, 4.5, 5, 90], 'fixed_rv', 2)).toEqual({
    bucket_1: [0, 1],
    bucket_2: [2],
    bucket_5: [3],
    bucket_6: [4, 5],
    all: [0, 1, 2, 3, 4, 5],
  });
});

it('without groups, no bucket is returned', () => {
  expect(varianceBuckets([], 'quantile', 6)).toEqual([]);
});
