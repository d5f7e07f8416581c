// Group-relative advantages: GRPO (Shao et al., 2024, DeepSeekMath) and Dr.GRPO (Liu et al., 2025), as RAGEN uses them: the episode's
// score against the other rollouts of its prompt, the same advantage for every token of the episode.
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
