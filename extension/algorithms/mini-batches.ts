// Shuffles the samples of a training step with a seeded random stream and splits them into mini-batches; each
// mini-batch is one optimizer step. Invariant: every sample is in exactly one mini-batch. If the count is not a
// multiple of the mini-batch size, the last mini-batch is smaller. models/graphs/pass-plan.ts splits a mini-batch into
// micro-batches. The micro-batch gradients sum to the exact gradient, because `aggregationWeights` computes the weights
// for the complete mini-batch.

/** Seeded random stream used for shuffling. */
export interface IntegerStream {
  /** Returns a uniform integer in [0, n). */
  integer(n: number): number;
}

/**
 * Splits the samples 0…count−1, shuffled by `random`, into mini-batches of `ppo_mini_batch_size` samples. Throws a
 * RangeError if the size is below 1.
 */
export function splitMiniBatches(count: number, ppo_mini_batch_size: number, random: IntegerStream): Int32Array[] {
  if (!Number.isInteger(ppo_mini_batch_size) || ppo_mini_batch_size < 1)
    throw new RangeError(`ppo_mini_batch_size is ${ppo_mini_batch_size}: it must be a whole number of at least 1`);
  const order = shuffledIndices(count, random);
  const batches: Int32Array[] = [];
  for (let from = 0; from < count; from += ppo_mini_batch_size)
    batches.push(order.slice(from, from + ppo_mini_batch_size));
  return batches;
}

/** Returns the numbers 0…count−1 in random order (Fisher–Yates from the end). */
export function shuffledIndices(count: number, random: IntegerStream): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const pick = random.integer(last + 1);
    [order[last], order[pick]] = [order[pick], order[last]];
  }
  return order;
}
