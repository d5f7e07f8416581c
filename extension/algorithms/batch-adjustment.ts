// Implements `agent_proxy.batch_adjust_mode`, which applies if the number of samples that passed the filters is not a
// multiple of `batchMultiple`. To reach a multiple, mode `copy` duplicates samples, and mode `delete` drops samples.
// The default, `weights`, changes no samples: the last mini-batch is smaller, and the loss weights correct for its size
// (mini-batches.ts, loss-aggregation.ts). RAGEN adjusts the batch before it computes advantages, so a copied sample
// contributes twice to the mean and std of its group.
import { appendAll } from '../common/lists';
import { shuffledIndices, type IntegerStream } from './mini-batches';

export type BatchAdjustMode = 'weights' | 'copy' | 'delete';

/**
 * Returns the least common multiple of `sizes`. RAGEN adjusts the sample count to a multiple of the number of prompt
 * groups, of the mini-batch size and of the number of devices.
 */
export function batchMultiple(...sizes: readonly number[]): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  return sizes.reduce((multiple, size) => (multiple / divisor(multiple, size)) * size, 1);
}

/**
 * Returns the indices of the samples to train on. `weights`: 0…count−1. `copy`: 0…count−1, followed by random
 * duplicates; the numbers of duplicates of any two samples differ by at most one. `delete`: the ascending indices that
 * remain after random drops; empty if count < multiple.
 */
export function adjustedSamples(
  count: number,
  multiple: number,
  mode: BatchAdjustMode,
  random: IntegerStream,
): Int32Array {
  const all = Int32Array.from({ length: count }, (_, sample) => sample);
  const excess = count % multiple;
  if (mode === 'weights' || excess === 0) return all;
  if (mode === 'delete') return shuffledIndices(count, random).slice(excess).sort();
  const copies: number[] = [];
  while (copies.length < multiple - excess)
    appendAll(copies, shuffledIndices(count, random).slice(0, multiple - excess - copies.length));
  return Int32Array.from([...all, ...copies]);
}
