// From kept samples to optimizer steps: mini-batches (one step each) in an order drawn from a seeded stream, and inside them micro-batches that fit a
// token budget, whose gradients are accumulated.
// Invariant: every sample is in exactly one batch. When the count doesn't divide, the last mini-batch is smaller; nothing is
// duplicated or dropped, and with weights from `aggregationWeights` over the mini-batch the split into micro-batches is exact.

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

/** Bounds of a micro-batch: its padded size rows × longest sequence in tokens, and its rows. */
export interface MicroBatchLimits {
  maxTokens: number;
  maxRows: number;
}

/**
 * Splits one mini-batch into micro-batches, longest sequences first, so that little is padded and a step that needs too much memory
 * fails at once and not late. A sequence longer than the budget gets a micro-batch of its own.
 * @param samples indices of the mini-batch's samples
 * @param lengths whole length (prompt and response tokens) of each sample, by index
 */
export function splitMicroBatches(
  samples: Int32Array,
  lengths: ArrayLike<number>,
  limits: MicroBatchLimits,
): Int32Array[] {
  const order = Array.from(samples).sort((a, b) => lengths[b] - lengths[a] || a - b);
  const batches: Int32Array[] = [];
  for (let from = 0; from < order.length;) {
    const fitting = Math.floor(limits.maxTokens / Math.max(lengths[order[from]], 1));
    const rows = Math.max(Math.min(fitting, limits.maxRows), 1);
    batches.push(Int32Array.from(order.slice(from, from + rows)));
    from += rows;
  }
  return batches;
}

/** The numbers 0…count−1 in a random order (Fisher–Yates from the end). */
function shuffledIndices(count: number, random: IntegerStream): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const pick = random.integer(last + 1);
    [order[last], order[pick]] = [order[pick], order[last]];
  }
  return order;
}
