// Mini- and micro-batches: sizes, order, budget, and the generator behind the shuffle.
import { describe, expect, it } from 'vitest';
import { splitMicroBatches, splitMiniBatches } from '../../../extension/trainer/algorithms/mini-batches';
import { seededUniforms } from '../../../extension/trainer/algorithms/seeded-random';

describe('mini-batches', () => {
  it('gives a smaller last batch and nothing twice', () => {
    const batches = splitMiniBatches(80, 32, 5);
    expect(batches.map(batch => batch.length)).toEqual([32, 32, 16]);
    expect(new Set(batches.flatMap(batch => [...batch])).size).toBe(80);
  });

  it('is the same for the same seed and another for another', () => {
    expect(splitMiniBatches(20, 8, 1)).toEqual(splitMiniBatches(20, 8, 1));
    expect(splitMiniBatches(20, 8, 1)).not.toEqual(splitMiniBatches(20, 8, 2));
  });

  it('of nothing is nothing, and refuses a size of 0', () => {
    expect(splitMiniBatches(0, 8, 1)).toEqual([]);
    expect(() => splitMiniBatches(4, 0, 1)).toThrow('ppo_mini_batch_size is 0');
  });
});

describe('micro-batches', () => {
  const lengths = [10, 40, 20, 39, 100];
  it('fill the budget from the longest down', () => {
    const batches = splitMicroBatches(Int32Array.of(0, 1, 2, 3), lengths, { maxTokens: 80, maxRows: 64 });
    expect(batches.map(batch => [...batch])).toEqual([
      [1, 3],
      [2, 0],
    ]);
  });

  it('give a sequence over the budget a batch of its own', () => {
    const batches = splitMicroBatches(Int32Array.of(0, 4), lengths, { maxTokens: 80, maxRows: 64 });
    expect(batches.map(batch => [...batch])).toEqual([[4], [0]]);
  });

  it('hold the number of rows', () => {
    const batches = splitMicroBatches(Int32Array.of(0, 1, 2), lengths, { maxTokens: 1e6, maxRows: 1 });
    expect(batches.map(batch => [...batch])).toEqual([[1], [2], [0]]);
  });
});

describe('seeded uniforms', () => {
  it('stay in [0, 1), average one half, and never change', () => {
    const uniform = seededUniforms(123);
    const draws = Array.from({ length: 20000 }, uniform);
    expect(draws.every(draw => draw >= 0 && draw < 1)).toBe(true);
    expect(draws.reduce((sum, draw) => sum + draw, 0) / draws.length).toBeCloseTo(0.5, 2);
    expect(draws.slice(0, 3)).toMatchInlineSnapshot(`
      [
        0.7171703765634447,
        0.7467051632702351,
        0.1081390951294452,
      ]
    `);
  });
});
