// Truncated importance sampling between the sampler and the training graph (verl's rollout correction; Yao et al. 2025, "Your efficient RL
// framework secretly brings you off-policy RL training"): where episodes are sampled by a policy that differs a little from the one that is
// trained (8-bit rollouts), a token's loss is weighed by min(exp(log π_train − log π_sampler), threshold), or by that of the whole
// episode. The surrogate loss scales with its advantage, so weighing the advantage weighs the loss.

export interface RolloutCorrection {
  /** null: statistics alone. */
  rollout_is: 'token' | 'sequence' | null;
  rollout_is_threshold: number;
}

export interface CorrectionBatch {
  /** Log-probs of the sampled tokens under the training graph and under the sampler; read where mask = 1. */
  old: readonly Float32Array[];
  rollout: readonly Float32Array[];
  masks: readonly Uint8Array[];
}

/** Log-ratios beyond this are as good as certain that the policies have nothing in common. */
const safety = 20;

/** Weights per token (1 where mask = 0 or correction is off), and verl's statistics under `rollout_corr/`. */
export function rolloutWeights(
  { old, rollout, masks }: CorrectionBatch,
  { rollout_is, rollout_is_threshold: threshold }: RolloutCorrection,
): { weights: Float32Array[]; metrics: Record<string, number> } {
  const bounded = (x: number): number => Math.exp(Math.min(Math.max(x, -safety), safety));
  const ratios: number[] = [];
  const sums = { tokens: 0, kl: 0, k3: 0, difference: 0, chi2: 0 };
  const perplexity: { train: number[]; rollout: number[] } = { train: [], rollout: [] };
  const weights = masks.map((mask, row) => {
    const found = new Float32Array(mask.length).fill(1);
    const totals = { train: 0, rollout: 0, tokens: 0 };
    for (let t = 0; t < mask.length; t++) {
      if (!mask[t]) continue;
      const d = old[row][t] - rollout[row][t];
      totals.train += old[row][t];
      totals.rollout += rollout[row][t];
      totals.tokens++;
      sums.kl -= d;
      sums.k3 += bounded(d) - d - 1;
      sums.chi2 += bounded(2 * d) - 1;
      sums.difference += Math.abs(Math.exp(old[row][t]) - Math.exp(rollout[row][t]));
      if (rollout_is === 'token') ratios.push((found[t] = bounded(d)));
    }
    sums.tokens += totals.tokens;
    if (totals.tokens === 0) return found;
    perplexity.train.push(Math.exp(-totals.train / totals.tokens));
    perplexity.rollout.push(Math.exp(-totals.rollout / totals.tokens));
    if (rollout_is === 'sequence') {
      const ratio = bounded(totals.train - totals.rollout);
      ratios.push(ratio);
      for (let t = 0; t < mask.length; t++) if (mask[t]) found[t] = ratio;
    }
    return found.map(w => Math.min(w, threshold));
  });
  const mean = (xs: readonly number[]): number => xs.reduce((sum, x) => sum + x, 0) / Math.max(xs.length, 1);
  const perToken = Math.max(sums.tokens, 1);
  const truncated = ratios.map(r => Math.min(r, threshold));
  const average = mean(truncated);
  const metrics: Record<string, number> = {
    'rollout_corr/kl': sums.kl / perToken,
    'rollout_corr/k3_kl': sums.k3 / perToken,
    'rollout_corr/chi2_token': sums.chi2 / perToken,
    'rollout_corr/prob_diff_mean': sums.difference / perToken,
    'rollout_corr/training_ppl': mean(perplexity.train),
    'rollout_corr/rollout_ppl': mean(perplexity.rollout),
    ...(ratios.length > 0 && {
      'rollout_corr/rollout_is_mean': average,
      'rollout_corr/rollout_is_std': Math.sqrt(mean(truncated.map(w => (w - average) ** 2))),
      'rollout_corr/rollout_is_max': Math.max(...ratios.map(r => r)),
      'rollout_corr/rollout_is_min': Math.min(...ratios.map(r => r)),
      'rollout_corr/rollout_is_ratio_fraction_high': mean(ratios.map(r => Number(r > threshold))),
      'rollout_corr/rollout_is_eff_sample_size': average === 0 ? 0 : average ** 2 / mean(truncated.map(w => w * w)),
    }),
  };
  return { weights, metrics };
}
