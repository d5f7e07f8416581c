// REINFORCE leave-one-out (Ahmadian et al., 2024): compares each rollout's score with the mean score of the other
// rollouts of its prompt. A rollout that is alone in its group keeps its raw score.
import { forEachGroup, type GroupedScores } from './group-statistics';

/** Returns one advantage per sample: (s − μ)·n/(n − 1), which equals s minus the mean of the other n − 1 scores. */
export function rlooAdvantages(batch: GroupedScores): Float32Array {
  const advantages = new Float32Array(batch.scores.length);
  forEachGroup(batch, (samples, { count, mean }) => {
    for (const sample of samples)
      advantages[sample] = count > 1 ? ((batch.scores[sample] - mean) * count) / (count - 1) : batch.scores[sample];
  });
  return advantages;
}
