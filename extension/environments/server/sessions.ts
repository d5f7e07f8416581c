// The environments that a server offers, and their sessions, for any protocol. Environment code runs only in the
// environment process; this file manages episode ids, the order of requests, and timeouts. The requests of a session
// are executed one at a time. Invariants: at most `maxSessions` sessions exist; a session that is idle for
// `sessionTimeoutMs` is closed; each step is applied exactly once. The limits come from the options of `ragen env serve`
// (cli/env/serve.ts).
import { randomInt, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { EnvironmentFailure, EnvironmentSpec, LoadedEnvironment } from '../../protocol/environment-link';
import type { EnvironmentPool } from '../client/environment-pool';

/** Error for a request that is invalid or exceeds a limit of the server. Contains the HTTP status of the response. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 422 | 500 | 503,
    message: string,
    /** Seconds after which the client should retry. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

export interface EnvironmentSource extends EnvironmentPool {
  load(specs: EnvironmentSpec[]): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }>;
}

export interface SessionOptions {
  pool: EnvironmentSource;
  /** The offered environments, by the names that clients use. The first environment is the default. */
  offered: readonly EnvironmentSpec[];
  /** Whether clients may override the configuration of an environment. */
  allowConfig: boolean;
  maxSessions: number;
  /** Maximum number of open sessions per client; default `maxSessions`. */
  maxClientSessions?: number;
  sessionTimeoutMs: number;
  /** Returns the time of a monotonic clock in milliseconds; default `performance.now()`. */
  now?(): number;
}

/** A request for a session. The client chooses the name, the configuration and the id. */
export interface SessionRequest {
  /** Name of the environment; default the first offered environment. */
  name?: string;
  config?: Record<string, unknown>;
  id?: string;
  /** Identifier of the client, by which its open sessions are counted. */
  client: string;
}

export interface SessionReset {
  seed: number;
  member: number;
  mode: 'train' | 'val';
}

/** The state of an episode after a reset or a step. */
export interface SessionState {
  text: string;
  /** PNG bytes. */
  images: Uint8Array[];
  /** Sum of the rewards of the last step's actions. */
  reward: number;
  terminated: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
}

/** Maximum number of loaded configurations that clients have sent. Each loaded configuration uses a thread. */
const mostConfigurations = 16;

/** Seconds after which a client should retry if the server has no free session. */
const retryAfter = 5;

export class Sessions {
  private readonly open = new Map<string, Session>();
  /** Identifiers of the clients for which sessions are being created. */
  private readonly opening: string[] = [];
  private readonly loaded = new Map<string, Promise<LoadedEnvironment>>();
  private readonly sweep: NodeJS.Timeout;
  private readonly now: () => number;

  constructor(private readonly options: SessionOptions) {
    this.now = options.now ?? (() => performance.now());
    this.sweep = setInterval(() => void this.closeIdle(), Math.min(Math.max(options.sessionTimeoutMs / 4, 50), 60_000));
    this.sweep.unref();
  }

  get names(): string[] {
    return this.options.offered.map(({ tag }) => tag);
  }

  get maxSessions(): number {
    return this.options.maxSessions;
  }

  get sessionTimeoutMs(): number {
    return this.options.sessionTimeoutMs;
  }

  list(): Session[] {
    return [...this.open.values()];
  }

