// One supervised environment process (environments/supervision/supervisor.ts), with the data from which the process can
// be rebuilt. Sends requests, and records the episodes that the requests start and continue. If the process dies, the
// supervisor starts a new process, replays the live episodes and repeats the requests. Only the episode whose code
// ended the process fails. Several tags may share the process. If such a process violates a limit or dies repeatedly,
// the tag that caused the fault moves to a separate process. If the cause is unknown, every tag moves.
import type {
  CoveredCode,
  EnvironmentSpec,
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  EnvironmentFailure,
  LoadedEnvironment,
  PreparedEnvironment,
} from '../../protocol/environment-link';
import { appendAll } from '../../common/lists';
import { Supervisor, type Ending, type Job } from '../supervision/supervisor';
import { UserError } from '../../common/user-error';
import { HeldEpisodes, type TagState } from './held-episodes';
import type { ProcessEnd } from './process-handle';
import { ProcessRequests } from './process-requests';
import {
  ProcessRuntime,
  type Content,
  type EnvironmentProcessOptions,
  type ProcessCause,
  type Reply,
} from './process-runtime';
import type { Offence } from './process-watch';

/** Moves tags out of a shared process. */
export interface Isolation {
  /** Moves each tag to a new cell. `why` completes the sentence `the process …`. */
  moveApart(tags: readonly string[], why: string): void;
  /** Returns the new cell of a tag that was moved, else undefined. */
  cellOf(tag: string): EnvironmentCell | undefined;
}

/** Receives episode states as soon as they are ready. */
export type StatesListener<State extends EpisodeState> = (states: State[]) => void;

export class EnvironmentCell {
  private readonly runtime: ProcessRuntime;
  private readonly supervisor: Supervisor<ProcessCause>;
  private readonly requests: ProcessRequests;
  /** Settles when the latest call of `load` or `use` has finished. */
  private loading: Promise<unknown> = Promise.resolve();
  private readonly held: HeldEpisodes;
  private stopping: Promise<void> | undefined;

  /**
   * @param isolation undefined if the cell serves a single tag that was moved to it
   * @param held state of the moved tag
   */
  constructor(
    private readonly options: EnvironmentProcessOptions,
    private readonly isolation?: Isolation,
    held?: TagState,
  ) {
    this.held = new HeldEpisodes(held);
    this.runtime = new ProcessRuntime(options, this.held, {
      died: end => this.died(end),
      separate: () => this.moveApart(this.held.tags),
    });
    this.supervisor = new Supervisor(this.runtime);
    this.requests = new ProcessRequests(this.runtime, this.supervisor, text =>
      this.options.onNotice({ method: 'log', tag: '', stream: 'stderr', text }),
    );
  }

  /**
   * Starts the process and waits for its first reply.
   * @throws UserError if the process cannot be started
   */
  async start(): Promise<void> {
    await this.requests.connect();
  }

  /** Process id, to which a debugger attaches; undefined while no process exists. */
  get pid(): number | undefined {
    return this.runtime.pid;
  }

