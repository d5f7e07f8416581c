// The trainer's side of environments: one shared process for all tags, and one of its own for each tag that misbehaved
// (violated a limit or ended its process), or may have, while it shared a process. Other tags' episodes are then
// unaffected if it misbehaves again. The process does not affect an episode's results.
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
  /** Cells of moved tags, by tag. */
  private readonly apart = new Map<string, EnvironmentCell>();
  /** Tags by episode. */
  private readonly tags = new Map<string, string>();
  private stopping: Promise<void> | undefined;

  private constructor(private readonly options: EnvironmentProcessOptions) {
    this.shared = new EnvironmentCell(options, {
      moveApart: (tags, why) => this.moveApart(tags, why),
      cellOf: tag => this.apart.get(tag),
    });
  }

  /**
   * Starts the process and waits until it answers.
   * @throws UserError if it cannot be started
   */
  static async start(options: EnvironmentProcessOptions): Promise<EnvironmentProcess> {
    killAbandoned();
    const started = new EnvironmentProcess(options);
    await started.shared.start();
    return started;
  }

  /** Process id of the shared process while it runs. */
  get pid(): number | undefined {
    return this.shared.pid;
  }

  /** Process ids of all running processes, for debuggers to attach to. */
  get pids(): number[] {
    return this.cells.flatMap(({ pid }) => pid ?? []);
  }

  /**
   * Loads environments, one per tag; a tag that is already loaded uses the new code for its next episodes. `error` is
   * the first failure; its tag keeps its previous code.
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
   * Builds, checks and loads the current files while running episodes continue; `use` activates the result for episodes
   * reset later. Does not wait for other requests. Code that ends the process is refused.
   */
  async prepare(specs: EnvironmentSpec[], checkTypes: boolean): Promise<PreparedEnvironment[]> {
    const outcomes = await this.split(specs, ofTag, (cell, own) => cell.prepare(own, checkTypes));
    return inOrder(specs, outcomes.flat());
  }

  /** Activates the prepared code for episodes reset from now on. A process that dies is restarted with this code. */
  async use(prepared: readonly { spec: EnvironmentSpec; environment: LoadedEnvironment }[]): Promise<void> {
    await this.split(
      prepared,
      ({ spec }) => spec.tag,
      (cell, own) => cell.use(own),
    );
  }

  /**
   * Opens the processes to debuggers or closes them; returns the URLs to connect to. While they are open, calls have no
   * time limit.
   */
  async debug(on: boolean): Promise<string[]> {
    return (await Promise.all(this.cells.map(cell => cell.debug(on)))).flatMap(url => url ?? []);
  }

  /**
   * Starts or stops line coverage, which applies to episodes from their reset. Returns the counts since the last call;
   * none where they were lost.
   */
  async cover(on: boolean): Promise<CoveredCode[]> {
    return (await Promise.all(this.cells.map(cell => cell.cover(on)))).flat();
  }

  /** Begins episodes; returns states in the order of the request, each with its own `error` if it failed. */
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

  /** Executes actions in order; stops after the action that ends its episode. */
  async step(episodes: EpisodeActions[], onSteps?: StatesListener<EpisodeStep>): Promise<EpisodeStep[]> {
    const steps = await this.split(
      episodes,
      ({ episode }) => this.tags.get(episode),
      (cell, own) => cell.step(own, onSteps),
    );
    return byEpisode(episodes, steps.flat());
  }

  /** Actions that solve each episode from its current state; absent without a solver or a solution. */
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

  /** Ends episodes; unknown ones are ignored. */
  async closeEpisodes(episodes: string[]): Promise<void> {
    const closed = this.split(
      episodes,
      episode => this.tags.get(episode),
      (cell, own) => cell.closeEpisodes(own),
    );
    for (const episode of episodes) this.tags.delete(episode);
    await closed;
  }

  /** Ends the processes and their children; always returns the same promise. Pending requests fail with an error. */
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
      const text = `environment process: ${tag} has a process of its own from here on, since the one it shared ${why}\n`;
      this.options.onNotice({ method: 'log', tag, stream: 'stderr', text });
    }
  }

  /** Runs `job` for each cell with its share of the items. */
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

/** Results by tag, in the order of the request. */
const inOrder = <T extends { tag: string }>(asked: readonly { tag: string }[], found: readonly T[]): T[] =>
  asked.flatMap(({ tag }) => found.find(item => item.tag === tag) ?? []);

function byEpisode<T extends { episode: string }>(asked: readonly { episode: string }[], found: readonly T[]): T[] {
  const known = new Map(found.map(item => [item.episode, item]));
  return asked.map(({ episode }) => known.get(episode)!);
}
