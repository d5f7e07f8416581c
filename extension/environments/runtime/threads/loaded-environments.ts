// The environments that this process has loaded. For each tag, one thread is current: the tag's next episodes run on
// it. If a tag is loaded with changed code or configuration, later episodes use a new thread. The old thread is ended
// when its last episode is closed (episode-threads.ts). If a build fails, the old thread stays in use. Code that is
// edited during a run is first prepared in a new thread; `use` activates it when the trainer requests it.
import type {
  CoveredCode,
  EnvironmentFailure,
  EnvironmentNotice,
  EnvironmentSpec,
  LoadedEnvironment,
  PreparedEnvironment,
  SourceProblem,
} from '../../../protocol/environment-link';
import { BuildError, bundleEnvironment, keptBundle, type Bundle } from '../build/build';
import { DebuggerRelay } from '../debugger-relay';
import { coveredLines } from '../worker/covered-lines';
import type { EpisodeThreads } from './episode-threads';
import { EnvironmentThread } from './thread';
import { TypeChecker } from '../build/type-checker';
import type { Description } from './worker-messages';

/** Maximum delay of a Node.js timer, in milliseconds. */
const longestTimer = 2 ** 31 - 1;

interface Loaded {
  thread: EnvironmentThread;
  spec: EnvironmentSpec;
  /** Serialized source path and configuration; a change is detected by comparing this text. */
  given: string;
  environment: LoadedEnvironment;
}

export interface LoadedEnvironmentsOptions {
  /** Paths of the bundles of worker.ts and type-check-worker.ts. */
  files: { worker: string; typeCheck: string };
  /** Memory limit of the process in bytes. */
  mostBytes: number;
  notify(notice: EnvironmentNotice): void;
}

export class LoadedEnvironments {
  private readonly loaded = new Map<string, Loaded>();
  /** Prepared code by tag; no episode uses it before `use`. */
  private readonly prepared = new Map<string, Loaded>();
  /** Threads that have not finished loading their code. */
  private readonly starting = new Set<EnvironmentThread>();
  private readonly types: TypeChecker;
  private debugging = false;
  private relay: DebuggerRelay | undefined;
  /** Settles when all changes by `debug` have been made. */
  private debugChanges: Promise<{ url?: string }> = Promise.resolve({});
  private covering = false;
  /** Time limit of a call in milliseconds, from the trainer's last request. */
  private timeoutMs = 0;

  constructor(
    private readonly options: LoadedEnvironmentsOptions,
    private readonly episodes: EpisodeThreads,
  ) {
    this.types = new TypeChecker(options.files.typeCheck);
  }

  /** Returns the thread for a tag's next episodes. */
  threadOf(tag: string): EnvironmentThread | undefined {
    return this.loaded.get(tag)?.thread;
  }

  /** Whether the next episodes of the thread's tag will use this thread. */
  isCurrent(thread: EnvironmentThread): boolean {
    return this.loaded.get(thread.tag)?.thread === thread;
  }

  /** All threads, including threads that are loading. An edited tag may have several threads. */
  get allThreads(): EnvironmentThread[] {
    return [...this.threads, ...this.starting];
  }

