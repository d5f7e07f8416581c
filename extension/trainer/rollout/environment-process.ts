// The trainer's side of the environment process: starts it, asks it, and ends it with all it started. Where the process itself dies it is
// started anew once for the request in hand, its environments are loaded again and the live episodes are rebuilt from (seed,
// member, actions), since an episode is a pure function of those. Requests are answered one after the other, in order.
import { execFile, fork, type ChildProcess } from 'node:child_process';
import type {
  EnvironmentFailure,
  EnvironmentNotice,
  EnvironmentReply,
  EnvironmentRequest,
  EnvironmentSpec,
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
} from '../../protocol/environment-link';
import { UserError } from '../../protocol/user-error';

export interface EnvironmentProcessOptions {
  /** The Node.js that runs the process; this process's own by default. */
  nodePath?: string;
  /** Path of `environment-host.cjs`; `environment-worker.cjs` lies beside it. */
  entry: string;
  /** Limit of one call into environment code, in milliseconds. */
  stepTimeoutMs: number;
  /** Options of Node.js for the process, such as `--inspect=127.0.0.1:0`. */
  execArgv?: string[];
  /** What environments print; the tag is empty where it is not known. */
  onNotice(notice: EnvironmentNotice): void;
}

type Method = EnvironmentRequest['method'];
type Content<M extends Method> = Omit<Extract<EnvironmentRequest, { method: M }>, 'id' | 'method'>;
type Reply<M extends Method> = Extract<EnvironmentReply, { method: M }>;

/** What is needed to rebuild a live episode. */
interface LiveEpisode {
  reset: EpisodeReset;
  actions: (number | string)[];
  version: string;
}

/** Milliseconds a process may take to end by itself. */
const grace = 1000;

/** Milliseconds to wait for the output of a process that has ended. */
const lastWordsMs = 300;

export class EnvironmentProcess {
  private link: Link | undefined;
  private nextId = 1;
  private queue: Promise<unknown> = Promise.resolve();
  private readonly specs = new Map<string, EnvironmentSpec>();
  private readonly live = new Map<string, LiveEpisode>();
  /** Episodes that did not survive a restart. */
  private readonly lost = new Map<string, EnvironmentFailure>();
  private dead: UserError | undefined;
  private stopping: Promise<void> | undefined;

  private constructor(private readonly options: EnvironmentProcessOptions) {}

  /**
   * Starts the process and waits until it answers.
   * @throws UserError when it cannot be started.
   */
  static async start(options: EnvironmentProcessOptions): Promise<EnvironmentProcess> {
    const started = new EnvironmentProcess(options);
    await started.inTurn(() => started.connect());
    return started;
  }

  /** Process id while it runs, for a debugger to attach to. */
  get pid(): number | undefined {
    return this.link?.child.pid;
  }

