// Assigns episodes to threads. All items of an episode, such as its reset and steps, are sent to the thread that
// started the episode. Results are returned in the order of the request. A state that is ready before the states of
// other episodes is reported at once.
import type { EnvironmentFailure, EpisodeStep } from '../../../protocol/environment-link';
import type { EnvironmentThread, ThreadItem, ThreadResult } from './thread';

export class EpisodeThreads {
  private readonly owners = new Map<string, EnvironmentThread>();

  /** The thread of each episode. A thread that plays several episodes occurs once for each of them. */
  get threads(): EnvironmentThread[] {
    return [...this.owners.values()];
  }

  /** Records the thread of an episode. */
  assign(episode: string, thread: EnvironmentThread): void {
    this.owners.set(episode, thread);
  }

  of(episode: string): EnvironmentThread | undefined {
    return this.owners.get(episode);
  }

  /**
   * Runs items, each on its episode's thread. Returns results in the order of the items; undefined for an item whose
   * episode has no thread.
   */
  async dispatch(
    items: readonly ThreadItem[],
    onResult?: (i: number, result: ThreadResult) => void,
  ): Promise<(ThreadResult | undefined)[]> {
    const results: (ThreadResult | undefined)[] = items.map(() => undefined);
    const byThread = new Map<EnvironmentThread, number[]>();
    items.forEach(({ episode }, i) => {
      const owner = this.owners.get(episode);
      if (!owner) return;
      const indices = byThread.get(owner);
      if (indices) indices.push(i);
      else byThread.set(owner, [i]);
    });
    const jobs = [...byThread].map(async ([thread, indices]) => {
      const done = await thread.run(
        indices.map(i => items[i]),
        (k, result) => onResult?.(indices[k], result),
      );
      done.forEach((result, k) => (results[indices[k]] = result));
    });
    await Promise.all(jobs);
    return results;
  }

  /**
   * Runs items and returns the states of their episodes. If a state is ready before the states of other items, `ready`
   * receives it, and the result omits it.
   * @param unknown returns the error message for an item whose episode has no thread
   */
  async states(
    items: readonly ThreadItem[],
    unknown: (i: number) => string,
    ready: (states: EpisodeStep[]) => void,
  ): Promise<EpisodeStep[]> {
    const open = new Set(items.keys());
    const fresh: [number, ThreadResult][] = [];
    let pending: NodeJS.Immediate | undefined;
    const state = (i: number, result: ThreadResult | undefined): EpisodeStep => {
      open.delete(i);
      const { episode } = items[i];
      const {
        observation = '',
        images,
        info,
        actions,
        role,
        outcomes = [],
        components,
        true_state,
        failure,
      } = result ?? {};
      const error: EnvironmentFailure | undefined = result ? failure : { kind: 'bad_value', message: unknown(i) };
      return {
        episode,
        observation,
        outcomes,
        version: this.owners.get(episode)?.version ?? '',
        ...(images && { images }),
        ...(info && { info }),
        ...(actions && { actions }),
        ...(role !== undefined && { role }),
        ...(components && { components }),
        ...(true_state !== undefined && { true_state }),
        ...(error && { error }),
      };
    };
    const report = () => {
      pending = undefined;
      ready(fresh.splice(0).map(([i, result]) => state(i, result)));
    };
    const results = await this.dispatch(items, (i, result) => {
      fresh.push([i, result]);
      pending ??= setImmediate(report); // batches all results of this event loop turn
    });
    clearImmediate(pending);
    return [...open].map(i => state(i, results[i]));
  }

  /**
   * Closes episodes. Also ends threads whose last episode was closed, unless `isCurrent` returns true for the thread.
   */
  async close(episodes: readonly string[], isCurrent: (thread: EnvironmentThread) => boolean): Promise<void> {
    await this.dispatch(episodes.map((episode): ThreadItem => ({ do: 'close', episode })));
    for (const episode of episodes) {
      const owner = this.owners.get(episode);
      this.owners.delete(episode);
      if (owner && owner.episodes === 0 && !isCurrent(owner)) owner.stop();
    }
  }
}
