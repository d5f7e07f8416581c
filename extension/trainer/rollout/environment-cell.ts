// One environment process at a time, and what it must hold: starts it, asks it, and ends it with all it started. Where the process dies it is
// started anew, the code it ran is loaded again and the live episodes are rebuilt from (code, seed, member, actions), since an episode is a
// pure function of those. What was in hand is done again: all of it, and where the process dies over it once more, one episode at a time, so
// that the one whose code ends the process fails alone. Tags that share a process which misbehaves are moved to processes of their own.
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
import { appendAll } from '../../protocol/lists';
import { Turns } from '../../protocol/turns';
import { UserError } from '../../protocol/user-error';
import { HeldEpisodes, type LiveEpisode, type TagState } from './held-episodes';
import { ProcessLife, type ProcessEnd, type ProcessLifeOptions } from './process-life';
import type { Offence } from './process-watch';

export interface EnvironmentProcessOptions extends ProcessLifeOptions {
  /** Limit of one call into environment code, in milliseconds. */
  stepTimeoutMs: number;
}

/** Where the tags of a process go that must not share it any more. */
export interface Isolation {
  /** Moves tags to cells of their own, for the reason that ends `the process …`. */
  moveApart(tags: readonly string[], why: string): void;
  /** The cell of a tag that was moved. */
  cellOf(tag: string): EnvironmentCell | undefined;
}

/** Hears of episodes as soon as they are ready. */
export type StatesListener<State extends EpisodeState> = (states: State[]) => void;

type Method = EnvironmentRequest['method'];
type Content<M extends Method> = Omit<Extract<EnvironmentRequest, { method: M }>, 'id' | 'method'>;
type Reply<M extends Method> = Extract<EnvironmentReply, { method: M }>;

/** Milliseconds a process may take to end by itself. */
const grace = 1000;

/** The process cannot be made to stand where it stood: it may, the next time. */
class Unavailable extends UserError {
  constructor(readonly failure: EnvironmentFailure) {
    super(failure.message);
  }
}

export class EnvironmentCell {
  private life: ProcessLife | undefined;
  private nextId = 1;
  private connecting: Promise<ProcessLife> | undefined;
  /** Of episodes. */
  private readonly turns = new Turns();
  /** The newest load. */
  private loading: Promise<unknown> = Promise.resolve();
  private readonly held: HeldEpisodes;
  /** Work that is done with nothing else in hand: the process died over something. */
  private alone: Promise<unknown> | undefined;
  /** How the process ended the last time. */
  private lastEnd: ProcessEnd = { how: '' };
  private dead: UserError | undefined;
  private stopping: Promise<void> | undefined;

  /** @param isolation absent where the cell is that of one tag already, whose state is `held` */
  constructor(
    private readonly options: EnvironmentProcessOptions,
    private readonly isolation?: Isolation,
    held?: TagState,
  ) {
    this.held = new HeldEpisodes(held);
  }

  /** Starts the process and waits until it answers. @throws UserError when it cannot be started. */
  async start(): Promise<void> {
    await this.connect();
  }

  /** Process id while it runs, for a debugger to attach to. */
  get pid(): number | undefined {
    return this.life?.child.pid;
  }

  /**
   * Makes environments ready, one a tag; a tag that is loaded again gets the new code for its next episodes. `error` is the first that
   * failed; its tag keeps the code it had.
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
   * Builds, checks and loads what the files hold now, while what runs goes on; `use` makes it the code of the episodes reset after.
   * Waits for no other request. Code that ends the process is refused.
   */
  async prepare(specs: EnvironmentSpec[], checkTypes: boolean): Promise<PreparedEnvironment[]> {
    if (this.dead) return [];
    const content = (some: EnvironmentSpec[]) => ({ ...this.loads(some), check_types: checkTypes });
    const { life } = this; // where there is none at the moment, the next one is waited for
    const together = this.alone || !life?.alive ? undefined : await this.ask(life, 'prepare', content(specs));
    if (together) return together.environments;
    const prepared: PreparedEnvironment[] = [];
    try {
      for (const spec of specs) {
        const own = await this.withNothingElse(() => this.attempt('prepare', content([spec])));
        appendAll(prepared, own?.environments ?? [this.endsItsProcess(spec)]);
      }
    } catch {
      // it was stopped, or what ran before does not load any more, which the next request tells
    }
    return prepared;
  }

