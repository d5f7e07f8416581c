// What the rollout asks of the environments: whole batches of episodes, each known by the id the trainer chose for it.
// The process that runs the user's environments satisfies it; so does any object that answers in the same order.
import type { EpisodeActions, EpisodeReset, EpisodeState, EpisodeStep } from '../../protocol/environment-link';

/**
 * Answers come in the order of the request; a listener may hear of each episode as soon as it is ready. An environment that fails says so in
 * its episode's `error`; it never rejects the batch.
 */
export interface EnvironmentPool {
  reset(episodes: EpisodeReset[], onStates?: (ready: EpisodeState[]) => void): Promise<EpisodeState[]>;
  step(episodes: EpisodeActions[], onSteps?: (ready: EpisodeStep[]) => void): Promise<EpisodeStep[]>;
  closeEpisodes(episodes: string[]): Promise<void>;
}

/**
 * Has `take` see each episode's state once, as soon as the pool tells of it.
 * @throws what `take` throws, when the pool has answered
 */
export async function eachState<State extends EpisodeState>(
  ask: (tell: (ready: State[]) => void) => Promise<State[]>,
  take: (ready: State[]) => void,
): Promise<void> {
  const taken = new Set<string>();
  let failure: { error: unknown } | undefined;
  const tell = (states: State[]) => {
    for (const { episode } of states) taken.add(episode);
    try {
      take(states);
    } catch (error) {
      failure ??= { error };
    }
  };
  const rest = (await ask(tell)).filter(({ episode }) => !taken.has(episode));
  if (rest.length > 0) tell(rest);
  if (failure) throw failure.error;
}
