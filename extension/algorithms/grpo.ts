// Group-relative advantages as in RAGEN: GRPO (Shao et al., 2024, DeepSeekMath) and Dr.GRPO (Liu et al., 2025). The
// score of an episode is compared with the scores of all rollouts of the same prompt. Every token of the episode has
// the same advantage. In BRPO, the whole batch is one group. In ARPO, each sample is a separate group. In a group of
// one sample there is no baseline, so the advantage is the raw score: the mean counts as 0 and the deviation as 1.
import { forEachGroup, type GroupedScores } from './group-statistics';

export interface GrpoOptions {
  /**
   * True (GRPO) subtracts the group's mean and divides by the group's deviation. False (Dr.GRPO) only subtracts the
   * mean.
   */
  norm_adv_by_std_in_grpo: boolean;
}

const epsilon = 1e-6;

/**
 * Returns one advantage per sample: (s − μ)/(σ + 1e-6), or s − μ for Dr.GRPO, with unbiased σ. Equal scores in a group
 * give advantages of exactly 0.
 */
export function grpoAdvantages(batch: GroupedScores, options: GrpoOptions): Float32Array {
  const advantages = new Float32Array(batch.scores.length);
  forEachGroup(batch, (samples, { count, mean, std }) => {
    const [center, scale] = count > 1 ? [mean, std] : [0, 1];
    for (const sample of samples) {
      const above = batch.scores[sample] - center;
      advantages[sample] = options.norm_adv_by_std_in_grpo ? above / (scale + epsilon) : above;
    }
  });
  return advantages;
}

/** BRPO: the whole batch is one group. */
export const brpoAdvantages = (batch: Omit<GroupedScores, 'groups'>, options: GrpoOptions): Float32Array =>
  grpoAdvantages({ ...batch, groups: new Uint8Array(batch.scores.length) }, options);

/** ARPO: every sample is a separate group, so its advantage is its raw score. */
export const arpoAdvantages = (scores: ArrayLike<number>): Float32Array => Float32Array.from(scores);