  /**
   * Makes environments ready, one a tag; a tag that is loaded again gets the new code for its next episodes. `error` is the first that
   * failed; its tag keeps the code it had.
   */
  async load(specs: EnvironmentSpec[]): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }> {
    const content = { environments: specs, timeout_ms: this.options.stepTimeoutMs };
    const { environments, error } = await this.request('load', content);
    for (const { tag } of environments)
      this.specs.set(
        tag,
        specs.find(spec => spec.tag === tag)!,
      );
    return error ? { environments, error } : { environments };
  }

  /** Begins episodes; the states come in the order of the request, each with its own `error` where it failed. */
  async reset(episodes: EpisodeReset[]): Promise<EpisodeState[]> {
    const states = (await this.request('reset', { episodes })).episodes;
    states.forEach(({ episode, version, error }, i) => {
      this.lost.delete(episode);
      if (error) this.live.delete(episode);
      else this.live.set(episode, { reset: episodes[i], actions: [], version });
    });
    return states;
  }

  /** Executes actions in order, stopping after the one that ends its episode. */
  async step(episodes: EpisodeActions[]): Promise<EpisodeStep[]> {
    const steps = (await this.request('step', { episodes })).episodes;
    return steps.map(step => {
      const live = this.live.get(step.episode);
      live?.actions.push(...step.outcomes.map(({ action }) => action));
      const error = this.lost.get(step.episode) ?? step.error;
      if (error) this.live.delete(step.episode);
      return error ? { ...step, error } : step;
    });
  }

  /** Actions that solve each episode from where it stands; absent where there is no solver or no solution. */
  async solve(episodes: string[]): Promise<{ episode: string; actions?: (number | string)[] }[]> {
    return (await this.request('solve', { episodes })).solutions;
  }

  /** Ends episodes; unknown ones are passed over. */
  async closeEpisodes(episodes: string[]): Promise<void> {
    for (const episode of episodes) {
      this.live.delete(episode);
      this.lost.delete(episode);
    }
    await this.request('close', { episodes });
  }

  /** Ends the process and all it started; the same promise each time. Requests in hand end with an error. */
  stop(): Promise<void> {
    return (this.stopping ??= this.end());
  }

  private async end(): Promise<void> {
    this.dead ??= new UserError('environment process: it was stopped: start the run again to go on');
    const { link } = this;
    if (!link) return;
    void link.ask({ id: this.nextId++, method: 'shutdown' });
    const timer = setTimeout(() => killTree(link.child), grace);
    await link.ended;
    clearTimeout(timer);
  }

  private inTurn<T>(job: () => Promise<T>): Promise<T> {
    const turn = this.queue.then(job);
    this.queue = turn.catch(() => undefined);
    return turn;
  }

  private request<M extends Method>(method: M, content: Content<M>): Promise<Reply<M>> {
    return this.inTurn(async () => {
      for (let deaths = 0; ;) {
        const link = await this.connect();
        const reply = await this.ask(link, method, content);
        if (reply && !this.dead) return reply;
        if (!this.dead && ++deaths > 1)
          this.dead = new UserError(
            `environment process: it died twice during ${method} (${await link.ended}): mend the environment that ends it, or see the run's log for what it printed`,
          );
      }
    });
  }

  /** The reply, or undefined when the process died over it. */
  private async ask<M extends Method>(link: Link, method: M, content: Content<M>): Promise<Reply<M> | undefined> {
    return (await link.ask({ ...content, method, id: this.nextId++ } as unknown as EnvironmentRequest)) as
      Reply<M> | undefined;
  }

  /** The running process; after a death a new one that stands where the old one stood. */
  private async connect(): Promise<Link> {
    if (this.dead) throw this.dead;
    if (this.link?.alive) return this.link;
    const link = new Link(this.options);
    this.link = link;
    const rebuilt = await this.rebuild(link);
    if (this.dead) throw this.dead;
    if (rebuilt) return link;
    this.dead = new UserError(
      `environment process: ${this.options.nodePath ?? process.execPath} could not run ${this.options.entry} (${await link.ended}): check the path of Node.js and that the extension is complete`,
    );
    throw this.dead;
  }

  /** Loads the environments and replays the live episodes; false when the process died over it. */
  private async rebuild(link: Link): Promise<boolean> {
    const environments = [...this.specs.values()];
    const timeout_ms = this.options.stepTimeoutMs;
    const loaded = await this.ask(link, 'load', { environments, timeout_ms });
    if (!loaded) return false;
    if (loaded.error) this.dead = new UserError(loaded.error.message);
    if (this.live.size === 0) return true;
    const live = [...this.live.values()];
    const begun = await this.ask(link, 'reset', { episodes: live.map(({ reset }) => reset) });
    const episodes = live.map(({ reset, actions }) => ({ episode: reset.episode, actions }));
    const stepped = begun && (await this.ask(link, 'step', { episodes }));
    if (!stepped) return false;
    stepped.episodes.forEach(({ episode, version, error }, i) => {
      const { reset } = live[i];
      const message = `environment ${reset.tag} changed while its process had died, so the episode at seed ${reset.seed}, member ${reset.member} is lost: nothing is to be done, the next episodes use the new code`;
      const failure = error ?? (version === live[i].version ? undefined : { kind: 'died' as const, message });
      if (!failure) return;
      this.live.delete(episode);
      this.lost.set(episode, failure);
    });
    return true;
  }
}

/** One life of the process: its child, the requests it has not answered, and its end. */
class Link {
  readonly child: ChildProcess;
  /** How it ended, as words for a sentence. */
  readonly ended: Promise<string>;
  alive = true;
  private readonly open = new Map<number, (reply: EnvironmentReply | undefined) => void>();
  private lastWords = '';

  constructor({ nodePath, entry, execArgv = [], onNotice }: EnvironmentProcessOptions) {
    const child = fork(entry, [], {
      execPath: nodePath ?? process.execPath,
      execArgv,
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: process.platform !== 'win32', // leads a process group, so that all it starts can be ended with it
    });
    this.child = child;
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream]?.setEncoding('utf8').on('data', (text: string) => {
        if (stream === 'stderr') this.lastWords = errorLine(text) ?? (this.lastWords || lastLine(text));
        onNotice({ method: 'log', tag: '', stream, text });
      });
    child.on('message', (message: EnvironmentReply | EnvironmentNotice) => {
      if (message.method === 'log') return onNotice(message);
      this.open.get(message.id)?.(message);
      this.open.delete(message.id);
    });
    this.ended = new Promise(resolve => {
      const end = (how: string) => {
        this.alive = false;
        for (const answer of this.open.values()) answer(undefined);
        this.open.clear();
        resolve(this.lastWords ? `${how}; it said: ${this.lastWords}` : how);
      };
      child.on('error', error => (child.pid === undefined ? end(error.message) : undefined));
      child.on('exit', (code, signal) => {
        killTree(child); // what it started must not outlive it
        const how = signal ? `ended by signal ${signal}` : `ended with exit code ${code}`;
        child.once('close', () => end(how)); // its last words are read by then
        setTimeout(end, lastWordsMs, how).unref();
      });
    });
  }

  /** The reply, or undefined when the process ends before it. */
  ask(request: EnvironmentRequest): Promise<EnvironmentReply | undefined> {
    if (!this.alive) return Promise.resolve(undefined);
    return new Promise(resolve => {
      this.open.set(request.id, resolve);
      if (this.child.connected) this.child.send(request, () => undefined); // a failed send shows as the end of the process
    });
  }
}

/** The line of an output that names an error. */
function errorLine(text: string): string | undefined {
  return /^(Uncaught )?\w*Error.*$/m.exec(text)?.[0].slice(0, 200);
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)!.slice(0, 200);
}

function killTree(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === 'win32') execFile('taskkill', ['/pid', String(child.pid), '/T', '/F'], () => undefined);
  else
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // the group has ended meanwhile
    }
}
