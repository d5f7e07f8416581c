// Answers the trainer's requests. Keeps one thread per tag, sends each episode's work to the thread that started the
// episode, and returns results in request order. Loading a tag with changed code or configuration starts a new thread
// for later episodes; the old thread lives until its last episode is closed. A failed build keeps the old thread. Code
// edited during a run is first prepared alongside the running code; the trainer decides from which request on it is
// used.
import * as inspector from 'node:inspector';
import type {
  CoveredCode,
  EnvironmentFailure,
  EnvironmentNotice,
  EnvironmentReply,
  EnvironmentRequest,
  EnvironmentSpec,
  EpisodeStep,
  LoadedEnvironment,
  PreparedEnvironment,
  SourceProblem,
  ThreadMemory,
} from '../../protocol/environment-link';
import { BuildError, bundleEnvironment, keptBundle, type Bundle } from './build/build';
import { coveredLines } from './worker/covered-lines';
import { MemoryWatch } from './memory-watch';
import { EnvironmentThread, type ThreadItem, type ThreadResult } from './thread';
import { TypeChecker } from './build/type-checker';
import type { Description } from './work';

/** Maximum delay of a Node.js timer, in milliseconds. */
const longestTimer = 2 ** 31 - 1;

interface Loaded {
  thread: EnvironmentThread;
  spec: EnvironmentSpec;
  /** Serialized source and configuration, for change detection. */
  given: string;
  environment: LoadedEnvironment;
}

export class EnvironmentHost {
  private readonly loaded = new Map<string, Loaded>();
  /** New code that no episode uses yet. */
  private readonly prepared = new Map<string, Loaded>();
  private readonly owners = new Map<string, EnvironmentThread>();
  /** Threads that are loading their code. */
  private readonly starting = new Set<EnvironmentThread>();
  private readonly types: TypeChecker;
  private debugging = false;
  private covering = false;
  /** From the last request of the trainer. */
  private timeoutMs = 0;

  /**
   * `files` are the paths of the bundled worker.ts and type-check-worker.ts. `mostBytes` limits the memory of the
   * process.
   */
  constructor(
    private readonly files: { worker: string; typeCheck: string },
    private readonly notify: (notice: EnvironmentNotice) => void,
    private readonly mostBytes = Infinity,
  ) {
    this.types = new TypeChecker(files.typeCheck);
    new MemoryWatch(mostBytes, () => [...this.threads, ...this.starting]);
  }

