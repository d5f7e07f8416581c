// `agent_proxy.batch_adjust_mode`: how the kept samples of a step are split into mini-batches of equal size. With the
// default (`weights`) the last mini-batch is smaller instead, and the loss weights account for it exactly
// (mini-batches.ts, loss-aggregation.ts). RAGEN copies or drops samples until the count is a multiple of
// `batchMultiple`. It does so before computing advantages, so there copies count twice in their group's mean and std.
import { appendAll } from '../common/lists';
import { shuffledIndices, type IntegerStream } from './mini-batches';

export type BatchAdjustMode = 'weights' | 'copy' | 'delete';

/**
 * Returns the number that RAGEN makes the sample count a multiple of: the least common multiple of groups, mini-batch
 * and devices.
 */
export function batchMultiple(...sizes: readonly number[]): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  return sizes.reduce((multiple, size) => (multiple / divisor(multiple, size)) * size, 1);
}

/**
 * Returns the indices of the samples to train on. `weights`: all of 0…count−1. `copy`: all, followed by random
 * duplicates, spread evenly (counts differ by at most one). `delete`: ascending, with randomly chosen samples removed;
 * empty when count < multiple.
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
