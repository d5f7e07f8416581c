// Aggregates per-token losses into one number (verl's `loss_agg_mode`). The aggregation is expressed as weights: loss =
// Σ weight · token loss over the sampled tokens. The weights are computed once per optimizer mini-batch. Therefore the
// gradients of the micro-batches sum to the exact gradient, however the mini-batch is split into micro-batches.
import type { LossAggMode } from './policy-loss-options';

/**
 * Returns one weight per sample; it applies to each sampled token of the sample.
 * @param lengths number of sampled tokens of each sample of the mini-batch
 * @param paddedLength padded length of the mini-batch; used by `seq-mean-token-sum-norm` only
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