  async load(
    specs: EnvironmentSpec[],
    timeoutMs: number,
  ): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }> {
    const outcomes = await Promise.all(specs.map(spec => this.loadOne(spec, timeoutMs)));
    const environments = outcomes.flatMap(outcome => ('environment' in outcome ? [outcome.environment] : []));
    const error = outcomes.flatMap(outcome => ('failure' in outcome ? [outcome.failure] : [])).at(0);
    return error ? { environments, error } : { environments };
  }

  /**
   * Builds new code, then loads it and type-checks it at the same time. Discards the code if the load or the check
   * fails.
   */
  async prepare(spec: EnvironmentSpec, timeoutMs: number, checkTypes: boolean): Promise<PreparedEnvironment> {
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
      checkTypes ? this.checkTypes(spec) : { problems: [], files: [] },
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

  /** Activates a tag's prepared code for episodes that start later. Does nothing if the tag has no prepared code. */
  use(tag: string): void {
    const next = this.prepared.get(tag);
    this.prepared.delete(tag);
    if (next) this.replace(tag, next);
  }

  /**
   * Opens or closes the address to which debuggers attach. While it is open, calls have no time limit, because a
   * breakpoint may halt them. Closing it lets halted calls continue.
   */
  debug(on: boolean): Promise<{ url?: string }> {
    const limit = (debugging: boolean) => {
      this.debugging = debugging;
      for (const thread of this.allThreads) thread.timeoutMs = this.limitMs;
    };
    const change = async () => {
      if (on) {
        limit(true);
        this.relay ??= await DebuggerRelay.open();
        return { url: this.relay.url };
      }
      await this.relay?.close();
      this.relay = undefined;
      limit(false);
      return {};
    };
    return (this.debugChanges = this.debugChanges.then(change, change));
  }

  /**
   * Switches coverage on or off and returns the counts so far. V8 can only count code that is compiled after coverage
   * was started. Therefore, if a tag's thread was started with another coverage setting, later episodes of the tag run
   * in a new thread. Threads whose episodes have taken no step since the last call are omitted, because their counts
   * would show all code of a step as never executed. Their counts are returned by a later call.
   */
  async cover(on: boolean): Promise<CoveredCode[]> {
    this.covering = on;
    const counted = await Promise.all(
      [...this.threads]
        .filter(({ covers, played }) => covers && played)
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

  /** Ends all threads. */
  stop(): void {
    for (const thread of this.threads) thread.stop();
    this.types.stop();
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

  /** Type-checks the environment and its rewards file. */
  private async checkTypes({ source, scored }: EnvironmentSpec) {
    const first = await this.types.check(source);
    if (!scored || scored.rewards === source || 'unchecked' in first) return first;
    const second = await this.types.check(scored.rewards);
    if ('unchecked' in second) return second;
    return { problems: [...first.problems, ...second.problems], files: [...first.files, ...second.files] };
  }

  private forget(tag: string): void {
    this.prepared.get(tag)?.thread.stop();
    this.prepared.delete(tag);
  }

  private replace(tag: string, next: Loaded): void {
    const present = this.loaded.get(tag);
    this.loaded.set(tag, next);
    if (present && !this.episodes.threads.includes(present.thread)) present.thread.stop();
  }

  private async start(
    spec: EnvironmentSpec,
    bundle: Bundle,
    timeoutMs: number,
  ): Promise<Loaded | { failure: EnvironmentFailure }> {
    const { tag, source, config, tools } = spec;
    const onLog = (stream: 'stdout' | 'stderr', text: string) =>
      this.options.notify({ method: 'log', tag, stream, text });
    const workerFile = this.options.files.worker;
    this.timeoutMs = timeoutMs;
    const thread = new EnvironmentThread({
      tag,
      source,
      bundle,
      config,
      tools,
      workerFile,
      timeoutMs: this.limitMs,
      cover: this.covering,
      mostBytes: this.options.mostBytes,
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

  private get limitMs(): number {
    return this.debugging ? longestTimer : this.timeoutMs;
  }

  private get threads(): Set<EnvironmentThread> {
    const held = [...this.loaded.values(), ...this.prepared.values()].map(({ thread }) => thread);
    return new Set([...this.episodes.threads, ...held]);
  }
}

const givenOf = ({ source, config, scored, tools }: EnvironmentSpec): string =>
  JSON.stringify([source, config, scored, tools]);

async function bundleOrError({ source, scored, built }: EnvironmentSpec): Promise<Bundle | BuildError> {
  if (built) return keptBundle(source, built.bundle, built.files);
  try {
    return await bundleEnvironment(source, scored);
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
