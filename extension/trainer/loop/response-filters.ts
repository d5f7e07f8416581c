// The filters of degenerate responses (algorithms/degenerate-text.ts, `workbench.response_filters`). Each filter counts
// the episodes that it detects; with `enforce`, a step does not train on them. Their scores remain part of their group,
// so the advantages of the other episodes do not change.
import { isGibberish, isRepetitive, type SampledResponse } from '../../algorithms/degenerate-text';
import type { RunConfig } from '../config/schema';
import type { RolloutEpisode } from '../rollout/rollout-batch';

export interface FilteredResponses {
  /** Whether the step may train on the episode, in the order of the episodes. */
  kept: boolean[];
  /** Shares of the episodes that the filters detected; empty without filters. */
  metrics: Record<string, number>;
}

/** Applies the configured filters to episodes. `vocabSize` is that of the policy's model. */
export function filterResponses(
  episodes: readonly Pick<RolloutEpisode, 'samples'>[],
  { response_filters: filters }: Pick<RunConfig['workbench'], 'response_filters'>,
  vocabSize: number,
): FilteredResponses {
  const kept = episodes.map(() => true);
  const metrics: Record<string, number> = {};
  const apply = (name: string, enforce: boolean, detects: (response: SampledResponse) => boolean): void => {
    const detected = episodes.map(episode => responsesOf(episode).some(detects));
    metrics[`rollout/${name}_rate`] = detected.filter(Boolean).length / Math.max(episodes.length, 1);
    if (enforce) detected.forEach((is, i) => (kept[i] &&= !is));
  };
  const { gibberish, repetition } = filters ?? {};
  if (gibberish) apply('gibberish', gibberish.enforce, response => isGibberish(response, gibberish, vocabSize));
  if (repetition) apply('repetition', repetition.enforce, response => isRepetitive(response, repetition));
  return { kept, metrics };
}

/** Returns the sampled tokens of each turn. In a windowed context, each turn is in one sample. */
const responsesOf = ({ samples }: Pick<RolloutEpisode, 'samples'>): SampledResponse[] =>
  samples.flatMap(({ ids, logprobs, turns }) =>
    turns.map(({ span }) => ({ ids: ids.subarray(...span), logprobs: logprobs.subarray(...span) })),
  );
