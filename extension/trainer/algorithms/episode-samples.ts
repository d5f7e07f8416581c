// Where a windowed context makes one sample of each turn, what is measured of a group is measured of its episodes: several samples are
// joined before the rollout filter sees them, and what it keeps goes back to all samples of the episode.
import type { EpisodeValues } from './rollout-filter';

/** Samples with the prompt group and the episode (an id that is its own within the group) they come from; one entry a sample. */
export interface EpisodeSamples extends EpisodeValues {
  episodes: ArrayLike<number>;
}

/** One entry an episode, in the order in which they first appear. */
export interface JoinedEpisodes extends EpisodeValues {
  /** Indices of the samples of each episode. */
  samples: number[][];
}

/** An episode's score is that of its first sample (all have the same), its entropy the mean and its length the sum over its samples. */
export function joinEpisodes({ groups, episodes, scores, entropies, lengths }: EpisodeSamples): JoinedEpisodes {
  const found = new Map<string, number[]>();
  for (let sample = 0; sample < groups.length; sample++) {
    const key = `${groups[sample]} ${episodes[sample]}`;
    const list = found.get(key);
    if (list) list.push(sample);
    else found.set(key, [sample]);
  }
  const samples = [...found.values()];
  const sums = (values: ArrayLike<number>): number[] =>
    samples.map(list => list.reduce((sum, sample) => sum + values[sample], 0));
  return {
    samples,
    groups: samples.map(([first]) => groups[first]),
    scores: samples.map(([first]) => scores[first]),
    ...(entropies && { entropies: sums(entropies).map((sum, episode) => sum / samples[episode].length) }),
    ...(lengths && { lengths: sums(lengths) }),
  };
}

/** Gives each sample its episode's entry, such as whether the filter kept it. */
export function spreadOverSamples(perEpisode: ArrayLike<number>, samples: readonly number[][]): Float64Array {
  const spread = new Float64Array(samples.reduce((count, list) => count + list.length, 0));
  samples.forEach((list, episode) => list.forEach(sample => (spread[sample] = perEpisode[episode])));
  return spread;
}
