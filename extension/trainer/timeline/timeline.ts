// Records the timeline of a run (run-data/timeline.ts). Each span belongs to a step. The span of an episode belongs to
// the step in the episode's id. Any other span belongs to the step in progress, which is the first step that has not
// ended. Spans of several steps may overlap. The recorder only observes: no result depends on it, and an error of the
// disk does not end the run.
import { observedCalls } from '../../common/observed-calls';
import type { Engine } from '../../engine/engine';
import type { RemoteEngine } from '../../engine/remote-engine';
import type { EnvironmentPool } from '../../environments/client/environment-pool';
import type { Lane } from '../../run-data/timeline';
import { Stopwatch } from '../loop/stopwatch';
import type { RolloutObserver, TextGenerator } from '../rollout/rollout-request';
import { EpisodeSpans } from './episode-spans';
import { StepSpans, type EndedSpan } from './step-spans';
import type { TimelineWriter } from './timeline-writer';

/** For some phases, a second lane in which the phase is shown. Every phase is shown in the lane `phases`. */
const phaseLanes: Partial<Record<string, Lane>> = {
  testing: 'validation',
  collapse_metrics: 'diagnosis',
  gradient_analysis: 'diagnosis',
  save_checkpoint: 'checkpoint',
};

/**
 * Lane of each call of the engine, by method. Sampling is missing here, because it is recorded for each row
 * (EpisodeSpans).
 */
const engineLanes: Partial<Record<keyof Engine, Lane>> = {
  load: 'phases',
  score: 'scoring',
  values: 'scoring',
  inspect: 'scoring',
  attributePictures: 'scoring',
  crossScore: 'diagnosis',
  analyseGradients: 'diagnosis',
  update: 'update',
  updateCritic: 'update',
  trainSupervised: 'update',
  tryLongest: 'update',
  remember: 'update',
  rollBack: 'update',
  state: 'checkpoint',
  restore: 'phases',
  parameters: 'checkpoint',
};

/** Paths of HTTP requests that publish the trained weights for sampling. */
const publishing = new Set(['save_weights_for_sampler']);

/** Minimum milliseconds between updates of the file of the step in progress. */
const liveMs = 2000;
/** Maximum share of the trainer's time for updating the file of the step in progress. */
const liveShare = 0.01;

/** Returns the Unix time in milliseconds; it never decreases. */
const unixTime = (): number => performance.timeOrigin + performance.now();

export class Timeline {
  private readonly steps = new Map<number, StepSpans>();
  private readonly episodes: EpisodeSpans;
  /** The step in progress. */
  private current = 0;
  /** The newest step that has updated the weights. */
  private trained = 0;
  /** Updates the file of the step in progress; undefined before `start`. */
  private timer?: NodeJS.Timeout;
  /** Time at which the file of the step in progress is updated next. */
  private nextLive = 0;

  constructor(
    private readonly writer: TimelineWriter,
    private readonly now: () => number = unixTime,
  ) {
    this.episodes = new EpisodeSpans(this.now, id => this.stepOf(id));
  }

  /**
   * Begins to write the file of the step in progress. Until then that file is not changed, because `continueAfter` may
   * need what a killed trainer left in it.
   */
  start(): void {
    this.timer = setInterval(() => this.writeCurrent(), liveMs).unref();
  }

  /**
   * Continues after the checkpoint of step `step`, and starts. Spans that were recorded while the run was opened are
   * dropped.
   */
  continueAfter(step: number): void {
    this.steps.clear();
    this.current = step + 1;
    this.trained = step;
    this.writer.continueAfter(step);
    this.start();
  }

  /** Returns a stopwatch whose phases are recorded as spans of a step. */
  stopwatch(step: number): Stopwatch {
    return new Stopwatch(phase => this.beginPhase(step, phase));
  }

  /** Runs a phase that no stopwatch measures, and records it as a span of `step`. */
  async time<T>(step: number, phase: string, work: () => Promise<T>): Promise<T> {
    const end = this.beginPhase(step, phase);
    try {
      return await work();
    } finally {
      end();
    }
  }

  private beginPhase(step: number, phase: string): () => void {
    const extra = phaseLanes[phase];
    const ends = [this.begin('phases', phase, step), ...(extra ? [this.begin(extra, phase, step)] : [])];
    return () => {
      for (const end of ends) end();
      if (phase === 'update_actor') this.trained = Math.max(this.trained, step);
    };
  }

  /** Begins a span; returns a function that ends it. */
  begin(lane: Lane, name: string, step = this.current, facts: Pick<EndedSpan, 'rows' | 'tokens'> = {}): () => void {
    const spans = this.spansOf(step);
    const span = spans.begin({ lane, name, from: this.now(), ...facts });
    return () => spans.end(span, this.now());
  }

