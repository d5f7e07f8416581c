// The environment processes of a run. An episode's seed and member determine its process, so the assignment does not
// depend on timing. Process k, counted from 0, serves the tags for which more than k workers are configured. Invariant:
// for each tag, all processes run the same code, because the first process builds the code and the others load this
// build.
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
import { maximum } from '../../common/lists';
import type { EnvironmentPool } from './environment-pool';
import { EnvironmentProcess, type EnvironmentProcessOptions, type StatesListener } from './environment-process';

export class EnvironmentProcessPool implements EnvironmentPool {
  /** For each episode id: the process that plays the episode. */
  private readonly owners = new Map<string, EnvironmentProcess>();

  private constructor(
    private readonly processes: readonly EnvironmentProcess[],
    private readonly workers: Readonly<Record<string, number>>,
  ) {}

  /**
   * Starts the processes and waits for their first replies.
   * @param workers number of processes per tag, default 1
   * @throws UserError if a process cannot be started
   */
  static async start(
    options: EnvironmentProcessOptions,
    workers: Readonly<Record<string, number>> = {},
  ): Promise<EnvironmentProcessPool> {
    const count = maximum(Object.values(workers), 1);
    const starts = await Promise.allSettled(Array.from({ length: count }, () => EnvironmentProcess.start(options)));
    const processes = starts.flatMap(start => (start.status === 'fulfilled' ? [start.value] : []));
    const failed = starts.find(start => start.status === 'rejected');
    if (!failed) return new EnvironmentProcessPool(processes, workers);
    await Promise.all(processes.map(process => process.stop()));
    throw failed.reason;
  }

  /** Process ids of the running processes, to which debuggers attach. */
  get pids(): number[] {
    return this.processes.flatMap(({ pids }) => pids);
  }

  /** Loads one environment per tag. Called before the first episodes of a run. `error` is the first failure. */
  async load(specs: EnvironmentSpec[]): Promise<{ environments: LoadedEnvironment[]; error?: EnvironmentFailure }> {
    const [first, ...others] = this.processes;
    const { environments, error } = await first.load(specs);
    const built = withBuilt(specs, environments);
    const further = await Promise.all(others.map((process, k) => process.load(this.servedBy(k + 1, built))));
    const failure = error ?? further.find(outcome => outcome.error)?.error;
    return failure ? { environments, error: failure } : { environments };
  }

  /**
   * Builds, type-checks and loads the current files in all processes without affecting running episodes. A tag is ready
   * if every process that serves it has loaded the code. A tag is missing from the result if one of these processes was
   * unavailable; the next call tries again.
   */
  async prepare(specs: EnvironmentSpec[], checkTypes: boolean): Promise<PreparedEnvironment[]> {
    const [first, ...others] = this.processes;
    const prepared = await first.prepare(specs, checkTypes);
    const ready = prepared.flatMap(outcome => ('environment' in outcome ? [outcome.environment] : []));
    const built = withBuilt(specs, ready);
    const further = await Promise.all(
      others.map(async (process, k) => {
        const served = this.servedBy(k + 1, built);
        const outcomes = await process.prepare(served, false);
        return served.map(({ tag }) => ({ tag, outcome: outcomes.find(outcome => outcome.tag === tag) }));
      }),
    );
    return prepared.flatMap(outcome => {
      const others = further.flat().filter(({ tag }) => tag === outcome.tag);
      if (others.some(other => !other.outcome)) return [];
      return others.find(other => other.outcome && 'problems' in other.outcome)?.outcome ?? outcome;
    });
  }

  /** Opens or closes all processes' inspectors; returns one URL per open inspector. */
  async debug(on: boolean): Promise<string[]> {
    return (await Promise.all(this.processes.map(process => process.debug(on)))).flat();
  }

  /**
   * Switches line coverage on or off for later resets. Returns how often each process has executed each line since the
   * last call.
   */
  async cover(on: boolean): Promise<CoveredCode[]> {
    return (await Promise.all(this.processes.map(process => process.cover(on)))).flat();
  }

  /** Activates the prepared code in all processes for later resets. */
  async use(prepared: readonly { spec: EnvironmentSpec; environment: LoadedEnvironment }[]): Promise<void> {
    await Promise.all(
      this.processes.map((process, k) => process.use(prepared.filter(({ spec }) => this.workersOf(spec.tag) > k))),
    );
  }

  reset(episodes: EpisodeReset[], onStates?: StatesListener<EpisodeState>): Promise<EpisodeState[]> {
    for (const { episode, tag, seed, member } of episodes)
      this.owners.set(episode, this.processes[(seed + member) % this.workersOf(tag)]);
    return this.spread(
      episodes,
      ({ episode }) => episode,
      (process, own) => process.reset(own, onStates),
    );
  }

  step(episodes: EpisodeActions[], onSteps?: StatesListener<EpisodeStep>): Promise<EpisodeStep[]> {
    return this.spread(
      episodes,
      ({ episode }) => episode,
      (process, own) => process.step(own, onSteps),
    );
  }

  /**
   * Returns actions that solve each episode from its current state; undefined if the environment has no solver or the
   * solver finds no solution.
   */
  solve(episodes: string[]): Promise<{ episode: string; actions?: (number | string)[] }[]> {
    return this.spread(
      episodes,
      episode => episode,
      (process, own) => process.solve(own),
    );
  }

  async closeEpisodes(episodes: string[]): Promise<void> {
    const closed = this.spread(
      episodes,
      episode => episode,
      async (process, own) => {
        await process.closeEpisodes(own);
        return own;
      },
    );
    for (const episode of episodes) this.owners.delete(episode);
    await closed;
  }

  /** Ends all processes and their children. Pending requests fail with an error. */
  async stop(): Promise<void> {
    await Promise.all(this.processes.map(process => process.stop()));
  }

  private workersOf(tag: string): number {
    return this.workers[tag] ?? 1;
  }

  private servedBy(k: number, specs: readonly EnvironmentSpec[]): EnvironmentSpec[] {
    return specs.filter(({ tag }) => this.workersOf(tag) > k);
  }

  /** Groups the items by process and calls `job` once per process. Returns results in the order of the items. */
  private async spread<Item, Result>(
    items: readonly Item[],
    episodeOf: (item: Item) => string,
    job: (process: EnvironmentProcess, own: Item[]) => Promise<Result[]>,
  ): Promise<Result[]> {
    const shares = new Map<EnvironmentProcess, number[]>();
    items.forEach((item, i) => {
      const owner = this.owners.get(episodeOf(item)) ?? this.processes[0];
      const share = shares.get(owner);
      if (share) share.push(i);
      else shares.set(owner, [i]);
    });
    const results: Result[] = [];
    const jobs = [...shares].map(async ([process, share]) => {
      const own = await job(
        process,
        share.map(i => items[i]),
      );
      own.forEach((result, k) => (results[share[k]] = result));
    });
    await Promise.all(jobs);
    return results;
  }
}

/** Returns the specification of each environment that was built. Its field `built` contains the result of the build. */
const withBuilt = (specs: readonly EnvironmentSpec[], built: readonly LoadedEnvironment[]): EnvironmentSpec[] =>
  built.map(({ tag, bundle, files }) => ({ ...specs.find(spec => spec.tag === tag)!, built: { bundle, files } }));
