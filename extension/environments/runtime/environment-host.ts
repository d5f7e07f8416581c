// Answers the trainer's requests in the environment process: loads environments (loaded-environments.ts) and runs their
// episodes (episode-threads.ts).
import type {
  EnvironmentNotice,
  EnvironmentReply,
  EnvironmentRequest,
  EpisodeStep,
  ThreadMemory,
} from '../../protocol/environment-link';
import { EpisodeThreads } from './threads/episode-threads';
import { LoadedEnvironments } from './threads/loaded-environments';
import { MemoryWatch } from './threads/thread-memory-watch';
import type { EnvironmentThread, ThreadItem } from './threads/thread';

type Request<M extends EnvironmentRequest['method']> = Extract<EnvironmentRequest, { method: M }>;

export class EnvironmentHost {
  private readonly episodes = new EpisodeThreads();
  private readonly environments: LoadedEnvironments;

  /**
   * @param files paths of the bundles of worker.ts and type-check-worker.ts
   * @param mostBytes memory limit of the process in bytes
   */
  constructor(
    files: { worker: string; typeCheck: string },
    private readonly notify: (notice: EnvironmentNotice) => void,
    mostBytes = Infinity,
  ) {
    this.environments = new LoadedEnvironments({ files, mostBytes, notify }, this.episodes);
    new MemoryWatch(mostBytes, () => this.environments.allThreads);
  }

  /**
   * Answers a request.
   * @param part receives the results of episodes that finish their reset or step before the request's other episodes;
   * the final reply omits these results
   */
  async answer(
    request: EnvironmentRequest,
    part: (reply: EnvironmentReply) => void = () => undefined,
  ): Promise<EnvironmentReply> {
    const { environments } = this;
    const { id, method } = request;
    switch (method) {
      case 'load':
        return { id, method, ...(await environments.load(request.environments, request.timeout_ms)) };
      case 'prepare': {
        const { timeout_ms, check_types } = request;
        const prepared = request.environments.map(spec => environments.prepare(spec, timeout_ms, check_types));
        return { id, method, environments: await Promise.all(prepared) };
      }
      case 'use':
        for (const tag of request.tags) environments.use(tag);
        return { id, method };
      case 'debug':
        return { id, method, ...(await environments.debug(request.on)) };
      case 'cover':
        return { id, method, covered: await environments.cover(request.on) };
      case 'reset': {
        const ready = (episodes: EpisodeStep[]) => part({ id, method, episodes, more: true });
        return { id, method, episodes: await this.reset(request, ready) };
      }
      case 'step': {
        const items = request.episodes.map((step): ThreadItem => ({ do: 'step', ...step }));
        const unknown = (i: number) => `episode ${items[i].episode} is unknown: reset it first`;
        const ready = (episodes: EpisodeStep[]) => part({ id, method, episodes, more: true });
        return { id, method, episodes: await this.episodes.states(items, unknown, ready) };
      }
      case 'solve':
        return { id, method, solutions: await this.solve(request) };
      case 'close':
        await this.close(request.episodes);
        return { id, method };
      case 'ping':
        return { id, method, threads: this.memory };
      case 'shutdown':
        environments.stop();
        return { id, method };
    }
  }

  private async reset({ episodes }: Request<'reset'>, ready: (states: EpisodeStep[]) => void): Promise<EpisodeStep[]> {
    const items = episodes.map(({ tag: _, ...reset }): ThreadItem => ({ do: 'reset', ...reset }));
    const stale = episodes.filter(({ episode, tag }) => {
      const owner = this.episodes.of(episode);
      return owner && owner !== this.environments.threadOf(tag);
    });
    await this.close(stale.map(({ episode }) => episode));
    for (const { episode, tag } of episodes) {
      const thread = this.environments.threadOf(tag);
      if (thread) this.episodes.assign(episode, thread);
    }
    const unknown = (i: number) => `tag ${episodes[i].tag} is not loaded: load it first`;
    return this.episodes.states(items, unknown, ready);
  }

  private async solve({ episodes }: Request<'solve'>): Promise<{ episode: string; actions?: (number | string)[] }[]> {
    const results = await this.episodes.dispatch(episodes.map((episode): ThreadItem => ({ do: 'solve', episode })));
    for (const result of results)
      if (result?.failure)
        this.notify({ method: 'log', tag: '', stream: 'stderr', text: `${result.failure.message}\n` });
    return episodes.map((episode, i) => ({ episode, actions: results[i]?.solution }));
  }

  private close(episodes: readonly string[]): Promise<void> {
    return this.episodes.close(episodes, (thread: EnvironmentThread) => this.environments.isCurrent(thread));
  }

  /** Memory of each thread in bytes, with the thread's tag. */
  private get memory(): ThreadMemory[] {
    return this.environments.allThreads.map(({ tag, bytes }) => ({ tag, bytes }));
  }
}
