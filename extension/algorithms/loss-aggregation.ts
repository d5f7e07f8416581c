// Aggregates per-token losses into one number (verl's `loss_agg_mode`). The aggregation is expressed as weights: loss =
// Σ weight · token loss over the sampled tokens. The weights are computed once per optimizer mini-batch. The gradients
// of the micro-batches therefore sum to the exact gradient for every split of the mini-batch.
import type { LossAggMode } from './policy-loss-options';

/**
 * Returns the weight of each sampled token, one entry per sample (equal for all tokens of a sample).
 * @param lengths sampled tokens of each sample of the mini-batch
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
