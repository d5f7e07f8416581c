// Group-relative advantages: GRPO (Shao et al., 2024, DeepSeekMath) and Dr.GRPO (Liu et al., 2025), as RAGEN uses them: the episode's
// score against the other rollouts of its prompt, the same advantage for every token of the episode.
// BRPO and ARPO are the same over other groups: the batch, or each sample.
// A group of one has nothing to be compared with and keeps its raw score (mean 0, deviation 1).
import { forEachGroup, type GroupedScores } from './group-statistics';

export interface GrpoOptions {
  /** Divide by the group's deviation (GRPO); false subtracts the mean only (Dr.GRPO). */
  norm_adv_by_std_in_grpo: boolean;
}

const epsilon = 1e-6;

/** One advantage a sample: (s − μ)/(σ + 1e-6), or s − μ for Dr.GRPO, with unbiased σ. A group of equal scores gives exact zeros. */
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

/** ARPO: every sample is a group of its own, so that its raw score is its advantage. */
export const arpoAdvantages = (scores: ArrayLike<number>): Float32Array => Float32Array.from(scores);
