// Group-relative advantages: GRPO (Shao et al., 2024, DeepSeekMath) and Dr.GRPO (Liu et al., 2025), as in RAGEN: the
// episode's score relative to the other rollouts of its prompt, the same advantage for every token of the episode. BRPO
// and ARPO use other groups: the whole batch, or each sample alone. A group of one has no baseline and keeps its raw
// score (mean 0, deviation 1).
import { forEachGroup, type GroupedScores } from './group-statistics';

export interface GrpoOptions {
  /** Divide by the group's deviation (GRPO); false only subtracts the mean (Dr.GRPO). */
  norm_adv_by_std_in_grpo: boolean;
}

const epsilon = 1e-6;

/**
 * Returns one advantage per sample: (s − μ)/(σ + 1e-6), or s − μ for Dr.GRPO, with unbiased σ. A group of equal scores
 * gives exact zeros.
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

/** ARPO: every sample is its own group, so its advantage is its raw score. */
export const arpoAdvantages = (scores: ArrayLike<number>): Float32Array => Float32Array.from(scores);