  /**
   * Loads an environment at its first use, and returns its description.
   * @throws ServiceError if the name or configuration is not allowed, or if loading fails
   */
  async environment(name?: string, config: Record<string, unknown> = {}): Promise<LoadedEnvironment> {
    const { offered, allowConfig, pool } = this.options;
    const spec = name === undefined ? offered[0] : offered.find(({ tag }) => tag === name);
    if (!spec) throw new ServiceError(404, `there is no environment ${name}: use one of ${this.names.join(', ')}`);
    const own = Object.entries(config).filter(([key, value]) => !isDeepStrictEqual(spec.config[key], value));
    if (own.length > 0 && !allowConfig)
      throw new ServiceError(
        403,
        `env_config.${own[0][0]} differs from this server's value: omit this key, or start the server with --allow-config`,
      );
    const tag = own.length === 0 ? spec.tag : `${spec.tag} ${JSON.stringify(own)}`;
    const known = this.loaded.get(tag);
    if (known) return known;
    if (this.loaded.size >= offered.length + mostConfigurations)
      throw new ServiceError(
        503,
        `the limit of ${mostConfigurations} loaded configurations is reached: use one of the loaded configurations`,
      );
    const loading = (async () => {
      const { environments, error } = await pool.load([
        { ...spec, tag, config: { ...spec.config, ...Object.fromEntries(own) } },
      ]);
      const status = own.length > 0 ? 422 : 500;
      if (error) throw new ServiceError(status, withoutFolder(error));
      if (environments[0].roles)
        throw new ServiceError(
          status,
          `environment ${spec.tag} has roles, and a session has one player: serve an environment without roles`,
        );
      return environments[0];
    })();
    this.loaded.set(tag, loading);
    loading.catch(() => this.loaded.delete(tag));
    return loading;
  }

  /**
   * Creates a session without an episode.
   * @throws ServiceError 503 if the maximum number of sessions is reached, in total or for this client; 409 if the id
   * is in use
   */
  async create({ name, config, id = randomUUID(), client }: SessionRequest): Promise<Session> {
    const { maxSessions, maxClientSessions = maxSessions, pool } = this.options;
    if (this.open.has(id)) throw new ServiceError(409, `session ${id} already exists: close it, or choose another id`);
    const clients = [...this.opening, ...this.list().map(session => session.client)];
    const own = clients.filter(each => each === client).length;
    if (clients.length >= maxSessions) throw atCapacity(`${maxSessions}/${maxSessions} sessions active`);
    if (own >= maxClientSessions) throw atCapacity(`${own}/${maxClientSessions} sessions of your address active`);
    this.opening.push(client);
    try {
      const environment = await this.environment(name, config);
      const session = new Session(id, client, environment, pool, this.now, () => this.open.delete(id));
      this.open.set(id, session);
      return session;
    } finally {
      this.opening.splice(this.opening.indexOf(client), 1);
    }
  }

  get(id: string): Session | undefined {
    return this.open.get(id);
  }

  /** Closes sessions that have been idle for longer than `sessionTimeoutMs`. */
  async closeIdle(): Promise<void> {
    const idle = this.list().filter(session => session.idleMs > this.options.sessionTimeoutMs);
    await Promise.all(idle.map(session => session.close()));
  }

  async closeAll(): Promise<void> {
    clearInterval(this.sweep);
    await Promise.all(this.list().map(session => session.close()));
  }
}

const atCapacity = (what: string): ServiceError =>
  new ServiceError(503, `Server at capacity: ${what}. Try again later or close sessions.`, retryAfter);

export class Session {
  readonly createdAt = Date.now();
  steps = 0;
  /** Sum of the rewards of the episode so far. */
  total = 0;
  /** Called when the session is closed, including by a timeout. */
  onClosed: (() => void) | undefined;
  private state: SessionState | undefined;
  private begun: SessionReset | undefined;
  private names: Readonly<Record<number, string>> | undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private pendingRequests = 0;
  private asked: number;
  private closed = false;

  constructor(
    readonly id: string,
    /** Identifier of the client that created the session. */
    readonly client: string,
    readonly environment: LoadedEnvironment,
    private readonly pool: EnvironmentPool,
    private readonly now: () => number,
    private readonly forget: () => void,
  ) {
    this.asked = now();
  }

  /** Milliseconds since the last request finished; 0 while a request is running. */
  get idleMs(): number {
    return this.pendingRequests > 0 ? 0 : this.now() - this.asked;
  }

  get seed(): number | undefined {
    return this.begun?.seed;
  }

  /** Names of the episode's actions by id; undefined if actions are texts. */
  get actions(): Readonly<Record<number, string>> | undefined {
    return this.names;
  }