  private endsItsProcess({ tag, source }: EnvironmentSpec): PreparedEnvironment {
    const message = `environment ${tag} (${source}) ends its process while it loads (${this.lastEnd.how}): mend the file and save it`;
    return { tag, files: [source], problems: [{ file: source, line: 1, column: 1, message, kind: 'load' }] };
  }

  /** Episodes reset from here on run what was prepared last. A process that dies meanwhile comes back with this code. */
  use(prepared: readonly { spec: EnvironmentSpec; environment: LoadedEnvironment }[]): Promise<void> {
    return this.afterLoads(async () => {
      const environments = prepared.map(({ spec, environment }) => this.held.keep(spec, environment));
      await this.request('use', { tags: environments.map(({ tag }) => tag) });
      const { error } = await this.request('load', this.loads(environments)); // where it died and forgot what was prepared
      if (error) throw new UserError(error.message);
    });
  }

  /** Opens the process to a debugger, or closes it; gives the URL that one may connect to. While it is open no call has a time limit. */
  async debug(on: boolean): Promise<string | undefined> {
    const { url } = await this.request('debug', { on });
    if (this.life) this.life.debugged = on;
    return url;
  }

  /** Gives up a tag with all that is held of it; what is in hand of it is done where the isolation says. */
  release(tag: string): TagState {
    return this.held.release(tag);
  }

  /** Has the lines counted that episodes reach from their reset on, or no more; gives the counts since the last time, none where they are lost. */
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

  /** Begins episodes; the states come in the order of the request, each with its own `error` where it failed. */
  reset(episodes: EpisodeReset[], onStates?: StatesListener<EpisodeState>): Promise<EpisodeState[]> {
    const resets = new Map(episodes.map(reset => [reset.episode, reset]));
    const settled = (state: EpisodeState) => this.held.begun(resets.get(state.episode)!, state);
    return this.turns.take([...resets.keys()], leave =>
      this.loading.then(() => this.states('reset', episodes, settled, leave, onStates)),
    );
  }

  /** Executes actions in order, stopping after the one that ends its episode. */
  step(episodes: EpisodeActions[], onSteps?: StatesListener<EpisodeStep>): Promise<EpisodeStep[]> {
    const settled = (step: EpisodeStep) => this.held.stepped(step);
    const names = episodes.map(({ episode }) => episode);
    return this.turns.take(names, leave => this.states('step', episodes, settled, leave, onSteps));
  }

  /** Actions that solve each episode from where it stands; absent where there is no solver or no solution. */
  solve(episodes: string[]): Promise<{ episode: string; actions?: (number | string)[] }[]> {
    const none = episodes.map(episode => ({ episode }));
    return this.turns.take(
      episodes,
      async () => (await this.mayFail(() => this.request('solve', { episodes })))?.solutions ?? none,
    );
  }

  /** Ends episodes; unknown ones are passed over. */
  closeEpisodes(episodes: string[]): Promise<void> {
    return this.turns.take(episodes, async () => {
      for (const episode of episodes) this.held.close(episode);
      await this.mayFail(() => this.request('close', { episodes })); // a new process knows nothing of them
    });
  }

  /** Ends the process and all it started; the same promise each time. Requests in hand end with an error. */
  stop(): Promise<void> {
    return (this.stopping ??= this.end());
  }

  private async end(): Promise<void> {
    this.dead ??= new UserError('environment process: it was stopped: start the run again to go on');
    const { life } = this;
    if (!life) return;
    if (process.platform === 'win32')
      life.end(); // finds what it started by its tree, which must be there still
    else void life.ask({ id: this.nextId++, method: 'shutdown' });
    const timer = setTimeout(() => life.end(), grace);
    await life.ended;
    clearTimeout(timer);
  }

