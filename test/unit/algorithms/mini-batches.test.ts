// Mini- and micro-batches: sizes, order, budget.
import { describe, expect, it } from 'vitest';
import { splitMicroBatches, splitMiniBatches } from '../../../extension/trainer/algorithms/mini-batches';
import { RandomStream } from '../../../extension/trainer/engine/random-stream';

describe('mini-batches', () => {
  it('gives a smaller last batch and nothing twice', () => {
    const batches = splitMiniBatches(80, 32, new RandomStream(5));
    expect(batches.map(batch => batch.length)).toEqual([32, 32, 16]);
    expect(new Set(batches.flatMap(batch => [...batch])).size).toBe(80);
  });

  it('is the same for the same seed and another for another', () => {
    expect(splitMiniBatches(20, 8, new RandomStream(1))).toEqual(splitMiniBatches(20, 8, new RandomStream(1)));
    expect(splitMiniBatches(20, 8, new RandomStream(1))).not.toEqual(splitMiniBatches(20, 8, new RandomStream(2)));
  });

  it('of nothing is nothing, and refuses a size of 0', () => {
    expect(splitMiniBatches(0, 8, new RandomStream(1))).toEqual([]);
    expect(() => splitMiniBatches(4, 0, new RandomStream(1))).toThrow('ppo_mini_batch_size is 0');
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
