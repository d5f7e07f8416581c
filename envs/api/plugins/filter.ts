// The interface of rollout filters, built-in ones and those of the workspace. A file whose default export is created by
// `defineFilter` is named by `actor_rollout_ref.rollout.rollout_filter_metric`. It scores each prompt group; the strategy
// of the configuration selects groups by their scores, unless the filter selects them itself. Invariant: both functions
// are functions of their arguments.
import type { PlayedEpisode } from './played-episode';

/** A played episode, with what only filters receive. */
export interface FilterEpisode extends PlayedEpisode {
  /** Mean entropy of the policy over the sampled tokens, in nats; only if the filter `needs` it. */
  entropy?: number;
  /** In an episode with roles: the score of each role that the policy plays, by name. */
  roleScores?: Readonly<Record<string, number>>;
}

/** The episodes of one prompt. */
export interface PromptGroup {
  group: number;
  tag: string;
  seed: number;
  /** A random number from 0 to 2³² − 1; it depends on `seed.train` and the group's seed. */
  draw: number;
  episodes: readonly FilterEpisode[];
}

export interface FilterSettings {
  /** Number of the step, from 1. */
  step: number;
  /** Seed for random numbers; it depends on `seed.train`, the step and the seeds of the groups. */
  seed: number;
}

export interface Filter {
  /** `entropy`: the policy scores the episodes once more before the filter, which takes a forward pass. */
  needs?: 'entropy';
  /** Returns one finite number per group. By default, groups with large scores are kept. */
  score(groups: readonly PromptGroup[], settings: FilterSettings): ArrayLike<number>;
  /** Returns the indices of the groups to keep. Without it, `rollout_filter_strategy` selects groups by their scores. */
  select?(scores: ArrayLike<number>, groups: readonly PromptGroup[], settings: FilterSettings): readonly number[];
}

/** The default export of a filter's file. */
export interface FilterPlugin extends Filter {
  readonly kind: 'filter';
  /** Name in messages. */
  name: string;
}

/** Declares a rollout filter. */
export function defineFilter(definition: Omit<FilterPlugin, 'kind'>): FilterPlugin {
  return { kind: 'filter', ...definition };
}
