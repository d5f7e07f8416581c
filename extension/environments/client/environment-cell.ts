// Owns one environment process and the state it must hold: starts it, sends requests, and ends it with its children. If
// the process dies, a new one loads the same code and rebuilds the live episodes from (code, seed, member, actions),
// since an episode is a pure function of these. Pending requests are repeated: all together, and if the process dies
// again, one episode at a time, so that only the episode whose code ends the process fails. If a process shared by
// several tags violates a limit or dies again, the tag at fault, or every tag if it is unknown, moves to a process of
// its own.
import type {
  CoveredCode,
  EnvironmentFailure,
  EnvironmentReply,
  EnvironmentRequest,
  EnvironmentSpec,
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
  PreparedEnvironment,
} from '../../protocol/environment-link';
import { appendAll } from '../../common/lists';
import { KeyedQueue } from '../../common/keyed-queue';
import { UserError } from '../../common/user-error';
import { HeldEpisodes, type LiveEpisode, type TagState } from './held-episodes';
import { ProcessHandle, type ProcessEnd, type ProcessHandleOptions } from './process-handle';
import type { Offence } from './process-watch';

export interface EnvironmentProcessOptions extends ProcessHandleOptions {
  /** Time limit of one call into environment code, in milliseconds. */
  stepTimeoutMs: number;
}

/** Where tags go that must no longer share a process. */
export interface Isolation {
  /** Moves tags to cells of their own; `why` completes the sentence `the process …`. */
  moveApart(tags: readonly string[], why: string): void;
  /** The cell of a tag that was moved, else undefined. */
  cellOf(tag: string): EnvironmentCell | undefined;
}

/** Receives episodes as soon as they are ready. */
export type StatesListener<State extends EpisodeState> = (states: State[]) => void;

type Method = EnvironmentRequest['method'];
type Content<M extends Method> = Omit<Extract<EnvironmentRequest, { method: M }>, 'id' | 'method'>;
type StateMethod = 'reset' | 'step';
type Reply<M extends Method> = Extract<EnvironmentReply, { method: M }>;

/** Milliseconds that a process may take to exit by itself. */
const shutdownTimeoutMs = 1000;

/** The state of the previous process cannot be rebuilt now; a later attempt may succeed. */
class Unavailable extends UserError {
  constructor(readonly failure: EnvironmentFailure) {
    super(failure.message);
  }
}

export class EnvironmentCell {
  private handle: ProcessHandle | undefined;
  private nextId = 1;
  private connecting: Promise<ProcessHandle> | undefined;
  /** Queues the calls of each episode. */
  private readonly queue = new KeyedQueue();
  /** The newest load or use. */
  private loading: Promise<unknown> = Promise.resolve();
  private readonly held: HeldEpisodes;
  /** The exclusive job in progress, with no other request pending; used after a request ended the process. */
  private exclusive: Promise<unknown> | undefined;
  /** How the previous process ended. */
  private lastEnd: ProcessEnd = { how: '' };
  private dead: UserError | undefined;
  private stopping: Promise<void> | undefined;

  /** @param isolation absent if the cell serves a single moved tag, whose state is `held` */
  constructor(
    private readonly options: EnvironmentProcessOptions,
    private readonly isolation?: Isolation,
    held?: TagState,
  ) {
    this.held = new HeldEpisodes(held);
  }

  /** Starts the process and waits until it answers. @throws UserError if it cannot be started */
  async start(): Promise<void> {
    await this.connect();
  }

  /** Process id while it runs, for a debugger to attach to. */
  get pid(): number | undefined {
    return this.handle?.child.pid;
  }

