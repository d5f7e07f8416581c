// The rollout's interface to environments: batches of episodes, identified by ids that the trainer chose. Implemented
// by the environment processes, and by any object that answers in the same order.
import type { EpisodeActions, EpisodeReset, EpisodeState, EpisodeStep } from '../../protocol/environment-link';

/**
 * Results come in the order of the request; a listener receives each episode as soon as it is ready. A failing
 * environment sets its episode's `error` and never rejects the batch.
 */
export interface EnvironmentPool {
  reset(episodes: EpisodeReset[], onStates?: (ready: EpisodeState[]) => void): Promise<EpisodeState[]>;
  step(episodes: EpisodeActions[], onSteps?: (ready: EpisodeStep[]) => void): Promise<EpisodeStep[]>;
  closeEpisodes(episodes: string[]): Promise<void>;
}

/**
 * Calls `take` exactly once with each episode's state, as soon as the pool reports it.
 * @throws what `take` throws, after the pool has answered
 */
export async function eachState<State extends EpisodeState>(
  ask: (report: (ready: State[]) => void) => Promise<State[]>,
  take: (ready: State[]) => void,
): Promise<void> {
  const taken = new Set<string>();
  let failure: { error: unknown } | undefined;
  const report = (states: State[]) => {
    for (const { episode } of states) taken.add(episode);
    try {
      take(states);
    } catch (error) {
      failure ??= { error };
    }
  };
  const rest = (await ask(report)).filter(({ episode }) => !taken.has(episode));
  if (rest.length > 0) report(rest);
  if (failure) throw failure.error;
}
