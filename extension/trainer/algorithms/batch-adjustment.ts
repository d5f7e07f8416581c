// `agent_proxy.batch_adjust_mode`: how the samples that a step keeps become mini-batches of one size. By default they don't: the last
// mini-batch is smaller and the loss weights are exact for it (mini-batches.ts, loss-aggregation.ts). RAGEN instead copies or drops
// samples until their number divides; since it does so before advantages, copies count twice in their group's moments there.
import { appendAll } from '../../protocol/lists';
import { shuffledIndices, type IntegerStream } from './mini-batches';

export type BatchAdjustMode = 'weights' | 'copy' | 'delete';

/** The number that RAGEN makes the count of samples a multiple of: the least common multiple of groups, mini-batch and devices. */
export function batchMultiple(...sizes: readonly number[]): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  return sizes.reduce((multiple, size) => (multiple / divisor(multiple, size)) * size, 1);
}

/**
 * Indices of the samples to train on: all of 0…count−1 and, as `copy`, randomly chosen ones again behind them, each at most once more
 * than any other; as `delete`, ascending without randomly chosen ones, none where count < multiple.
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