  /**
   * Loads environments, one per tag; a tag that is already loaded uses the new code for its next episodes. `error` is
   * the first failure; its tag keeps its previous code.
   */
  async load(specs: EnvironmentSpec[]): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }> {
    return this.afterLoads(async () => {
      const { environments, error } = await this.request('load', this.loads(specs));
      for (const environment of environments)
        this.held.keep(
          specs.find(({ tag }) => tag === environment.tag)!,
          environment,
        );
      return error ? { environments, error } : { environments };
    });
  }

  /**
   * Builds, checks and loads the current files while running episodes continue; `use` activates the result for episodes
   * reset later. Does not wait for other requests. Code that ends the process is refused.
   */
  async prepare(specs: EnvironmentSpec[], checkTypes: boolean): Promise<PreparedEnvironment[]> {
    if (this.dead) return [];
    const content = (some: EnvironmentSpec[]) => ({ ...this.loads(some), check_types: checkTypes });
    const { handle } = this; // without a running process the jobs below wait for the next one
    const together = this.exclusive || !handle?.alive ? undefined : await this.ask(handle, 'prepare', content(specs));
    if (together) return together.environments;
    const prepared: PreparedEnvironment[] = [];
    try {
      for (const spec of specs) {
        const own = await this.runExclusively(() => this.attempt('prepare', content([spec])));
        appendAll(prepared, own?.environments ?? [this.endsItsProcess(spec)]);
      }
    } catch {
      // stopped, or the earlier code no longer loads, which the next request reports
    }
    return prepared;
  }

  private endsItsProcess({ tag, source }: EnvironmentSpec): PreparedEnvironment {
    const message = `environment ${tag} (${source}) ends its process during loading (${this.lastEnd.how}): fix the file and save it`;
    return { tag, files: [source], problems: [{ file: source, line: 1, column: 1, message, kind: 'load' }] };
  }

  /** Activates the prepared code for episodes reset from now on. A process that dies is restarted with this code. */
  use(prepared: readonly { spec: EnvironmentSpec; environment: LoadedEnvironment }[]): Promise<void> {
    return this.afterLoads(async () => {
      const environments = prepared.map(({ spec, environment }) => this.held.keep(spec, environment));
      await this.request('use', { tags: environments.map(({ tag }) => tag) });
      const { error } = await this.request('load', this.loads(environments)); // if it died and lost the prepared code
      if (error) throw new UserError(error.message);
    });
  }

  /**
   * Opens the process to debuggers or closes it; returns the URL to connect to. While it is open, calls have no time
   * limit.
   */
  async debug(on: boolean): Promise<string | undefined> {
    const { url } = await this.request('debug', { on });
    if (this.handle) this.handle.debugged = on;
    return url;
  }

  /** Removes a tag and returns its state; its pending calls finish in the cell that the isolation names. */
  release(tag: string): TagState {
    return this.held.release(tag);
  }

  /**
   * Starts or stops line coverage, which applies to episodes from their reset. Returns the counts since the last call;
   * none if they were lost.
   */
  async cover(on: boolean): Promise<CoveredCode[]> {
    return (await this.mayFail(() => this.request('cover', { on })))?.covered ?? [];
  }

  private loads(environments: EnvironmentSpec[]): Content<'load'> {
    return { environments, timeout_ms: this.options.stepTimeoutMs };
  }

  private afterLoads<T>(job: () => Promise<T>): Promise<T> {
    const work = this.loading.then(job);
    this.loading = work.catch(() => undefined);
    return work;
  }

  /** Begins episodes; returns states in the order of the request, each with its own `error` if it failed. */
  reset(episodes: EpisodeReset[], onStates?: StatesListener<EpisodeState>): Promise<EpisodeState[]> {
    const resets = new Map(episodes.map(reset => [reset.episode, reset]));
    const settled = (state: EpisodeState) => this.held.begun(resets.get(state.episode)!, state);
    return this.queue.acquire([...resets.keys()], releaseEpisode =>
      this.loading.then(() => this.states('reset', episodes, settled, releaseEpisode, onStates)),
    );
  }

  /** Executes actions in order; stops after the action that ends its episode. */
  step(episodes: EpisodeActions[], onSteps?: StatesListener<EpisodeStep>): Promise<EpisodeStep[]> {
    const settled = (step: EpisodeStep) => this.held.stepped(step);
    const names = episodes.map(({ episode }) => episode);
    return this.queue.acquire(names, releaseEpisode => this.states('step', episodes, settled, releaseEpisode, onSteps));
  }

  /** Actions that solve each episode from its current state; absent without a solver or a solution. */
  solve(episodes: string[]): Promise<{ episode: string; actions?: (number | string)[] }[]> {
    const none = episodes.map(episode => ({ episode }));
    return this.queue.acquire(
      episodes,
      async () => (await this.mayFail(() => this.request('solve', { episodes })))?.solutions ?? none,
    );
  }

  /** Ends episodes; unknown ones are ignored. */
  closeEpisodes(episodes: string[]): Promise<void> {
    return this.queue.acquire(episodes, async () => {
      for (const episode of episodes) this.held.close(episode);
      await this.mayFail(() => this.request('close', { episodes })); // a new process does not know these episodes
    });
  }

  /** Ends the process and its children; always returns the same promise. Pending requests fail with an error. */
  stop(): Promise<void> {
    return (this.stopping ??= this.end());
  }

  private async end(): Promise<void> {
    this.dead ??= new UserError('environment process: it was stopped: resume the run');
    const { handle } = this;
    if (!handle) return;
    if (process.platform === 'win32')
      handle.end(); // finds the children through the process, which must still be running
    else void handle.ask({ id: this.nextId++, method: 'shutdown' });
    const timer = setTimeout(() => handle.end(), shutdownTimeoutMs);
    await handle.ended;
    clearTimeout(timer);
  }

  /**
   * Runs a reset or step of episodes, each exactly once even if the process dies; returns states in the order of the
   * request.
   */
  private async states<State extends EpisodeState>(
    method: StateMethod,
    episodes: readonly { episode: string }[],
    settled: (state: State) => State,
    releaseEpisode: (episode: string) => void,
    onStates?: StatesListener<State>,
  ): Promise<State[]> {
    const done = new Map<string, State>();
    const finish = (finished: State[]) => {
      const states = finished.filter(({ episode }) => !done.has(episode));
      for (const state of states) {
        done.set(state.episode, state);
        releaseEpisode(state.episode);
      }
      onStates?.(states);
    };
    const take = (answered: State[]) => finish(answered.map(settled));
    const open = () => episodes.filter(({ episode }) => !done.has(episode));
    const tags = new Map(episodes.map(item => [item.episode, this.held.tagOf(item)]));
    const cellOf = ({ episode }: { episode: string }): EnvironmentCell | undefined => {
      const tag = tags.get(episode) ?? this.held.newTagOf(episode);
      return tag === undefined ? undefined : this.isolation?.cellOf(tag);
    };
    /** Whether all of `some` were answered: by this process, and for moved tags by their own cells. */
    const answers = async (some: readonly { episode: string }[]): Promise<boolean> => {
      const cells = new Set(some.map(cellOf));
      const own = some.filter(item => !cellOf(item));
      const elsewhere = [...cells].map(cell => {
        const items = some.filter(item => cell && cellOf(item) === cell);
        const play = cell?.[method] as ((items: unknown, onStates: typeof finish) => Promise<unknown>) | undefined;
        return play?.call(cell, items, finish);
      });
      const part = (reply: Reply<StateMethod>) => take(reply.episodes as State[]);
      const asked = own.length > 0 ? this.attempt(method, { episodes: own } as Content<StateMethod>, part) : undefined;
      const [reply] = await Promise.all([asked, ...elsewhere]);
      if (reply) part(reply);
      return own.length === 0 || reply !== undefined;
    };
    const fail = (some: readonly { episode: string }[], failure: (item: { episode: string }) => EnvironmentFailure) => {
      const failed = some.map((item): EpisodeState => {
        const nothing = { observation: '', outcomes: [], version: '' };
        return { episode: item.episode, ...nothing, error: failure(item) };
      });
      take(failed as State[]);
    };
    try {
      if (this.exclusive || !(await answers(open())))
        await this.runExclusively(async () => {
          if (await answers(open())) return; // most deaths have external causes, such as a program using up the memory
          this.moveApart(this.held.tags);
          for (const item of open())
            if (!(await answers([item]))) fail([item], () => this.held.endedBy(method, item, this.lastEnd));
        });
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      fail(open(), () => error.failure);
    }
    return episodes.map(({ episode }) => done.get(episode)!);
  }

  /**
   * Handles the end of the process. After a limit violation, the tag at fault, or every tag if it is unknown, moves to
   * a process of its own.
   */
  private died(end: ProcessEnd): void {
    this.lastEnd = end;
    const { offence } = end;
    if (!offence || this.dead) return;
    this.report(offence);
    const { tags } = this.held;
    const blamed = offence.tag ?? (tags.length === 1 ? tags[0] : undefined);
    // Rebuilding the episodes that hold the memory would allocate it again, so they fail. An episode with a call in
    // progress is retried if that call may have allocated the memory.
    if (offence.kind === 'memory' && blamed !== undefined)
      for (const [episode, { reset }] of this.held.liveOf(blamed))
        if (offence.children || !this.queue.has(episode))
          this.held.lose(reset, this.held.failure(blamed, ` at seed ${reset.seed}, member ${reset.member}`, end));
    this.moveApart(offence.tag === undefined ? tags : [offence.tag]);
  }

  /** Writes the reason for ending the process to the run's log, even if no episode fails. */
  private report({ tag, what, remedy }: Offence): void {
    const who = tag ?? this.held.tags.join(' or ');
    const text = `environment process: ${who} ${what}: ${remedy}\n`;
    this.options.onNotice({ method: 'log', tag: tag ?? '', stream: 'stderr', text });
  }

  private moveApart(tags: readonly string[]): void {
    if (this.held.tags.length > 1 && !this.dead)
      this.isolation?.moveApart(
        tags.filter(tag => this.held.specs.has(tag)),
        this.lastEnd.how,
      );
  }

  /** Sends a request, and repeats it if the process died. @throws UserError if it died again or was stopped */
  private async request<M extends Method>(method: M, content: Content<M>): Promise<Reply<M>> {
    const first = this.exclusive ? undefined : await this.attempt(method, content);
    const reply = first ?? (await this.runExclusively(() => this.attempt(method, content)));
    if (reply) return reply;
    throw new UserError(
      `environment process: it died twice during ${method} (${this.lastEnd.how}): fix the environment that ends it, or see its output in the run's log`,
    );
  }

  /** The result of `job`, or undefined if environment code made it fail. */
  private async mayFail<T>(job: () => Promise<T>): Promise<T | undefined> {
    try {
      return await job();
    } catch (error) {
      this.assertAlive();
      if (!(error instanceof UserError)) throw error;
      this.options.onNotice({ method: 'log', tag: '', stream: 'stderr', text: `${error.message}\n` });
      return undefined;
    }
  }

  /** Runs `job` after earlier exclusive jobs; no other request is sent meanwhile. */
  private runExclusively<T>(job: () => Promise<T>): Promise<T> {
    const work = (this.exclusive ?? Promise.resolve()).then(job);
    const mine: Promise<unknown> = work
      .catch(() => undefined)
      .then(() => {
        if (this.exclusive === mine) this.exclusive = undefined;
      });
    this.exclusive = mine;
    return work;
  }

  /**
   * Sends a request once; undefined if the process died. @throws UserError if no process can be started or it was
   * stopped
   */
  private async attempt<M extends Method>(
    method: M,
    content: Content<M>,
    onPart?: (part: Reply<M>) => void,
  ): Promise<Reply<M> | undefined> {
    const handle = await this.connect();
    const reply = await this.ask(handle, method, content, part => this.dead || onPart?.(part));
    if (!reply) await handle.ended;
    this.assertAlive();
    return reply;
  }

  /** The reply, or undefined if the process died. */
  private async ask<M extends Method>(
    handle: ProcessHandle,
    method: M,
    content: Content<M>,
    onPart?: (part: Reply<M>) => void,
  ): Promise<Reply<M> | undefined> {
    const request = { ...content, method, id: this.nextId++ } as EnvironmentRequest;
    return (await handle.ask(request, onPart as ((part: EnvironmentReply) => void) | undefined)) as
      Reply<M> | undefined;
  }

  /** @throws UserError if the environments were stopped or cannot be run. */
  private assertAlive(): void {
    if (this.dead) throw this.dead;
  }

  /** The running process; after a death a new one with the same state. */
  private async connect(): Promise<ProcessHandle> {
    this.assertAlive();
    if (this.handle?.alive && !this.connecting) return this.handle;
    return (this.connecting ??= this.begin().finally(() => (this.connecting = undefined)));
  }

  private async begin(): Promise<ProcessHandle> {
    await this.handle?.ended; // its cause is known then
    for (let careful = false; ; careful = true) {
      this.assertAlive();
      const handle = new ProcessHandle(this.options);
      void handle.ended.then(end => this.died(end)); // runs before any later handler
      this.handle = handle;
      try {
        if (await this.rebuild(handle, careful)) return handle;
        await handle.ended;
      } catch (error) {
        this.handle = undefined; // its state is incomplete: the next request starts over
        handle.end();
        throw error;
      }
      this.assertAlive();
    }
  }

  /**
   * Loads the environments and replays the live episodes, one at a time if `careful`; episodes that began before an
   * edit use the code they began with. False if the process died; in a careful rebuild the episode that was being
   * replayed is then lost.
   * @throws Unavailable if the code no longer loads
   */
  private async rebuild(handle: ProcessHandle, careful: boolean): Promise<boolean> {
    const timeout_ms = this.options.stepTimeoutMs;
    for (const { environments, episodes } of this.held.replays()) {
      const loaded = await this.ask(handle, 'load', { environments, timeout_ms });
      this.assertAlive();
      if (!loaded && careful) throw await this.unloadable(handle);
      if (!loaded) return false;
      if (loaded.error) throw new Unavailable(loaded.error);
      for (const part of careful ? episodes.map(episode => [episode]) : [episodes]) {
        if (part.length === 0 || (await this.replay(handle, part))) continue;
        await handle.ended;
        if (careful) this.held.lose(part[0].reset, `ended its process (${this.lastEnd.how}) when it was played again`);
        return false;
      }
    }
    return true;
  }

  /** Replays live episodes to their current state; false if the process died. */
  private async replay(handle: ProcessHandle, live: readonly LiveEpisode[]): Promise<boolean> {
    const begun = await this.ask(handle, 'reset', { episodes: live.map(({ reset }) => reset) });
    const episodes = live.map(({ reset, actions }) => ({ episode: reset.episode, actions }));
    const check = (reply: Reply<'step'>) => this.held.replayed(reply.episodes);
    const stepped = begun && (await this.ask(handle, 'step', { episodes }, check));
    if (stepped) check(stepped);
    return stepped !== undefined;
  }

  private async unloadable(handle: ProcessHandle): Promise<UserError> {
    const { nodePath = process.execPath, entry } = this.options;
    await handle.ended;
    if (this.held.tags.length > 0) {
      const tags = this.held.tags.join(', ');
      const message = `environment process: it ends while loading ${tags} (${this.lastEnd.how}): fix the environment that ends it, or see its output in the run's log`;
      return new Unavailable({ kind: 'died', message });
    }
    return (this.dead = new UserError(
      `environment process: ${nodePath} could not run ${entry} (${this.lastEnd.how}): check the path of Node.js and that the extension is complete`,
    ));
  }
}