  /** Starts an episode. If no seed is given, draws one. */
  reset({ seed = randomInt(2 ** 31), member = 0, mode = 'train' }: Partial<SessionReset>): Promise<SessionState> {
    return this.inTurn(async () => {
      this.state = undefined;
      const reset = { seed, member, mode };
      const [begun] = await this.pool.reset([{ episode: this.id, tag: this.environment.tag, ...reset }]);
      if (begun.error) throw new ServiceError(500, withoutFolder(begun.error));
      const { observation, images = [], info = {}, actions } = begun;
      const names = actions ?? this.environment.actions;
      this.names = names && Object.keys(names).length > 0 ? names : undefined;
      this.begun = reset;
      this.steps = this.total = 0;
      return (this.state = { text: observation, images, reward: 0, terminated: false, truncated: false, info });
    });
  }

  /**
   * Executes actions in order, up to the action that ends the episode. Without actions, the state does not change.
   * @param choose returns the actions; receives the action names of this episode
   */
  step(choose: (names: Readonly<Record<number, string>> | undefined) => (number | string)[]): Promise<SessionState> {
    return this.inTurn(async () => {
      const { state } = this;
      if (!state) throw new ServiceError(409, 'there is no episode: reset the environment first');
      if (state.terminated || state.truncated)
        throw new ServiceError(409, 'the episode has ended: reset the environment');
      const actions = choose(this.names);
      if (actions.length === 0) {
        const info = { action_is_valid: false, action_is_effective: false };
        return (this.state = { ...state, reward: 0, info });
      }
      const [step] = await this.pool.step([{ episode: this.id, actions }]);
      if (step.error) {
        this.state = undefined;
        throw new ServiceError(500, withoutFolder(step.error));
      }
      const { observation: text, images = [], outcomes } = step;
      this.steps += outcomes.length;
      const reward = outcomes.reduce((sum, outcome) => sum + outcome.reward, 0);
      this.total += reward;
      const { terminated, truncated } = outcomes[outcomes.length - 1];
      const info = Object.fromEntries(outcomes.flatMap(outcome => Object.entries(outcome.info)));
      return (this.state = { text, images, reward, terminated, truncated, info });
    });
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.forget();
    await this.queue;
    await this.pool.closeEpisodes([this.id]);
    this.onClosed?.();
  }

  private async inTurn<T>(job: () => Promise<T>): Promise<T> {
    if (this.closed) throw new ServiceError(404, `Session ${this.id} was closed`);
    this.pendingRequests++;
    const turn = this.queue.then(job).finally(() => {
      this.pendingRequests--;
      this.asked = this.now();
    });
    this.queue = turn.catch(() => undefined);
    return turn;
  }
}

/** Returns the task as a system prompt: instruction, legend and, if `withActions` is set, the action names. */
export function taskText(
  { instruction, legend, actions }: LoadedEnvironment,
  { withActions }: { withActions: boolean },
): string {
  const symbols = Object.entries(legend).map(([symbol, meaning]) => `${symbol}: ${meaning}`);
  const names = withActions ? Object.values(actions ?? {}) : [];
  return [
    instruction,
    ...(symbols.length > 0 ? ['Symbols in the state:', symbols.join(', ')] : []),
    ...(names.length > 0 ? ['Available actions:', names.join(', ')] : []),
  ].join('\n');
}

/** Returns the action that a client means by a name, an id or a text; undefined if the episode has no such action. */
export function actionMeant(
  given: number | string | boolean,
  names: Readonly<Record<number, string>> | undefined,
): number | string | undefined {
  if (!names) return String(given);
  const wanted = String(given).trim().toLowerCase();
  const named = Object.entries(names).find(([, name]) => name.toLowerCase() === wanted);
  if (named && typeof given !== 'number') return Number(named[0]);
  return Object.hasOwn(names, wanted) ? Number(wanted) : undefined;
}

/** Returns a failure's message as it is sent to clients: each path in it is shortened to its file name. */
const withoutFolder = ({ message }: EnvironmentFailure): string =>
  message.replace(/\((?:[^()]*[\\/])?([^()\\/]+)\)/, '($1)');
