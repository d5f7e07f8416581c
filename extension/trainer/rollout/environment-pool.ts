// What the rollout asks of the environments: whole batches of episodes, each known by the id the trainer chose for it.
// The process that runs the user's environments satisfies it; so does any object that answers in the same order.
import type { EpisodeActions, EpisodeReset, EpisodeState, EpisodeStep } from '../../protocol/environment-link';

/** Answers come in the order of the request. An environment that fails says so in its episode's `error`; it never rejects the batch. */
export interface EnvironmentPool {
  reset(episodes: EpisodeReset[]): Promise<EpisodeState[]>;
  step(episodes: EpisodeActions[]): Promise<EpisodeStep[]>;
  closeEpisodes(episodes: string[]): Promise<void>;
}
