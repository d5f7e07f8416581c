// Truncated importance sampling between the sampler and the training graph (verl's rollout correction; Yao et al. 2025,
// "Your efficient RL framework secretly brings you off-policy RL training"). With 8-bit rollouts, the sampling policy
// differs slightly from the trained policy. The loss of a token is therefore multiplied by min(ratio, threshold). The
// ratio is exp(log π_train − log π_sampler), either of the token or of its complete episode. Since the loss is
// proportional to the advantage, the advantage is multiplied instead.
import { appendAll } from '../common/lists';
import { clamp } from './kl';
import { largestLogRatio } from './policy-loss-options';

export interface RolloutCorrection {
  /**
   * Whether one ratio is computed per token or per sequence. If null, the weights are 1 and only statistics are
   * computed.
   */
  rollout_is: 'token' | 'sequence' | null;
  rollout_is_threshold: number;
}

export interface CorrectionBatch {
  /**
   * Log-probs of the sampled tokens in the training graph (`old`) and in the sampler (`rollout`), in nats. Only entries
   * with mask = 1 are read.
   */
  old: readonly Float32Array[];
  rollout: readonly Float32Array[];
  masks: readonly Uint8Array[];
}

/**
 * Returns one weight per token, and verl's statistics under `rollout_corr/`. The weight is 1 for tokens with mask = 0,
 * and for all tokens if the correction is off.
 */
export function rolloutWeights(
  batch: CorrectionBatch,
  { rollout_is, rollout_is_threshold: threshold }: RolloutCorrection,
): { weights: Float32Array[]; metrics: Record<string, number> } {
  const { old, rollout, masks } = batch;
  /** `ratios` has one ratio per token or per episode; `ofTokens` has the ratio that applies to each token. */
  const ratios: number[] = [];
  const ofTokens: number[] = [];
  const weights = masks.map((mask, row) => {
    const found = new Float32Array(mask.length).fill(1);
    const sampled = [...mask.keys()].filter(t => mask[t]);
    if (rollout_is === null || sampled.length === 0) return found;
    const logRatios = sampled.map(t => old[row][t] - rollout[row][t]);
    const own = rollout_is === 'token' ? logRatios.map(ratioOf) : [ratioOf(logRatios.reduce((sum, d) => sum + d))];
    appendAll(ratios, own);
    sampled.forEach((t, i) => {
      const ratio = own[rollout_is === 'token' ? i : 0];
      ofTokens.push(ratio);
      found[t] = Math.min(ratio, threshold);
    });
    return found;
  });
  return { weights, metrics: { ...divergences(batch), ...spread(ratios, ofTokens, threshold) } };
}

/** Clamps the log-ratio as verl does, so that `exp` cannot overflow. */
const ratioOf = (logRatio: number): number => Math.exp(clamp(logRatio, -largestLogRatio, largestLogRatio));
const meanOf = (xs: readonly number[]): number => xs.reduce((sum, x) => sum + x, 0) / Math.max(xs.length, 1);

/**
 * Returns metrics of the divergence between training graph and sampler. Perplexities are computed per episode and
 * averaged over the episodes. All other metrics are means over the sampled tokens.
 */
function divergences({ old, rollout, masks }: CorrectionBatch): Record<string, number> {
  const sums = { tokens: 0, kl: 0, k3: 0, difference: 0, chi2: 0 };
  const perplexity: { train: number[]; rollout: number[] } = { train: [], rollout: [] };
  masks.forEach((mask, row) => {
    const totals = { train: 0, rollout: 0, tokens: 0 };
    for (let t = 0; t < mask.length; t++) {
      if (!mask[t]) continue;
      const d = old[row][t] - rollout[row][t];
      totals.train += old[row][t];
      totals.rollout += rollout[row][t];
      totals.tokens++;
      sums.kl -= d;
      sums.k3 += ratioOf(d) - d - 1;
      sums.chi2 += ratioOf(d) ** 2 - 1;
      sums.difference += Math.abs(Math.exp(old[row][t]) - Math.exp(rollout[row][t]));
    }
    sums.tokens += totals.tokens;
    if (totals.tokens === 0) return;
    perplexity.train.push(Math.exp(-totals.train / totals.tokens));
    perplexity.rollout.push(Math.exp(-totals.rollout / totals.tokens));
  });
  const perToken = Math.max(sums.tokens, 1);
  return {
    'rollout_corr/kl': sums.kl / perToken,
    'rollout_corr/k3_kl': sums.k3 / perToken,
    'rollout_corr/chi2_token': sums.chi2 / perToken,
    'rollout_corr/prob_diff_mean': sums.difference / perToken,
    'rollout_corr/training_ppl': meanOf(perplexity.train),
    'rollout_corr/rollout_ppl': meanOf(perplexity.rollout),
  };
}

/**
 * Returns statistics of the weights before truncation. The mean is over tokens. Four statistics are over the ratios
 * (one per token or per episode): minimum, maximum, share above the threshold, and share below the inverse of the
 * threshold. Deviation and effective sample size are over the token weights clamped to [1/threshold, threshold].
 */
function spread(ratios: readonly number[], ofTokens: readonly number[], threshold: number): Record<string, number> {
  if (ratios.length === 0) return {};
  const held = ofTokens.map(w => clamp(w, 1 / threshold, threshold));
  const average = meanOf(held);
  const square = meanOf(held.map(w => w * w));
  const extremes = { max: -Infinity, min: Infinity };
  for (const r of ratios) Object.assign(extremes, { max: Math.max(extremes.max, r), min: Math.min(extremes.min, r) });
  return {
    'rollout_corr/rollout_is_mean': meanOf(ofTokens),
    'rollout_corr/rollout_is_std': Math.sqrt(meanOf(held.map(w => (w - average) ** 2))),
    'rollout_corr/rollout_is_max': extremes.max,
    'rollout_corr/rollout_is_min': extremes.min,
    'rollout_corr/rollout_is_ratio_fraction_high': meanOf(ratios.map(r => Number(r > threshold))),
    'rollout_corr/rollout_is_ratio_fraction_low': meanOf(ratios.map(r => Number(r < 1 / threshold))),
    'rollout_corr/rollout_is_eff_sample_size': average ** 2 / square,
  };
}
