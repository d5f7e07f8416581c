// The hash from which all seeds are derived, compared with fixed values: a different hash would change every run.
import { describe, expect, it } from 'vitest';
import { deriveSeed } from '../../../../extension/trainer/rollout/seeds';

describe('derived seeds', () => {
  it('never change', () => {
    expect([
      deriveSeed('train-sampling', 10000, 1, 0, 1),
      deriveSeed('train-sampling', 10000, 1, 0, 2),
      deriveSeed('val-sampling', 123, 0, 511, 5),
    ]).toMatchInlineSnapshot(`
      [
        1715132786,
        3911828688,
        2336372220,
      ]
    `);
  });

  it('depend on the stream and on the order, count and sign of coordinates', () => {
    const seeds = [
      deriveSeed('a', 1, 2),
      deriveSeed('b', 1, 2),
      deriveSeed('a', 2, 1),
      deriveSeed('a', 1),
      deriveSeed('a', 1, 2, 0),
      deriveSeed('a', 1, -2),
      deriveSeed('a', 1, 2 + 2 ** 32),
    ];
    expect(new Set(seeds).size).toBe(seeds.length);
    expect(seeds.every(seed => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32)).toBe(true);
  });

  it('collide no more often than by chance over a long run', () => {
    const seen = new Set<number>();
    for (let step = 1; step <= 100; step++)
      for (let env = 0; env < 128; env++)
        for (let turn = 1; turn <= 5; turn++) seen.add(deriveSeed('train-sampling', 10000, step, env, turn));
    expect(64000 - seen.size).toBeLessThan(5); // 64,000 draws from 2^32 are expected to collide 0.5 times
  });

  it('require integers', () => {
    expect(() => deriveSeed('a', 0.5)).toThrow('seed of a: 0.5');
    expect(() => deriveSeed('a', NaN)).toThrow(RangeError);
  });
});