  /**
   * Loads environments, one per tag. If a tag is already loaded, its next episodes use the new code. `error` is the
   * first failure; the tag that failed keeps its previous code.
   */
  async load(specs: EnvironmentSpec[]): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }> {
    return this.afterLoads(async () => {
      const { environments, error } = await this.requests.send('load', this.loads(specs));
      for (const environment of environments)
        this.held.keep(
          specs.find(({ tag }) => tag === environment.tag)!,
          environment,
        );
      return error ? { environments, error } : { environments };
    });
  }

  /**
   * Builds, type-checks and loads the current files without affecting running episodes. `use` activates the result for
   * later resets. Does not wait for pending requests. If the process ends while it loads a tag's code, the result for
   * this tag reports that the process has ended.
   */
  async prepare(specs: EnvironmentSpec[], checkTypes: boolean): Promise<PreparedEnvironment[]> {
    const { runtime, supervisor } = this;
    if (runtime.dead) return [];
    const content = (some: EnvironmentSpec[]) => ({ ...this.loads(some), check_types: checkTypes });
    const unavailable = supervisor.exclusive || !runtime.running; // the exclusive jobs below wait for the next process
    const together = unavailable ? undefined : await runtime.ask('prepare', content(specs));
    if (together) return together.environments;
    const prepared: PreparedEnvironment[] = [];
    try {
      for (const spec of specs) {
        const own = await supervisor.exclusively(() => this.requests.sendOnce('prepare', content([spec])));
        appendAll(prepared, own?.environments ?? [this.endsItsProcess(spec)]);
      }
    } catch {
      // The cell was stopped, or the earlier code no longer loads. The next request reports this error.
    }
    return prepared;
  }

  private endsItsProcess({ tag, source }: EnvironmentSpec): PreparedEnvironment {
    const message = `environment ${tag} (${source}) ends its process while it is loaded (${this.runtime.lastEnd.how}): fix the file and save it`;
    return { tag, files: [source], problems: [{ file: source, line: 1, column: 1, message, kind: 'load' }] };
  }

  /** Activates the prepared code for later resets. If the process dies, the new process loads this code. */
  use(prepared: readonly { spec: EnvironmentSpec; environment: LoadedEnvironment }[]): Promise<void> {
    return this.afterLoads(async () => {
      const environments = prepared.map(({ spec, environment }) => this.held.keep(spec, environment));
      await this.requests.send('use', { tags: environments.map(({ tag }) => tag) });
      // If the process died in the meantime, the new process receives the code by this request.
      const { error } = await this.requests.send('load', this.loads(environments));
      if (error) throw new UserError(error.message);
    });
  }

  /**
   * Opens or closes the process's inspector. Returns the inspector's URL if the inspector was opened. While it is open,
   * calls have no time limit.
   */
  async debug(on: boolean): Promise<string | undefined> {
    const { url } = await this.requests.send('debug', { on });
    this.runtime.debugged = on;
    return url;
  }

  /**
   * Removes a tag and returns its state. Pending calls of the tag are sent to the cell that `Isolation.cellOf` returns.
   */
  release(tag: string): TagState {
    return this.held.release(tag);
  }

  /**
   * Switches line coverage on or off for later resets. Returns the counts since the last call; an empty list if the
   * process died.
   */
  async cover(on: boolean): Promise<CoveredCode[]> {
    return (await this.requests.trySend('cover', { on }))?.covered ?? [];
  }

  private loads(environments: EnvironmentSpec[]): Content<'load'> {
    return { environments, timeout_ms: this.options.stepTimeoutMs };
  }

  private afterLoads<T>(job: () => Promise<T>): Promise<T> {
    const work = this.loading.then(job);
    this.loading = work.catch(() => undefined);
    return work;
  }

  /**
   * Resets episodes. Returns states in the order of the request; `error` is set in the state of each episode that
   * failed.
   */
  reset(episodes: EpisodeReset[], onStates?: StatesListener<EpisodeState>): Promise<EpisodeState[]> {
    const resets = new Map(episodes.map(reset => [reset.episode, reset]));
    const settled = (state: EpisodeState) => this.held.begun(resets.get(state.episode)!, state);
    return this.play('reset', episodes, settled, onStates, () => this.loading);
  }

  /** Executes actions in order, up to the action that ends the episode. */
  step(episodes: EpisodeActions[], onSteps?: StatesListener<EpisodeStep>): Promise<EpisodeStep[]> {
    return this.play('step', episodes, step => this.held.stepped(step), onSteps);
  }

  /**
   * Returns actions that solve each episode from its current state; undefined if the environment has no solver or the
   * solver finds no solution.
   */
  solve(episodes: string[]): Promise<{ episode: string; actions?: (number | string)[] }[]> {
    const none = episodes.map(episode => ({ episode }));
    return this.supervisor.queue.acquire(
      episodes,
      async () => (await this.requests.trySend('solve', { episodes }))?.solutions ?? none,
    );
  }

  /** Ends episodes; unknown episode ids are ignored. If the process is stopped meanwhile, the episodes end with it. */
  closeEpisodes(episodes: string[]): Promise<void> {
    return this.supervisor.queue.acquire(episodes, async () => {
      for (const episode of episodes) this.held.history.close(episode);
      try {
        await this.requests.trySend('close', { episodes }); // a new process ignores ids without an episode
      } catch (error) {
        if (!this.runtime.dead) throw error;
      }
    });
  }

  /** Ends the process and its children. Pending requests fail with an error. Repeated calls return the same promise. */
  stop(): Promise<void> {
    return (this.stopping ??= this.runtime.stop());
  }

  /**
   * Resets or steps each episode exactly once, even if the process dies. Returns states in the order of the request.
   * @param settled records a state and returns the state to report; the reported `error` may differ from the recorded
   * one
   */
  private async play<Item extends EpisodeReset | EpisodeActions, State extends EpisodeState>(
    method: 'reset' | 'step',
    asked: readonly Item[],
    settled: (state: State) => State,
    onStates?: StatesListener<State>,
    after?: () => Promise<unknown>,
  ): Promise<State[]> {
    const items = new Map(asked.map(item => [item.episode, item]));
    const itemsOf = (episodes: readonly string[]) => episodes.map(episode => items.get(episode)!);
    const pairs = (states: readonly State[]) => states.map(state => [state.episode, state] as const);
    const send: Job<State, ProcessCause>['send'] = async (episodes, _, report) => {
      const own = episodes.filter(episode => !this.cellOf(items.get(episode)!));
      const part = (reply: Reply<'reset' | 'step'>) => report(pairs((reply.episodes as State[]).map(settled)));
      const elsewhere = this.shares(itemsOf(episodes)).map(([cell, share]) =>
        (cell[method] as (share: Item[], onStates: StatesListener<State>) => Promise<unknown>)(share, states =>
          report(pairs(states)),
        ),
      );
      const [ending] = await Promise.all([
        own.length > 0 ? this.requests.supervise(method, { episodes: itemsOf(own) } as never, part) : undefined,
        ...elsewhere,
      ]);
      return ending;
    };
    const fail = (episode: string, { cause }: Ending<ProcessCause>): State => {
      const error = cause.refusal ?? this.held.endedBy(method, items.get(episode)!, cause);
      const failed: EpisodeStep = { episode, observation: '', outcomes: [], version: '', error };
      return settled(failed as EpisodeState as State);
    };
    const onResults: Job<State, ProcessCause>['onResults'] = results => onStates?.(results.map(([, state]) => state));
    const states = await this.supervisor.run([...items.keys()], { send, fail, onResults, after });
    return asked.map(({ episode }) => states.get(episode)!);
  }

  /** Returns the cell to which an item's tag was moved, else undefined. */
  private cellOf(item: EpisodeReset | EpisodeActions): EnvironmentCell | undefined {
    const { episode } = item;
    const tag = 'tag' in item ? item.tag : (this.held.tagOf(episode) ?? this.held.newTagOf(episode));
    return tag === undefined ? undefined : this.isolation?.cellOf(tag);
  }

  /** Returns the items whose tags were moved, grouped by their new cells. */
  private shares<Item extends EpisodeReset | EpisodeActions>(items: readonly Item[]): [EnvironmentCell, Item[]][] {
    const shares = new Map<EnvironmentCell, Item[]>();
    for (const item of items) {
      const cell = this.cellOf(item);
      if (cell) shares.set(cell, [...(shares.get(cell) ?? []), item]);
    }
    return [...shares];
  }

  /**
   * Handles the end of the process. After a limit violation, moves the tag that caused the violation to a separate
   * process. If the cause is unknown, moves every tag.
   */
  private died(end: ProcessEnd): void {
    const { offence } = end;
    if (!offence || this.runtime.dead) return;
    this.report(offence);
    const { history, tags } = this.held;
    const blamed = offence.tag ?? (tags.length === 1 ? tags[0] : undefined);
    // If a tag exceeded its memory limit, its live episodes without a pending call fail, because their finished calls
    // may hold the memory, and a replay would allocate this memory again. Its episodes with a pending call are
    // replayed, because the call of another episode may hold the memory. If child processes exceeded the limit, all
    // live episodes of the tag fail.
    if (offence.kind === 'memory' && blamed !== undefined)
      for (const { start } of history.live())
        if (start.tag === blamed && (offence.children || !this.supervisor.queue.has(start.episode))) {
          const where = ` at seed ${start.seed}, member ${start.member}`;
          history.fail(start.episode, this.held.failure(blamed, where, end));
        }
    this.moveApart(offence.tag === undefined ? tags : [offence.tag]);
  }

  /** Logs why the process was ended. Without this log entry, the reason would not be reported if no episode fails. */
  private report({ tag, what, remedy }: Offence): void {
    const who = tag ?? this.held.tags.join(' or ');
    const text = `environment process: ${who} ${what}: ${remedy}\n`;
    this.options.onNotice({ method: 'log', tag: tag ?? '', stream: 'stderr', text });
  }

  private moveApart(tags: readonly string[]): void {
    if (this.held.tags.length > 1 && !this.runtime.dead)
      this.isolation?.moveApart(
        tags.filter(tag => this.held.specs.has(tag)),
        this.runtime.lastEnd.how,
      );
  }
}
