// Mini-batches: sizes and order.
import { describe, expect, it } from 'vitest';
import { splitMiniBatches } from '../../../extension/algorithms/mini-batches';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';

describe('mini-batches', () => {
  it('have a smaller last batch and no duplicates', () => {
    const batches = splitMiniBatches(80, 32, new RandomStream(5));
    expect(batches.map(batch => batch.length)).toEqual([32, 32, 16]);
    expect(new Set(batches.flatMap(batch => [...batch])).size).toBe(80);
  });

  it('are equal for equal seeds and differ between seeds', () => {
    expect(splitMiniBatches(20, 8, new RandomStream(1))).toEqual(splitMiniBatches(20, 8, new RandomStream(1)));
    expect(splitMiniBatches(20, 8, new RandomStream(1))).not.toEqual(splitMiniBatches(20, 8, new RandomStream(2)));
  });

  it('are empty for an empty batch, and refuse a size of 0', () => {
    expect(splitMiniBatches(0, 8, new RandomStream(1))).toEqual([]);
    expect(() => splitMiniBatches(4, 0, new RandomStream(1))).toThrow('ppo_mini_batch_size is 0');
  });
});
