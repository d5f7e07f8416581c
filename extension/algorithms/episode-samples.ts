// Joins samples into episodes for the rollout filter. With a windowed context each turn is one sample, but group
// statistics are per episode: samples are joined before filtering, and the filter's result is copied back to all
// samples of the episode.
import type { EpisodeValues } from './rollout-filter';

/** Per-sample values with prompt group and episode id (unique within the group); one entry per sample. */
export interface EpisodeSamples extends EpisodeValues {
  episodes: ArrayLike<number>;
}

/** One entry per episode, in order of first appearance. */
export interface JoinedEpisodes extends EpisodeValues {
  /** Sample indices of each episode. */
  samples: number[][];
}

/**
 * Joins samples: an episode's score is that of its first sample (all are equal), its entropy the mean and its length
 * the sum over its samples.
 */
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

/** Copies each per-episode value, such as the filter's decision, to all samples of the episode. */
export function spreadOverSamples(perEpisode: ArrayLike<number>, samples: readonly number[][]): Float64Array {
  const spread = new Float64Array(samples.reduce((count, list) => count + list.length, 0));
  samples.forEach((list, episode) => list.forEach(sample => (spread[sample] = perEpisode[episode])));
  return spread;
}