  /**
   * Begins the span of an HTTP request to the engine's server. The span is named after the last part of the path, which
   * never contains an id.
   */
  request(path: string): () => void {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const ends = [this.begin('requests', name), ...(publishing.has(name) ? [this.begin('publishing', name)] : [])];
    return () => {
      for (const end of ends) end();
    };
  }

  /** Returns an engine that calls `engine` and records spans of these calls. */
  engine(engine: RemoteEngine): RemoteEngine {
    engine.onRows = rows => this.episodes.rowsFinished(rows);
    return observedCalls(engine, (method, args) => {
      const lane = engineLanes[method as keyof Engine];
      return lane && this.begin(lane, method, undefined, sizeOf(args));
    });
  }

  /** Returns a generator that calls `generator` and records the sampling of each row. */
  generator(generator: TextGenerator): TextGenerator {
    return {
      generate: (rows, sampling, onTokens, weights) =>
        this.episodes.sampling(
          rows,
          step => this.noteStaleness(step),
          () => generator.generate(rows, sampling, onTokens, weights),
        ),
      release: rows => generator.release(rows),
    };
  }

  /** Returns environments that call `pool` and record a span for each request and each episode. */
  pool(pool: EnvironmentPool): EnvironmentPool {
    return {
      reset: (episodes, onStates = () => undefined) =>
        this.episodes.environment('reset', episodes, onStates, report => pool.reset(episodes, report)),
      step: (episodes, onSteps = () => undefined) =>
        this.episodes.environment('environment', episodes, onSteps, report => pool.step(episodes, report)),
      closeEpisodes: episodes => pool.closeEpisodes(episodes),
    };
  }

  /** Returns an observer of rollouts that records spans and also calls `next`. */
  observer(next: RolloutObserver): RolloutObserver {
    return {
      begun: (at, all) => {
        this.episodes.begun(all.map(({ entry }) => entry.id));
        next.begun(at, all);
      },
      ready: some => {
        this.episodes.ready(some.map(({ entry }) => entry.id));
        next.ready(some);
      },
      asked: some => {
        this.episodes.asked(some.map(({ entry }) => entry.id));
        next.asked(some);
      },
      ended: () => next.ended(),
    };
  }

  /** Writes a finished step. Does nothing if the step was written before. */
  endStep(step: number): void {
    if (step < this.current) return;
    const now = this.now();
    const ended = this.steps.get(step);
    if (ended) this.writer.write(step, () => ended.timeline(now, false), ended.count);
    for (const [other, spans] of this.steps) {
      if (other > step) continue;
      this.episodes.forget(spans);
      this.steps.delete(other);
    }
    this.current = step + 1;
    this.trained = Math.max(this.trained, step);
  }

  /**
   * Writes the spans of a step whose checkpoint is written next, so that a kill after the checkpoint does not lose them.
   * Resolves when they are written. A step that has ended is only waited for.
   */
  async secure(step: number): Promise<void> {
    const spans = step < this.current ? undefined : this.steps.get(step);
    await (spans ? this.writer.secure(spans.timeline(this.now(), false)) : this.writer.settled());
  }

  /** Resolves when everything is written. The spans of an unfinished step are dropped. */
  async close(): Promise<void> {
    this.steps.clear();
    if (this.timer === undefined) return this.writer.settled();
    clearInterval(this.timer);
    await this.writer.close();
  }

  /** Writes the file of the step in progress, so that the timeline view can show this step. */
  private writeCurrent(): void {
    const now = this.now();
    const spans = this.steps.get(this.current);
    if (!spans || now < this.nextLive) return;
    this.writer.writeCurrent(() => spans.timeline(now, true));
    this.nextLive = now + (this.now() - now) / liveShare;
  }

  private noteStaleness(step: number): void {
    this.spansOf(step).noteStaleness(this.now(), Math.max(0, step - 1 - this.trained));
  }

  private spansOf(step: number): StepSpans {
    const own = Math.max(step, this.current);
    let spans = this.steps.get(own);
    if (!spans) this.steps.set(own, (spans = new StepSpans(own)));
    return spans;
  }

  /**
   * Returns the spans of the step to which an episode belongs. The episode's id contains the step:
   * `train-000012-g003-m05` belongs to step 12.
   */
  private stepOf(id: string): StepSpans {
    return this.spansOf(Number(/^(?:train|val)-(\d+)-/.exec(id)?.[1] ?? this.current));
  }
}

/** Returns how many rows and tokens an engine call processes: those in the first list among its arguments. */
function sizeOf(args: readonly unknown[]): Pick<EndedSpan, 'rows' | 'tokens'> {
  const list = args.find(arg => Array.isArray(arg)) as readonly { ids?: ArrayLike<number> }[] | undefined;
  if (!list) return {};
  return { rows: list.length, tokens: list.reduce((sum, { ids }) => sum + (ids?.length ?? 0), 0) };
}
