// From kept samples to optimizer steps: mini-batches, one step each, in an order drawn from a seeded stream.
// Invariant: every sample is in exactly one. When the count doesn't divide, the last mini-batch is smaller; nothing is duplicated or
// dropped. How a mini-batch goes through a graph is models/packing.ts's: with weights from `aggregationWeights` over the mini-batch any
// cut into passes is exact.

/** The seeded stream a shuffle draws from. */
export interface IntegerStream {
  /** Uniform whole number in [0, n). */
  integer(n: number): number;
}

/** Splits samples 0…count−1, shuffled by draws from `random`, into mini-batches of `ppo_mini_batch_size` (at least 1). */
export function splitMiniBatches(count: number, ppo_mini_batch_size: number, random: IntegerStream): Int32Array[] {
  if (!Number.isInteger(ppo_mini_batch_size) || ppo_mini_batch_size < 1)
    throw new RangeError(`ppo_mini_batch_size is ${ppo_mini_batch_size}: it must be a whole number of at least 1`);
  const order = shuffledIndices(count, random);
  const batches: Int32Array[] = [];
  for (let from = 0; from < count; from += ppo_mini_batch_size)
    batches.push(order.slice(from, from + ppo_mini_batch_size));
  return batches;
}

/** The numbers 0…count−1 in a random order (Fisher–Yates from the end). */
export function shuffledIndices(count: number, random: IntegerStream): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const pick = random.integer(last + 1);
    [order[last], order[pick]] = [order[pick], order[last]];
  }
  return order;
}
