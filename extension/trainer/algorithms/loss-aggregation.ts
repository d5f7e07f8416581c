// How per-token losses become one number (verl's `loss_agg_mode`), as weights: loss = Σ weight · token loss over sampled tokens.
// With the weights fixed for the whole optimizer mini-batch, the gradients of its micro-batches add up to the exact gradient,
// however the samples are split.

export type LossAggMode = 'token-mean' | 'seq-mean-token-sum' | 'seq-mean-token-mean' | 'seq-mean-token-sum-norm';

/**
 * The weight of each sampled token of each sample (equal for all tokens of one sample).
 * @param lengths sampled tokens of each sample of the mini-batch
 * @param paddedLength length to which the mini-batch would be padded; read by `seq-mean-token-sum-norm` only
 */
export function aggregationWeights(lengths: ArrayLike<number>, mode: LossAggMode, paddedLength: number): Float64Array {
  const counts = Float64Array.from(lengths);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.map(count => {
    if (count === 0) return 0;
    switch (mode) {
      case 'token-mean':
        return 1 / (total + 1e-8);
      case 'seq-mean-token-sum':
        return 1 / counts.length;
      case 'seq-mean-token-mean':
        return 1 / (counts.length * count);
      case 'seq-mean-token-sum-norm':
        return 1 / paddedLength;
    }
  });
}
