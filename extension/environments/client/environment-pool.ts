// The rollout's interface to environments: batches of episodes, identified by ids that the trainer assigns. Implemented
// by `EnvironmentProcessPool`.
import type { EpisodeActions, EpisodeReset, EpisodeState, EpisodeStep } from '../../protocol/environment-link';

/**
 * Methods return results in the order of the request. The listener receives each state as soon as it is ready. If an
 * environment fails, the batch does not reject; the state of the failed episode contains `error`.
 */
export interface EnvironmentPool {
  reset(episodes: EpisodeReset[], onStates?: (ready: EpisodeState[]) => void): Promise<EpisodeState[]>;
  step(episodes: EpisodeActions[], onSteps?: (ready: EpisodeStep[]) => void): Promise<EpisodeStep[]>;
  closeEpisodes(episodes: string[]): Promise<void>;
}

/**
 * Calls `take` exactly once with each episode's state, as soon as the pool reports it.
 * @throws the first error of `take`, after the whole batch has finished
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
