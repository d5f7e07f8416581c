// The trainer's interface to environments. All tags share one process. A tag that may have violated a limit or ended
// the shared process moves to a separate process. A repeated fault then does not affect other tags' episodes. An
// episode's results do not depend on the process in which it runs.
import { killAbandoned } from '../../node/end-processes';
import type {
  CoveredCode,
  EnvironmentFailure,
  EnvironmentSpec,
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
  PreparedEnvironment,
} from '../../protocol/environment-link';
import { EnvironmentCell, type StatesListener } from './environment-cell';
import type { EnvironmentProcessOptions } from './process-runtime';

export type { EnvironmentProcessOptions, StatesListener };

export class EnvironmentProcess {
  private readonly shared: EnvironmentCell;
  /** Cells of tags that no longer share the process, by tag. */
  private readonly apart = new Map<string, EnvironmentCell>();
  /** The tag of each episode, by episode id. */
  private readonly tags = new Map<string, string>();
  private stopping: Promise<void> | undefined;

  private constructor(private readonly options: EnvironmentProcessOptions) {
    this.shared = new EnvironmentCell(options, {
      moveApart: (tags, why) => this.moveApart(tags, why),
      cellOf: tag => this.apart.get(tag),
    });
  }

  /**
   * Starts the shared process and waits for its first reply.
   * @throws UserError if the process cannot be started
   */
  static async start(options: EnvironmentProcessOptions): Promise<EnvironmentProcess> {
    killAbandoned();
    const started = new EnvironmentProcess(options);
    await started.shared.start();
    return started;
  }

  /** Process id of the shared process; undefined while no process exists. */
  get pid(): number | undefined {
    return this.shared.pid;
  }

  /** Process ids of all running processes, to which debuggers attach. */
  get pids(): number[] {
    return this.cells.flatMap(({ pid }) => pid ?? []);
  }

