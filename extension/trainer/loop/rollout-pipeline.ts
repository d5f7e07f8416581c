// Plays the rollouts of the training steps. If `workbench.max_staleness` is 0, each step plays its own rollout. If it
// is greater than 0, the rollouts of later steps are played while a step trains, with older versions of the weights
// (asynchronous RL: AReaL, arXiv 2505.24298). Invariants: the rollout of step n is sampled with the weights after step
// max(first, n − 1 − max_staleness), where `first` is the step after which this session began. Timing therefore has no
// influence on the results. Rollouts are played one at a time and in order. If a rollout fails, the rollouts planned
// after it fail too, and the step that needs the failed rollout reports the error.
import { KeyedQueue } from '../../common/keyed-queue';
import type { PublishedVersions } from '../../engine/published-versions';
import { RunStopped } from '../../engine/run-stopped';
import { abortable } from '../../node/abortable';
import type { EnvGroups, SeedState } from '../rollout/group-layout';
import type { BatchPlayer, PlayedAhead } from '../run/batch-player';
import type { RunControl } from '../run/run-control';
import { collectRollout, type CollectingRun, type RolloutCollection } from './rollout-collection';
import { Stopwatch } from './stopwatch';

/** The rollouts of a run, one per training step. */
export interface StepRollouts {
  /** The training's seed counter as it is after the newest step's rollout. */
  readonly seeds: SeedState;
  /** The rollouts that are played ahead of their steps; null if there are none because each step plays its own. */
  readonly ahead: RolloutsAhead | null;
  /**
   * Returns the rollout of step `step`, and adds its times to `clock`. Callers must request the steps in order.
   * @param groups layout for rollouts that are sampled with the weights before this step; by default the configured one
   */
  next(step: number, clock: Stopwatch, groups?: EnvGroups): Promise<RolloutCollection>;
  /** Runs `work`, such as a validation, while no rollout is played, because `work` needs the environments. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** Uses the run's changed settings for rollouts that begin after this call. */
  applySettings(): void;
  /** Returns the metrics of a step that has taken `seconds`. */
  stepMetrics(seconds: number): Record<string, number>;
  /**
   * Discards rollouts that no step has used. Resets the seed counter to `seeds`, or by default to the value that the
   * counter had after the newest step's rollout.
   */
  discard(seeds?: SeedState): Promise<void>;
}

/** Numbers of the steps whose rollouts are played ahead. */
export interface RolloutsAhead {
  /** Step of the rollout in progress; null if none is played. */
  playing: number | null;
  /** Step of the rollout that begins next. */
  next: number;
}

/** The parts of a run that the pipeline uses. */
export interface PipelinedRun {
  readonly config: { workbench: { max_staleness: number }; trainer: { total_training_steps: number } };
  readonly batches: Pick<BatchPlayer, 'seeds' | 'restoreSeeds' | 'applySettings'>;
  readonly engine: { versions: Pick<PublishedVersions, 'publish'> | null };
  readonly control: Pick<RunControl, 'gate' | 'stopped'>;
}

/** The parts of a run that its rollouts use. */
export type PlayingRun = PipelinedRun & CollectingRun;

/**
 * Returns the rollouts of a run. The result is a pipeline if rollouts may be sampled with older weights
 * (`max_staleness` is not 0).
 */
export function stepRollouts(run: PlayingRun): StepRollouts {
  if (run.config.workbench.max_staleness === 0) return eachItsOwn(run);
  const follow = (what: string): void => run.follow(what);
  return new RolloutPipeline(run, (step, clock, ahead, groups) => {
    const { config, batches, engine, model, plugins } = run; // the configuration at the rollout's start
    return collectRollout({ config, batches, engine, model, plugins, follow }, step, clock, { ahead, groups });
  });
}

/** Returns rollouts without a pipeline: each step plays its own rollout with the current weights. */
const eachItsOwn = (run: PlayingRun): StepRollouts => ({
  get seeds() {
    return run.batches.seeds;
  },
  ahead: null,
  next: (step, clock, groups) => collectRollout(run, step, clock, { groups }),
  exclusively: work => work(),
  applySettings: () => run.batches.applySettings(),
  stepMetrics: () => ({}),
  discard: async seeds => {
    if (seeds) run.batches.restoreSeeds(seeds);
  },
});

/** Plays and filters the rollout of a step. */
export type Collect = (
  step: number,
  clock: Stopwatch,
  ahead: PlayedAhead,
  groups?: EnvGroups,
) => Promise<RolloutCollection>;

/** A finished rollout. */
interface Collected {
  collection: RolloutCollection;
  times: Stopwatch;
  /** The training's seed counter as it is after this rollout. */
  seeds: SeedState;
}

/** A rollout that is waiting for the previous rollout, in progress, or finished. */
interface Planned {
  result: Promise<Collected>;
  /** The rollout is sampled with the weights after this step. */
  version: number;
  /** Reports that the step of this rollout now waits for the rollout. */
  want(): void;
}

/** The key of the queue for rollouts and exclusive work. */
const environments = ['environments'];