  /** A reset or step of episodes, of which each is done once whatever dies meanwhile; in the order of the request. */
  private async states<M extends 'reset' | 'step', State extends EpisodeState>(
    method: M,
    episodes: readonly { episode: string }[],
    settled: (state: State) => State,
    leave: (episode: string) => void,
    onStates?: StatesListener<State>,
  ): Promise<State[]> {
    const done = new Map<string, State>();
    const finish = (finished: State[]) => {
      const states = finished.filter(({ episode }) => !done.has(episode));
      for (const state of states) {
        done.set(state.episode, state);
        leave(state.episode);
      }
      onStates?.(states);
    };
    const take = (answered: State[]) => finish(answered.map(settled));
    const open = () => episodes.filter(({ episode }) => !done.has(episode));
    const tags = new Map(episodes.map(item => [item.episode, this.held.tagOf(item)]));
    const cellOf = ({ episode }: { episode: string }): EnvironmentCell | undefined => {
      const tag = tags.get(episode) ?? this.held.movedTo(episode);
      return tag === undefined ? undefined : this.isolation?.cellOf(tag);
    };
    /** Whether there are answers for all of them: from the process, and for tags that were moved from the cells that they are in. */
    const answers = async (some: readonly { episode: string }[]): Promise<boolean> => {
      const cells = new Set(some.map(cellOf));
      const own = some.filter(item => !cellOf(item));
      const elsewhere = [...cells].map(cell => {
        const items = some.filter(item => cell && cellOf(item) === cell);
        const play = cell?.[method] as ((items: unknown, onStates: typeof finish) => Promise<unknown>) | undefined;
        return play?.call(cell, items, finish);
      });
      const part = (reply: Reply<M>) => take((reply as unknown as { episodes: State[] }).episodes);
      const asked = own.length > 0 ? this.attempt(method, { episodes: own } as unknown as Content<M>, part) : undefined;
      const [reply] = await Promise.all([asked, ...elsewhere]);
      if (reply) part(reply);
      return own.length === 0 || reply !== undefined;
    };
    const fail = (some: readonly { episode: string }[], failure: (item: { episode: string }) => EnvironmentFailure) =>
      take(
        some.map(
          item =>
            ({
              episode: item.episode,
              observation: '',
              outcomes: [],
              version: '',
              error: failure(item),
            }) as unknown as State,
        ),
      );
    try {
      if (this.alone || !(await answers(open())))
        await this.withNothingElse(async () => {
          if (await answers(open())) return; // most deaths have other causes, such as memory that another program took
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

  /** The process has ended. Whom it is known that he is to blame, or all where nobody is, gets a process of his own. */
  private died(end: ProcessEnd): void {
    this.lastEnd = end;
    const { offence } = end;
    if (!offence || this.dead) return;
    this.report(offence);
    const { tags } = this.held;
    const blamed = offence.tag ?? (tags.length === 1 ? tags[0] : undefined);
    // Episodes that hold the memory would take it again when they were rebuilt; those in hand are tried where a call of theirs may have taken it.
    if (offence.kind === 'memory' && blamed !== undefined)
      for (const [episode, { reset }] of this.held.liveOf(blamed))
        if (offence.children || !this.turns.has(episode))
          this.held.lose(reset, this.held.failure(blamed, ` at seed ${reset.seed}, member ${reset.member}`, end));
    this.moveApart(offence.tag === undefined ? tags : [offence.tag]);
  }

  /** To the run's log: what the process was ended for, also where no episode comes to harm. */
  private report({ tag, what, remedy }: Offence): void {
    const who = tag ?? this.held.tags.join(' or ');
    const text = `environment process: ${who} ${what}: ${remedy}\n`;
    this.options.onNotice({ method: 'log', tag: tag ?? '', stream: 'stderr', text });
  }

  private moveApart(tags: readonly string[]): void {
    if (this.held.tags.length > 1 && !this.dead)
      this.isolation?.moveApart(tags.filter(tag => this.held.specs.has(tag)), this.lastEnd.how); // prettier-ignore
  }

  /** Asks, and asks again where the process died. @throws UserError where it died again, or was stopped */
  private async request<M extends Method>(method: M, content: Content<M>): Promise<Reply<M>> {
    const first = this.alone ? undefined : await this.attempt(method, content);
    const reply = first ?? (await this.withNothingElse(() => this.attempt(method, content)));
    if (reply) return reply;
    throw new UserError(
      `environment process: it died twice during ${method} (${this.lastEnd.how}): mend the environment that ends it, or see the run's log for what it printed`,
    );
  }

  /** What comes of `job`, or undefined where the environments' code is to blame that nothing does. */
  private async mayFail<T>(job: () => Promise<T>): Promise<T | undefined> {
    try {
      return await job();
    } catch (error) {
      if (this.dead) throw this.dead;
      if (!(error instanceof UserError)) throw error;
      this.options.onNotice({ method: 'log', tag: '', stream: 'stderr', text: `${error.message}\n` });
      return undefined;
    }
  }

  /** Does `job` when what was asked before in this way is done; meanwhile no other request is sent. */
  private withNothingElse<T>(job: () => Promise<T>): Promise<T> {
    const work = (this.alone ?? Promise.resolve()).then(job);
    const mine: Promise<unknown> = work
      .catch(() => undefined)
      .then(() => {
        if (this.alone === mine) this.alone = undefined;
      });
    this.alone = mine;
    return work;
  }

  /** Asks the process once: undefined when it died over it. @throws UserError where there is none or it was stopped */
  private async attempt<M extends Method>(
    method: M,
    content: Content<M>,
    onPart?: (part: Reply<M>) => void,
  ): Promise<Reply<M> | undefined> {
    const life = await this.connect();
    const reply = await this.ask(life, method, content, part => this.dead || onPart?.(part));
    if (!reply) await life.ended;
    if (this.dead) throw this.dead;
    return reply;
  }

  /** The reply, or undefined when the process died over it. */
  private async ask<M extends Method>(
    life: ProcessLife,
    method: M,
    content: Content<M>,
    onPart?: (part: Reply<M>) => void,
  ): Promise<Reply<M> | undefined> {
    const request = { ...content, method, id: this.nextId++ } as unknown as EnvironmentRequest;
    return (await life.ask(request, onPart as ((part: EnvironmentReply) => void) | undefined)) as Reply<M> | undefined;
  }

  /** The running process; after a death a new one that stands where the old one stood. */
  private async connect(): Promise<ProcessLife> {
    if (this.dead) throw this.dead;
    if (this.life?.alive && !this.connecting) return this.life;
    return (this.connecting ??= this.begin().finally(() => (this.connecting = undefined)));
  }

  private async begin(): Promise<ProcessLife> {
    await this.life?.ended; // it is known then what it ended for
    for (let careful = false; ; careful = true) {
      if (this.dead) throw this.dead;
      const life = new ProcessLife(this.options);
      void life.ended.then(end => this.died(end)); // before any other that waits for it
      this.life = life;
      try {
        if (await this.rebuild(life, careful)) return life;
        await life.ended;
      } catch (error) {
        this.life = undefined; // it holds less than it should: the next request begins anew
        life.end();
        throw error;
      }
      if (this.dead) throw this.dead;
    }
  }

  /**
   * Loads the environments and replays the live episodes, one after the other where that is `careful`; those that began before an edit on the
   * code that they began on. False when the process died over it; an episode that ended it twice is lost then.
   * @throws Unavailable where the code does not load any more
   */
  private async rebuild(life: ProcessLife, careful: boolean): Promise<boolean> {
    const timeout_ms = this.options.stepTimeoutMs;
    for (const { environments, episodes } of this.held.replays()) {
      const loaded = await this.ask(life, 'load', { environments, timeout_ms });
      if (this.dead) throw this.dead;
      if (!loaded && careful) throw await this.unloadable(life);
      if (!loaded) return false;
      if (loaded.error) throw new Unavailable(loaded.error);
      for (const part of careful ? episodes.map(episode => [episode]) : [episodes]) {
        if (part.length === 0 || (await this.replay(life, part))) continue;
        await life.ended;
        if (careful) this.held.lose(part[0].reset, `ended its process (${this.lastEnd.how}) when it was played again`);
        return false;
      }
    }
    return true;
  }

  /** Plays live episodes again up to where they stood; false when the process died over it. */
  private async replay(life: ProcessLife, live: readonly LiveEpisode[]): Promise<boolean> {
    const begun = await this.ask(life, 'reset', { episodes: live.map(({ reset }) => reset) });
    const episodes = live.map(({ reset, actions }) => ({ episode: reset.episode, actions }));
    const check = (reply: Reply<'step'>) => this.held.replayed(reply.episodes);
    const stepped = begun && (await this.ask(life, 'step', { episodes }, check));
    if (stepped) check(stepped);
    return stepped !== undefined;
  }

  private async unloadable(life: ProcessLife): Promise<UserError> {
    const { nodePath = process.execPath, entry } = this.options;
    await life.ended;
    if (this.held.tags.length > 0) {
      const tags = this.held.tags.join(', ');
      const message = `environment process: it ends while it loads ${tags} (${this.lastEnd.how}): mend the environment that ends it, or see the run's log for what it printed`;
      return new Unavailable({ kind: 'died', message });
    }
    return (this.dead = new UserError(
      `environment process: ${nodePath} could not run ${entry} (${this.lastEnd.how}): check the path of Node.js and that the extension is complete`,
    ));
  }
}
