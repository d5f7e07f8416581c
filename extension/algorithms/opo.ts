// OPO (Hao et al., 2025): the score of an episode minus the baseline that minimises the variance of the gradient if
// tokens contribute independently, the mean score of the group's episodes weighted by their lengths. An episode that is
// alone in its group keeps its raw score, as in verl.
import { membersByGroup, type GroupedScores } from './group-statistics';

/**
 * Returns one advantage per sample.
 * @param masks masks of the samples; the length of an episode is the number of its trained tokens, in all its samples
 */
export function opoAdvantages(batch: GroupedScores, masks: readonly Uint8Array[]): Float32Array {
  const advantages = new Float32Array(batch.scores.length);
  for (const samples of membersByGroup(batch.groups).values()) {
    const episodes = new Set(samples.map(sample => batch.episodes?.[sample] ?? sample));
    const baseline = episodes.size > 1 ? lengthWeightedMean(samples, batch.scores, masks) : 0;
    for (const sample of samples) advantages[sample] = batch.scores[sample] - baseline;
  }
  return advantages;
}

/** Mean of the samples' scores, weighted by their tokens; samples of one episode have equal scores. */
function lengthWeightedMean(
  samples: readonly number[],
  scores: ArrayLike<number>,
  masks: readonly Uint8Array[],
): number {
  const origin = scores[samples[0]]; // equal scores have advantages of exactly 0
  let [sum, tokens] = [0, 0];
  for (const sample of samples) {
    const length = masks[sample].reduce((count, bit) => count + bit, 0);
    sum += length * (scores[sample] - origin);
    tokens += length;
  }
  return tokens > 0 ? origin + sum / tokens : origin;
}