export class RolloutPipeline implements StepRollouts {
  private readonly turns = new KeyedQueue();
  private readonly ended = new AbortController();
  private readonly signal: AbortSignal;
  /** Published weights that a rollout may still need, by the step after which they were published. */
  private readonly versions = new Map<number, string>();
  /** Layouts of the rollouts that are sampled with these weights. */
  private readonly layouts = new Map<number, EnvGroups>();
  /** Rollouts that no step has used, in the order of their steps. */
  private planned: Planned[] = [];
  /** Step of the last planned rollout. */
  private lastPlanned = 0;
  /** The step after which this session began; undefined before the session's first step. */
  private first: number | undefined;
  private used: SeedState | undefined;
  private settingsChanged = false;
  /** `begun` is the step of the last rollout that has begun; `playing` is true while that rollout is in progress. */
  private begun = 0;
  private playing = false;
  /**
   * `seconds` is the time spent on finished rollouts. `since` is the start of the rollout in progress by
   * `performance.now()`, or null.
   */
  private sampling: { seconds: number; since: number | null } = { seconds: 0, since: null };
  /**
   * Values of the current step. `staleness` is the age of the step's rollout, counted in steps. `sampledBefore` is
   * `sampledSeconds` at the time when the step began to train.
   */
  private current = { staleness: 0, sampledBefore: 0 };

  constructor(
    private readonly run: PipelinedRun,
    private readonly collect: Collect,
  ) {
    this.signal = AbortSignal.any([run.control.stopped, this.ended.signal]);
  }

  get seeds(): SeedState {
    return this.used ?? this.run.batches.seeds;
  }

  get ahead(): RolloutsAhead | null {
    if (this.first === undefined) return null;
    return { playing: this.playing ? this.begun : null, next: Math.max(this.begun, this.first) + 1 };
  }

  async next(step: number, clock: Stopwatch, groups?: EnvGroups): Promise<RolloutCollection> {
    const { max_staleness } = this.run.config.workbench;
    this.first ??= this.lastPlanned = step - 1;
    this.used ??= this.run.batches.seeds;
    this.versions.set(step - 1, await this.run.engine.versions!.publish());
    if (groups) this.layouts.set(step - 1, groups);
    for (const kept of [this.versions, this.layouts])
      for (const made of kept.keys()) if (made < step - 1 - max_staleness) kept.delete(made);
    this.plan(step, max_staleness);
    const rollout = this.planned.shift()!;
    const { collection, times, seeds } = await clock.time('rollout_wait', () => this.awaited(rollout, step));
    if (!(await this.run.control.gate())) throw new RunStopped();
    clock.include(times);
    this.used = seeds;
    this.current = { staleness: step - 1 - rollout.version, sampledBefore: this.sampledSeconds };
    return collection;
  }

  private async awaited({ result, want }: Planned, step: number): Promise<Collected> {
    want();
    try {
      return await result;
    } catch (error) {
      this.planned = []; // these rollouts have ended with the failed rollout
      this.lastPlanned = step;
      throw error;
    }
  }

  /**
   * Plans all rollouts that can be played while step `step` trains, that is, the rollouts whose weights already exist.
   */
  private plan(step: number, max_staleness: number): void {
    const last = Math.min(step + max_staleness, Math.max(step, this.run.config.trainer.total_training_steps));
    while (this.lastPlanned < last) {
      const version = Math.max(this.first!, this.lastPlanned - max_staleness);
      this.planned.push(this.begin(++this.lastPlanned, version, this.planned.at(-1)?.result));
    }
  }

  /**
   * Begins a rollout as soon as three conditions hold: the previous rollout is finished, no exclusive work runs, and
   * the run is not paused.
   */
  private begin(step: number, version: number, before: Promise<unknown> | undefined): Planned {
    let isAwaited = false;
    let want = (): void => undefined;
    const awaited = new Promise<void>(resolve => {
      want = () => {
        isAwaited = true;
        resolve();
      };
    });
    const ahead: PlayedAhead = {
      weights: this.versions.get(version)!,
      signal: this.signal,
      awaited,
      isAwaited: () => isAwaited,
    };
    const groups = this.layouts.get(version);
    const inTurn = async (): Promise<Collected> => {
      await before;
      return this.turns.acquire(environments, () => this.play(step, ahead, groups));
    };
    const result = inTurn();
    result.catch(() => undefined); // `next` reports the error
    return { result, version, want };
  }

  private async play(step: number, ahead: PlayedAhead, groups?: EnvGroups): Promise<Collected> {
    const { batches, control } = this.run;
    if (!(await abortable(this.signal, control.gate()))) throw new RunStopped();
    if (this.settingsChanged) batches.applySettings();
    this.settingsChanged = false;
    const times = new Stopwatch();
    this.begun = step;
    this.playing = true;
    this.sampling.since = performance.now();
    try {
      const collection = await this.collect(step, times, ahead, groups);
      return { collection, times, seeds: batches.seeds };
    } finally {
      this.sampling = { seconds: this.sampledSeconds, since: null };
      this.playing = false;
    }
  }

  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.turns.acquire(environments, work);
  }

  applySettings(): void {
    this.settingsChanged = true;
  }

  stepMetrics(seconds: number): Record<string, number> {
    const { staleness, sampledBefore } = this.current;
    return {
      'rollout/staleness': staleness,
      'rollout/overlap': seconds > 0 ? (this.sampledSeconds - sampledBefore) / seconds : 0,
    };
  }

  async discard(seeds = this.used): Promise<void> {
    this.ended.abort(new RunStopped());
    await Promise.allSettled(this.planned.map(({ result }) => result));
    this.planned = [];
    this.used = seeds;
    if (seeds) this.run.batches.restoreSeeds(seeds);
  }

  /** Seconds in which rollouts were played so far. */
  private get sampledSeconds(): number {
    const { seconds, since } = this.sampling;
    return since === null ? seconds : seconds + (performance.now() - since) / 1000;
  }
}
