// Metrics of a step, compared with hand-computed values.
import { expect, test } from 'vitest';
import {
  describe as described,
  explainedVariance,
  finiteOnly,
  meanOf,
  metricsOfRollout,
  trainingSuccess,
  validationSuccess,
} from '../../../../extension/trainer/loop/metric-statistics';

test('explained variance is 1 for perfect values, 0 for constant values, and negative for worse values', () => {
  expect(explainedVariance([1, 2, 3], [1, 2, 3])).toBe(1);
  expect(explainedVariance([2, 2, 2], [1, 2, 3])).toBeCloseTo(0, 4); // var(returns) = 1, with 1e-5 in the denominator
  expect(explainedVariance([3, 2, 1], [1, 2, 3])).toBeCloseTo(-3, 3); // returns − values = −2, 0, 2: variance 4
});

test('a list is logged as mean, maximum and minimum', () => {
  expect(described('x', [2, -1, 5])).toEqual({ 'x/mean': 2, 'x/max': 5, 'x/min': -1 });
});

test('a mean over tokens counts each token once, whatever the lengths of the rows', () => {
  expect(meanOf([Float32Array.of(9, 1, 2), Float32Array.of(9, 6)], [Uint8Array.of(0, 1, 1), Uint8Array.of(0, 1)])).toBe(
    3,
  );
});

test('non-finite numbers are omitted', () => {
  expect(finiteOnly({ a: 0, b: NaN, c: Infinity, d: -1 })).toEqual({ a: 0, d: -1 });
});

test('a rollout’s metrics are prefixed with its mode, except those without a prefix in RAGEN', () => {
  const metrics = { 'Maze/success': 0.5, 'rollout/max_tile': 8, 'charts/avg_episode_return': 1, response_length: 9 };
  const batch = { metrics };
  expect(metricsOfRollout(batch, 'train')).toEqual({
    'train/Maze/success': 0.5,
    'rollout/max_tile': 8,
    'charts/avg_episode_return': 1,
    'train/charts/avg_episode_return': 1,
    'train/response_length': 9,
  });
  expect(Object.keys(metricsOfRollout(batch, 'val-env')).every(key => key.startsWith('val-env/'))).toBe(true);
});

test('success is the mean over tags, and undefined without tags', () => {
  const metrics = {
    'val-env/A/success': 1,
    'val-env/B/success': 0,
    'val-env/A/non-zero/success': 1,
    'train/A/success': 0.25,
  };
  expect(validationSuccess(metrics)).toBe(0.5);
  expect(trainingSuccess(metrics)).toBe(0.25);
  expect(validationSuccess({ 'train/A/success': 0.25 })).toBeNull();
});