  /**
   * Loads environments, one per tag. If a tag is already loaded, its next episodes use the new code. `error` is the
   * first failure; the tag that failed keeps its previous code.
   */
  async load(specs: EnvironmentSpec[]): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }> {
    const outcomes = await this.split(specs, ofTag, (cell, own) => cell.load(own));
    const environments = inOrder(
      specs,
      outcomes.flatMap(outcome => outcome.environments),
    );
    const error = outcomes.find(outcome => outcome.error)?.error;
    return error ? { environments, error } : { environments };
  }

  /**
   * Builds, type-checks and loads the current files without affecting running episodes. `use` activates the result for
   * later resets. Does not wait for pending requests. If a process ends while it loads a tag's code, the result for
   * this tag reports that the process has ended.
   */
  async prepare(specs: EnvironmentSpec[], checkTypes: boolean): Promise<PreparedEnvironment[]> {
    const outcomes = await this.split(specs, ofTag, (cell, own) => cell.prepare(own, checkTypes));
    return inOrder(specs, outcomes.flat());
  }

  /** Activates the prepared code for later resets. If a process dies, the new process loads this code. */
  async use(prepared: readonly { spec: EnvironmentSpec; environment: LoadedEnvironment }[]): Promise<void> {
    await this.split(
      prepared,
      ({ spec }) => spec.tag,
      (cell, own) => cell.use(own),
    );
  }

  /**
   * Opens or closes the processes' inspectors; returns the URLs of open inspectors. Calls have no time limit while an
   * inspector is open.
   */
  async debug(on: boolean): Promise<string[]> {
    return (await Promise.all(this.cells.map(cell => cell.debug(on)))).flatMap(url => url ?? []);
  }

  /**
   * Switches line coverage on or off for later resets. Returns the counts since the last call; counts of a process that
   * died are missing.
   */
  async cover(on: boolean): Promise<CoveredCode[]> {
    return (await Promise.all(this.cells.map(cell => cell.cover(on)))).flat();
  }

  /**
   * Resets episodes. Returns states in the order of the request; `error` is set in the state of each episode that
   * failed.
   */
  async reset(episodes: EpisodeReset[], onStates?: StatesListener<EpisodeState>): Promise<EpisodeState[]> {
    for (const { episode, tag } of episodes) {
      const before = this.tags.get(episode);
      if (before !== undefined && this.cellOf(before) !== this.cellOf(tag))
        void this.cellOf(before).closeEpisodes([episode]);
      this.tags.set(episode, tag);
    }
    const states = await this.split(episodes, ofTag, (cell, own) => cell.reset(own, onStates));
    return byEpisode(episodes, states.flat());
  }

  /** Executes actions in order, up to the action that ends the episode. */
  async step(episodes: EpisodeActions[], onSteps?: StatesListener<EpisodeStep>): Promise<EpisodeStep[]> {
    const steps = await this.split(
      episodes,
      ({ episode }) => this.tags.get(episode),
      (cell, own) => cell.step(own, onSteps),
    );
    return byEpisode(episodes, steps.flat());
  }

  /**
   * Returns actions that solve each episode from its current state; undefined if the environment has no solver or the
   * solver finds no solution.
   */
  async solve(episodes: string[]): Promise<{ episode: string; actions?: (number | string)[] }[]> {
    const solutions = await this.split(
      episodes,
      episode => this.tags.get(episode),
      (cell, own) => cell.solve(own),
    );
    return byEpisode(
      episodes.map(episode => ({ episode })),
      solutions.flat(),
    );
  }

  /** Ends episodes; unknown episode ids are ignored. */
  async closeEpisodes(episodes: string[]): Promise<void> {
    const closed = this.split(
      episodes,
      episode => this.tags.get(episode),
      (cell, own) => cell.closeEpisodes(own),
    );
    for (const episode of episodes) this.tags.delete(episode);
    await closed;
  }

  /**
   * Ends the processes and their children. Pending requests fail with an error. Repeated calls return the same promise.
   */
  stop(): Promise<void> {
    return (this.stopping ??= Promise.all(this.cells.map(cell => cell.stop())).then(() => undefined));
  }

  private get cells(): EnvironmentCell[] {
    return [this.shared, ...this.apart.values()];
  }

  private cellOf(tag: string | undefined): EnvironmentCell {
    return (tag === undefined ? undefined : this.apart.get(tag)) ?? this.shared;
  }

  private moveApart(tags: readonly string[], why: string): void {
    if (this.stopping) return;
    for (const tag of tags) {
      this.apart.set(tag, new EnvironmentCell(this.options, undefined, this.shared.release(tag)));
      const text = `environment process: ${tag} moves to a separate process, because its shared process ${why}\n`;
      this.options.onNotice({ method: 'log', tag, stream: 'stderr', text });
    }
  }

  /** Groups the items by cell and calls `job` once per cell. Without items, calls `job` once for the shared cell. */
  private split<Item, Result>(
    items: readonly Item[],
    tagOf: (item: Item) => string | undefined,
    job: (cell: EnvironmentCell, own: Item[]) => Promise<Result>,
  ): Promise<Result[]> {
    const shares = new Map<EnvironmentCell, Item[]>();
    if (items.length === 0) shares.set(this.shared, []);
    for (const item of items) {
      const cell = this.cellOf(tagOf(item));
      const share = shares.get(cell);
      if (share) share.push(item);
      else shares.set(cell, [item]);
    }
    return Promise.all([...shares].map(([cell, own]) => job(cell, own)));
  }
}

const ofTag = ({ tag }: { tag: string }): string => tag;

/** Results in the order of the requested tags; tags without a result are omitted. */
const inOrder = <T extends { tag: string }>(asked: readonly { tag: string }[], found: readonly T[]): T[] =>
  asked.flatMap(({ tag }) => found.find(item => item.tag === tag) ?? []);

function byEpisode<T extends { episode: string }>(asked: readonly { episode: string }[], found: readonly T[]): T[] {
  const known = new Map(found.map(item => [item.episode, item]));
  return asked.map(({ episode }) => known.get(episode)!);
}
