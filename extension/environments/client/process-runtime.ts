// Runs the environment process of a cell for the supervisor: starts a new process when the previous one has ended,
// loads the tags' code into it, and replays the live episodes in it. When a process ends, it is not known which call is
// the cause, so the supervisor repeats all interrupted calls. It first repeats them all together, because most
// processes end for an external reason, such as another program that uses up the memory.
import type { EnvironmentFailure, EnvironmentReply, EnvironmentRequest } from '../../protocol/environment-link';
import type { Ending, Replay, Runtime } from '../supervision/supervisor';
import { UserError } from '../../common/user-error';
import type { HeldEpisodes } from './held-episodes';
import { ProcessHandle, type ProcessEnd, type ProcessHandleOptions } from './process-handle';

export interface EnvironmentProcessOptions extends ProcessHandleOptions {
  /** Time limit in milliseconds of one call into environment code. */
  stepTimeoutMs: number;
}

export type Method = EnvironmentRequest['method'];
export type Content<M extends Method> = Omit<Extract<EnvironmentRequest, { method: M }>, 'id' | 'method'>;
export type Reply<M extends Method> = Extract<EnvironmentReply, { method: M }>;

/**
 * How the process ended. `refusal` is set if no new process can rebuild the episodes now; a later attempt may succeed.
 */
export interface ProcessCause extends ProcessEnd {
  refusal?: EnvironmentFailure;
}

/** Milliseconds that a process may take to exit by itself after `shutdown`. */
const shutdownTimeoutMs = 1000;

export class ProcessRuntime implements Runtime<ProcessCause> {
  readonly repeatsTogether = true;
  /**
   * The error that all further requests throw, because the runtime was stopped or no process can be started. Undefined
   * as long as requests can be sent.
   */
  dead: UserError | undefined;
  /** How the previous process ended. */
  lastEnd: ProcessEnd = { how: '' };
  private handle: ProcessHandle | undefined;
  private nextId = 1;

  /**
   * @param owner receives two calls: `died` when a process has ended, and `separate` before interrupted requests are
   * repeated one at a time
   */
  constructor(
    private readonly options: EnvironmentProcessOptions,
    private readonly held: HeldEpisodes,
    private readonly owner: { died(end: ProcessEnd): void; separate(): void },
  ) {}

  get running(): boolean {
    return this.handle?.alive ?? false;
  }

  /** Process id, to which a debugger attaches; undefined while no process exists. */
  get pid(): number | undefined {
    return this.handle?.child.pid;
  }

  /** If true, unanswered pings are ignored, because a debugger may halt the process. */
  set debugged(on: boolean) {
    if (this.handle) this.handle.debugged = on;
  }

  /**
   * Starts a new process after the previous one has ended.
   * @throws UserError if the runtime was stopped
   */
  async start(): Promise<undefined> {
    await this.handle?.ended; // the reason for its end is then known
    if (this.dead) throw this.dead;
    this.handle = new ProcessHandle(this.options);
    void this.handle.ended.then(end => {
      this.lastEnd = end; // set before other handlers of `ended` run
      this.owner.died(end);
    });
  }

  /** Returns the replays of all live episodes, each with the code version with which the episode started. */
  replays(): Replay<ProcessCause>[] {
    return this.held.replays().map(({ environments, episodes }) => ({
      episodes,
      load: alone => this.load(environments, alone),
    }));
  }

  async replay(episodes: readonly string[]): Promise<Ending<ProcessCause> | undefined> {
    const live = episodes.flatMap(episode => this.held.history.get(episode) ?? []);
    const begun = await this.ask('reset', { episodes: live.map(({ start }) => start) });
    const steps = live.map(({ start, actions }) => ({ episode: start.episode, actions }));
    const check = (reply: Reply<'step'>) => this.held.replayed(reply.episodes);
    const stepped = begun && (await this.ask('step', { episodes: steps }, check));
    if (stepped) return void check(stepped);
    await this.handle?.ended;
    return this.ending;
  }

  lose(episode: string, { how }: ProcessCause): void {
    this.held.lose(episode, `ended its process (${how}) when it was replayed`);
  }

  discard(): void {
    const { handle } = this;
    this.handle = undefined;
    handle?.end();
  }

  separate(): void {
    this.owner.separate();
  }

  /**
   * Sends a request to the running process. Resolves with the reply, or with undefined after the process has died.
   *
   * @throws UserError if the runtime was stopped
   */
  async attempt<M extends Method>(
    method: M,
    content: Content<M>,
    onPart?: (part: Reply<M>) => void,
  ): Promise<Reply<M> | undefined> {
    const { handle } = this;
    const reply = await this.ask(method, content, part => this.dead || onPart?.(part));
    if (!reply) await handle?.ended;
    if (this.dead) throw this.dead;
    return reply;
  }

  /** Does the same as `attempt`, but does not wait for the reason if the process ends. */
  async ask<M extends Method>(
    method: M,
    content: Content<M>,
    onPart?: (part: Reply<M>) => void,
  ): Promise<Reply<M> | undefined> {
    // eslint-disable-next-line no-restricted-syntax -- builds a request of this method from its parts
    const request = { ...content, method, id: this.nextId++ } as unknown as EnvironmentRequest;
    return (await this.handle?.ask(request, onPart as ((part: EnvironmentReply) => void) | undefined)) as
      Reply<M> | undefined;
  }

  /** The reason for the end of the latest process that has ended. A newer process may already be running. */
  get ending(): Ending<ProcessCause> {
    return { blame: 'unknown', cause: this.lastEnd };
  }

  /** Ends the process and its children. */
  async stop(): Promise<void> {
    this.dead ??= new UserError('environment process: the process was stopped: resume the run');
    const { handle } = this;
    if (!handle) return;
    if (process.platform === 'win32')
      handle.end(); // while the process runs, its children can be found through it
    else void handle.ask({ id: this.nextId++, method: 'shutdown' });
    const timer = setTimeout(() => handle.end(), shutdownTimeoutMs);
    await handle.ended;
    clearTimeout(timer);
  }

  private async load(
    environments: Content<'load'>['environments'],
    alone: boolean,
  ): Promise<Ending<ProcessCause> | undefined> {
    const loaded = await this.ask('load', { environments, timeout_ms: this.options.stepTimeoutMs });
    if (this.dead) throw this.dead;
    if (!loaded) await this.handle?.ended;
    if (!loaded && !alone) return this.ending;
    const refusal = loaded ? loaded.error : this.unloadable();
    return refusal && { blame: 'everybody', cause: { how: refusal.message, refusal } };
  }

  private unloadable(): EnvironmentFailure {
    const { nodePath = process.execPath, entry } = this.options;
    if (this.held.tags.length > 0) {
      const tags = this.held.tags.join(', ');
      const message = `environment process: the process ends while loading ${tags} (${this.lastEnd.how}): read the process's output in the run's log, and fix the environment that ends the process`;
      return { kind: 'died', message };
    }
    throw (this.dead = new UserError(
      `environment process: ${nodePath} could not run ${entry} (${this.lastEnd.how}): correct the path of Node.js, or install the extension again`,
    ));
  }
}
