// Answers the trainer's requests: keeps one thread for each tag, sends each episode's work to the thread that began it, and puts the
// results back in the order of the request. A tag that is loaded again with changed code or configuration gets a new thread for its
// next episodes; the old thread lives until its last episode is closed. A build that fails leaves the old one in place.
import type {
  EnvironmentFailure,
  EnvironmentNotice,
  EnvironmentReply,
  EnvironmentRequest,
  EnvironmentSpec,
  LoadedEnvironment,
} from '../protocol/environment-link';
import { BuildError, bundleEnvironment } from './build';
import { EnvironmentThread, type ThreadItem, type ThreadResult } from './thread';
import type { Description } from './work';

interface Loaded {
  thread: EnvironmentThread;
  /** Configuration as given, to tell a change. */
  given: string;
  environment: LoadedEnvironment;
}

export class EnvironmentHost {
  private readonly loaded = new Map<string, Loaded>();
  private readonly owners = new Map<string, EnvironmentThread>();

  constructor(
    private readonly workerFile: string,
    private readonly notify: (notice: EnvironmentNotice) => void,
  ) {}

  async answer(request: EnvironmentRequest): Promise<EnvironmentReply> {
    const { id, method } = request;
    switch (method) {
      case 'load':
        return { id, method, ...(await this.load(request.environments, request.timeout_ms)) };
      case 'reset': {
        const items = request.episodes.map(({ tag: _, ...reset }): ThreadItem => ({ do: 'reset', ...reset }));
        const stale: string[] = [];
        request.episodes.forEach(({ episode, tag }) => {
          const next = this.loaded.get(tag)?.thread;
          const owner = this.owners.get(episode);
          if (owner && owner !== next) stale.push(episode);
        });
        await this.close(stale);
        for (const { episode, tag } of request.episodes) {
          const thread = this.loaded.get(tag)?.thread;
          if (thread) this.owners.set(episode, thread);
        }
        return {
          id,
          method,
          episodes: await this.states(items, i => `tag ${request.episodes[i].tag} is not loaded: load it first`),
        };
      }
      case 'step': {
        const items = request.episodes.map(({ episode, actions }): ThreadItem => ({ do: 'step', episode, actions }));
        const states = await this.states(items, i => `episode ${items[i].episode} is unknown: reset it first`);
        return { id, method, episodes: states.map(state => ({ ...state, outcomes: state.outcomes ?? [] })) };
      }
      case 'solve': {
        const items = request.episodes.map((episode): ThreadItem => ({ do: 'solve', episode }));
        const results = await this.dispatch(items);
        for (const result of results)
          if (result?.failure)
            this.notify({ method: 'log', tag: '', stream: 'stderr', text: `${result.failure.message}\n` });
        return { id, method, solutions: items.map(({ episode }, i) => ({ episode, actions: results[i]?.solution })) };
      }
      case 'close':
        await this.close(request.episodes);
        return { id, method };
      case 'shutdown':
        for (const thread of new Set([
          ...this.owners.values(),
          ...[...this.loaded.values()].map(({ thread }) => thread),
        ]))
          thread.stop();
        return { id, method };
    }
  }

  private async load(
    specs: EnvironmentSpec[],
    timeoutMs: number,
  ): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }> {
    const outcomes = await Promise.all(specs.map(spec => this.loadOne(spec, timeoutMs)));
    const environments = outcomes.flatMap(outcome => ('environment' in outcome ? [outcome.environment] : []));
    const error = outcomes.flatMap(outcome => ('failure' in outcome ? [outcome.failure] : [])).at(0);
    return error ? { environments, error } : { environments };
  }

  private async loadOne(
    { tag, source, config }: EnvironmentSpec,
    timeoutMs: number,
  ): Promise<{ environment: LoadedEnvironment } | { failure: EnvironmentFailure }> {
    const bundle = await bundleEnvironment(source).catch((error: unknown) => {
      if (error instanceof BuildError) return error;
      throw error;
    });
    if (bundle instanceof BuildError)
      return {
        failure: { kind: 'build', message: `environment ${tag} (${bundle.at}) ${bundle.message}`, at: bundle.at },
      };
    const given = JSON.stringify([source, config]);
    const present = this.loaded.get(tag);
    if (present && present.given === given && present.thread.version === bundle.version) {
      present.thread.timeoutMs = timeoutMs;
      return { environment: present.environment };
    }
    const onLog = (stream: 'stdout' | 'stderr', text: string) => this.notify({ method: 'log', tag, stream, text });
    const thread = new EnvironmentThread({
      tag,
      source,
      bundle,
      config,
      workerFile: this.workerFile,
      timeoutMs,
      onLog,
    });
    const outcome = await thread.load();
    if ('failure' in outcome) return outcome;
    const environment = loadedEnvironment(tag, source, thread, outcome.description);
    this.loaded.set(tag, { thread, given, environment });
    if (present?.thread.episodes === 0) present.thread.stop();
    return { environment };
  }

  /** Results in the order of the items; undefined where no thread owns the episode. */
  private async dispatch(items: readonly ThreadItem[]): Promise<(ThreadResult | undefined)[]> {
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
      const done = await thread.run(indices.map(i => items[i]));
      done.forEach((result, k) => (results[indices[k]] = result));
    });
    await Promise.all(jobs);
    return results;
  }

  private async states(items: readonly ThreadItem[], unknown: (i: number) => string) {
    const results = await this.dispatch(items);
    return items.map(({ episode }, i) => {
      const { observation = '', images, info, actions, outcomes, failure } = results[i] ?? {};
      const error: EnvironmentFailure | undefined = results[i] ? failure : { kind: 'bad_value', message: unknown(i) };
      return {
        episode,
        observation,
        version: this.owners.get(episode)?.version ?? '',
        ...(images && { images }),
        ...(info && { info }),
        ...(actions && { actions }),
        ...(outcomes && { outcomes }),
        ...(error && { error }),
      };
    });
  }

  private async close(episodes: readonly string[]): Promise<void> {
    await this.dispatch(episodes.map((episode): ThreadItem => ({ do: 'close', episode })));
    const current = new Set([...this.loaded.values()].map(({ thread }) => thread));
    for (const episode of episodes) {
      const owner = this.owners.get(episode);
      this.owners.delete(episode);
      if (owner && owner.episodes === 0 && !current.has(owner)) owner.stop();
    }
  }
}

function loadedEnvironment(
  tag: string,
  source: string,
  thread: EnvironmentThread,
  description: Description,
): LoadedEnvironment {
  const { version, files, code } = thread;
  return { tag, source, version, files, bundle: code, ...description };
}