  /**
   * Answers a request. `part` receives episodes of a reset or step that finish before the others; the reply then omits
   * them.
   */
  async answer(
    request: EnvironmentRequest,
    part: (reply: EnvironmentReply) => void = () => undefined,
  ): Promise<EnvironmentReply> {
    const { id, method } = request;
    switch (method) {
      case 'load':
        return { id, method, ...(await this.load(request.environments, request.timeout_ms)) };
      case 'prepare': {
        const { environments, timeout_ms, check_types } = request;
        const prepared = environments.map(spec => this.prepare(spec, timeout_ms, check_types));
        return { id, method, environments: await Promise.all(prepared) };
      }
      case 'use':
        for (const tag of request.tags) this.use(tag);
        return { id, method };
      case 'debug':
        return { id, method, ...this.debug(request.on) };
      case 'cover':
        return { id, method, covered: await this.cover(request.on) };
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
        const unknown = (i: number) => `tag ${request.episodes[i].tag} is not loaded: load it first`;
        const ready = (states: EpisodeStep[]) => part({ id, method, episodes: states, more: true });
        return { id, method, episodes: await this.states(items, unknown, ready) };
      }
      case 'step': {
        const items = request.episodes.map(({ episode, actions }): ThreadItem => ({ do: 'step', episode, actions }));
        const unknown = (i: number) => `episode ${items[i].episode} is unknown: reset it first`;
        const ready = (states: EpisodeStep[]) => part({ id, method, episodes: states, more: true });
        return { id, method, episodes: await this.states(items, unknown, ready) };
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
      case 'ping':
        return { id, method, threads: this.memory };
      case 'shutdown':
        for (const thread of this.threads) thread.stop();
        this.types.stop();
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
    spec: EnvironmentSpec,
    timeoutMs: number,
  ): Promise<{ environment: LoadedEnvironment } | { failure: EnvironmentFailure }> {
    const { tag } = spec;
    const bundle = await bundleOrError(spec);
    if (bundle instanceof BuildError)
      return {
        failure: { kind: 'build', message: `environment ${tag} (${bundle.at}) ${bundle.message}`, at: bundle.at },
      };
    const present = this.loaded.get(tag);
    if (present && present.given === givenOf(spec) && present.thread.version === bundle.version) {
      this.timeoutMs = timeoutMs;
      present.thread.timeoutMs = this.limitMs;
      return { environment: present.environment };
    }
    const started = await this.start(spec, bundle, timeoutMs);
    if ('failure' in started) return started;
    this.replace(tag, started);
    return { environment: started.environment };
  }

  /** Builds, loads and type-checks new code, the last two concurrently. If either fails, the code is discarded. */
  private async prepare(spec: EnvironmentSpec, timeoutMs: number, checkTypes: boolean): Promise<PreparedEnvironment> {
    const { tag, source } = spec;
    this.forget(tag);
    const bundle = await bundleOrError(spec);
    if (bundle instanceof BuildError) {
      const problems = [...bundle.problems];
      return { tag, problems, files: [source, ...problems.map(({ file }) => file)] };
    }
    const present = this.loaded.get(tag);
    const same = present && present.given === givenOf(spec) && present.thread.code === bundle.code;
    const [types, started] = await Promise.all([
      checkTypes ? this.types.check(source) : { problems: [], files: [] },
      same ? present : this.start(spec, bundle, timeoutMs),
    ]);
    const unchecked = 'unchecked' in types ? types.unchecked : undefined;
    const { problems, files } = 'unchecked' in types ? { problems: [], files: [] } : types;
    const about = { tag, files: [...new Set([...bundle.files, ...files])], ...(unchecked && { unchecked }) };
    if ('failure' in started) return { ...about, problems: [...problems, loadProblem(started.failure, source)] };
    if (!same && problems.length > 0) started.thread.stop();
    if (problems.length > 0) return { ...about, problems };
    if (!same) this.prepared.set(tag, started);
    return { ...about, environment: started.environment };
  }

  /** Makes episodes of the tag that start from now on run the prepared code, if there is any. */
  private use(tag: string): void {
    const next = this.prepared.get(tag);
    this.prepared.delete(tag);
    if (next) this.replace(tag, next);
  }

  private forget(tag: string): void {
    this.prepared.get(tag)?.thread.stop();
    this.prepared.delete(tag);
  }

  private replace(tag: string, next: Loaded): void {
    const present = this.loaded.get(tag);
    this.loaded.set(tag, next);
    if (present && ![...this.owners.values()].includes(present.thread)) present.thread.stop();
  }

  private async start(
    spec: EnvironmentSpec,
    bundle: Bundle,
    timeoutMs: number,
  ): Promise<Loaded | { failure: EnvironmentFailure }> {
    const { tag, source, config } = spec;
    const onLog = (stream: 'stdout' | 'stderr', text: string) => this.notify({ method: 'log', tag, stream, text });
    const workerFile = this.files.worker;
    this.timeoutMs = timeoutMs;
    const thread = new EnvironmentThread({
      tag,
      source,
      bundle,
      config,
      workerFile,
      timeoutMs: this.limitMs,
      cover: this.covering,
      mostBytes: this.mostBytes,
      onLog,
    });
    this.starting.add(thread);
    const outcome = await thread.load().finally(() => this.starting.delete(thread));
    if ('failure' in outcome) return outcome;
    return {
      thread,
      spec,
      given: givenOf(spec),
      environment: loadedEnvironment(tag, source, thread, outcome.description),
    };
  }

  /**
   * Opens or closes the inspector, on the loopback interface only. Lifts the call time limit while debugging, because a
   * breakpoint may halt a call.
   */
  private debug(on: boolean): { url?: string } {
    this.debugging = on;
    if (on && inspector.url() === undefined) inspector.open(0, '127.0.0.1');
    if (!on && inspector.url() !== undefined) inspector.close();
    for (const thread of this.threads) thread.timeoutMs = this.limitMs;
    const url = inspector.url();
    return url === undefined ? {} : { url };
  }

  /**
   * Switches coverage on or off and returns the counts so far. Coverage starts at compilation, so each thread of the
   * other kind gets a replacement for later episodes.
   */
  private async cover(on: boolean): Promise<CoveredCode[]> {
    this.covering = on;
    const counted = await Promise.all(
      [...this.threads]
        .filter(({ covers }) => covers)
        .map(async thread => ({ thread, ranges: await thread.covered() })),
    );
    const others = [...this.loaded].filter(([, { thread }]) => thread.covers !== on);
    await Promise.all(
      others.map(async ([tag, present]) => {
        const next = await this.start(present.spec, present.thread.bundle, this.timeoutMs);
        if ('thread' in next && this.loaded.get(tag) === present) this.replace(tag, next);
      }),
    );
    return counted
      .filter(({ ranges }) => ranges.length > 0)
      .map(({ thread, ranges }) => coveredLines(thread.tag, thread.bundle, ranges));
  }

  /** Memory per thread. Old and new threads of an edited tag are listed separately. */
  private get memory(): ThreadMemory[] {
    return [...this.threads, ...this.starting].map(({ tag, bytes }) => ({ tag, bytes }));
  }

  private get limitMs(): number {
    return this.debugging ? longestTimer : this.timeoutMs;
  }

  private get threads(): Set<EnvironmentThread> {
    const held = [...this.loaded.values(), ...this.prepared.values()].map(({ thread }) => thread);
    return new Set([...this.owners.values(), ...held]);
  }

  /** Returns results in the order of the items; undefined where no thread owns the episode. */
  private async dispatch(
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
   * Returns the episodes' states after the items. States that are ready while others still run go to `ready` and are
   * omitted from the result.
   */
  private async states(
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
      const { observation = '', images, info, actions, outcomes = [], failure } = result ?? {};
      const error: EnvironmentFailure | undefined = result ? failure : { kind: 'bad_value', message: unknown(i) };
      return {
        episode,
        observation,
        outcomes,
        version: this.owners.get(episode)?.version ?? '',
        ...(images && { images }),
        ...(info && { info }),
        ...(actions && { actions }),
        ...(error && { error }),
      };
    };
    const report = () => {
      pending = undefined;
      ready(fresh.splice(0).map(([i, result]) => state(i, result)));
    };
    const results = await this.dispatch(items, (i, result) => {
      fresh.push([i, result]);
      pending ??= setImmediate(report); // batch all results of this event loop turn
    });
    clearImmediate(pending);
    return [...open].map(i => state(i, results[i]));
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

const givenOf = ({ source, config }: EnvironmentSpec): string => JSON.stringify([source, config]);

async function bundleOrError({ source, built }: EnvironmentSpec): Promise<Bundle | BuildError> {
  if (built) return keptBundle(source, built.bundle, built.files);
  try {
    return await bundleEnvironment(source);
  } catch (error) {
    if (error instanceof BuildError) return error;
    throw error;
  }
}

function loadProblem({ message, at = '' }: EnvironmentFailure, source: string): SourceProblem {
  const [, file, line] = /^(.*):(\d+)$/.exec(at) ?? [];
  return { file: file ?? source, line: Number(line ?? 1), column: 1, message, kind: 'load' };
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
