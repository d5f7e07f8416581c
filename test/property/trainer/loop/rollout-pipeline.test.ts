// The pipeline of rollouts with an engine and rollouts of random durations: for every timing, each step is sampled by
// the promised version, rollouts are played one at a time and in order, and none is lost or repeated.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RunStopped } from '../../../../extension/engine/run-stopped';
import { Stopwatch } from '../../../../extension/trainer/loop/stopwatch';
import { RolloutPipeline, type Collect } from '../../../../extension/trainer/loop/rollout-pipeline';
import type { RolloutCollection } from '../../../../extension/trainer/loop/rollout-collection';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import { partial, reinterpret } from '../../../support/partial';

/** Resolves after `turns` rounds of the event loop: a duration that no clock measures. */
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};

/** Durations in turns, used in order and repeated. */
const durations = fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 8 });
const cycle = (values: readonly number[]): (() => number) => {
  let i = 0;
  return () => values[i++ % values.length];
};

interface Played {
  step: number;
  /** Published version that sampled it: the number of steps trained when it was published. */
  version: number;
  /** First seed of its groups. */
  seed: number;
}

interface Options {
  staleness: number;
  total: number;
  /** Steps that earlier sessions trained. */
  before?: number;
  playing: number[];
  publishing: number[];
  /** Steps whose rollout fails. */
  failing?: ReadonlySet<number>;
}

/** A run whose rollouts take random times and are told apart by their seeds. */
function open({ staleness, total, before = 0, playing, publishing, failing = new Set() }: Options) {
  const nextPlaying = cycle(playing);
  const nextPublishing = cycle(publishing);
  const control = new RunControl(() => undefined);
  const run = { trained: before, published: 0, concurrent: 0, most: 0, counter: before, begun: [] as Played[] };
  const config = { workbench: { max_staleness: staleness }, trainer: { total_training_steps: total } };
  const collect: Collect = async (step, _clock, { weights, signal }) => {
    const played = { step, version: Number(weights.slice(1)), seed: run.counter };
    run.begun.push(played);
    run.most = Math.max(run.most, ++run.concurrent);
    const seeds = run.counter++;
    try {
      for (let left = nextPlaying(); left > 0; left--) {
        signal.throwIfAborted();
        await turns(1);
      }
      if (failing.has(step)) throw new Error(`step ${step} fails`);
      return partial<RolloutCollection>({ metrics: { ...played } });
    } catch (error) {
      run.counter = seeds;
      throw error;
    } finally {
      run.concurrent--;
    }
  };
  const applied: number[] = [];
  const pipeline = new RolloutPipeline(
    {
      config,
      batches: {
        get seeds() {
          return { seed_counter: run.counter };
        },
        restoreSeeds: ({ seed_counter }) => void (run.counter = seed_counter),
        applySettings: () => void applied.push(run.begun.length + 1),
      },
      engine: {
        versions: {
          publish: async () => {
            const { trained } = run;
            await turns(nextPublishing());
            run.published++;
            return `v${trained}`;
          },
        },
      },
      control,
    },
    collect,
  );
  return { pipeline, run, control, config, applied };
}

type Opened = ReturnType<typeof open>;

async function step({ pipeline, run }: Opened, training: () => number): Promise<Played> {
  const { metrics } = await pipeline.next(run.trained + 1, new Stopwatch());
  await turns(training());
  run.trained++;
  return reinterpret<Played>(metrics);
}

const promised = (n: number, staleness: number, before = 0): number => Math.max(before, n - 1 - staleness);

const timing = {
  staleness: fc.integer({ min: 1, max: 5 }),
  total: fc.integer({ min: 1, max: 12 }),
  before: fc.nat({ max: 5 }),
  playing: durations,
  publishing: durations,
  training: durations,
};

describe('the pipeline of rollouts', () => {
  test('gives each step the rollout of the promised version, in order, one at a time', () =>
    fc.assert(
      fc.asyncProperty(fc.record(timing), async ({ training, ...options }) => {
        const { before, total, staleness } = options;
        const opened = open({ ...options, total: before + total });
        const steps = Array.from({ length: total }, (_, i) => before + i + 1);
        const taken: Played[] = [];
        const duration = cycle(training);
        for (const n of steps) {
          taken.push(await step(opened, duration));
          expect(opened.pipeline.seeds).toEqual({ seed_counter: n });
        }
        await opened.pipeline.discard();
        expect(taken).toEqual(steps.map(n => ({ step: n, version: promised(n, staleness, before), seed: n - 1 })));
        expect(opened.run.begun).toEqual(taken); // nothing was played that no step has used
        expect(opened.run.most).toBe(1);
      }),
    ));

  test('discards the rollouts that no step has used, and resets the seeds to those of the newest step', () =>
    fc.assert(
      fc.asyncProperty(fc.record({ ...timing, after: fc.nat({ max: 6 }) }), async ({ training, after, ...options }) => {
        const opened = open({ ...options, total: 100 });
        const { run, pipeline } = opened;
        const duration = cycle(training);
        run.trained = options.before;
        for (let i = 0; i < after; i++) await step(opened, duration);
        await pipeline.discard();
        expect(run.counter).toBe(options.before + after);
        const { length } = run.begun;
        await turns(20);
        expect(run.begun.length).toBe(length);
        expect(run.concurrent).toBe(0);
      }),
    ));

  test('reports a failed rollout to the step that needs it, and continues after it', () =>
    fc.assert(
      fc.asyncProperty(
        fc.record({ ...timing, at: fc.integer({ min: 1, max: 6 }) }),
        async ({ training, at, ...options }) => {
          const opened = open({ ...options, before: 0, total: 10, failing: new Set([at]) });
          const { run } = opened;
          const duration = cycle(training);
          const taken: (number | string)[] = [];
          for (let n = 1; n <= 10; n++)
            try {
              const played = await step(opened, duration);
              taken.push(played.step);
              expect(played.version).toBe(promised(n, options.staleness));
            } catch (error) {
              taken.push((error as Error).message);
              run.trained++; // the step is skipped
            }
          expect(taken).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(n => (n === at ? `step ${n} fails` : n)));
          expect(run.begun.map(played => played.step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
          expect(run.counter).toBe(9);
        },
      ),
    ));

  test('plays nothing during exclusive work, which begins after the rollout in progress', () =>
    fc.assert(
      fc.asyncProperty(fc.record(timing), async ({ training, ...options }) => {
        const opened = open({ ...options, before: 0, total: 12 });
        const { run, pipeline } = opened;
        const duration = cycle(training);
        for (let n = 1; n <= 12; n++) {
          await step(opened, duration);
          await pipeline.exclusively(async () => {
            const begun = run.begun.length;
            expect(run.concurrent).toBe(0);
            await turns(duration());
            expect(run.begun.length).toBe(begun);
          });
        }
        expect(run.begun.map(played => played.version)).toEqual(
          Array.from({ length: 12 }, (_, i) => promised(i + 1, options.staleness)),
        );
      }),
    ));

  test('begins no rollout during a pause, and applies changed settings to the next rollout that begins', async () => {
    const opened = open({ staleness: 2, total: 9, playing: [3], publishing: [1] });
    const { pipeline, run, control, applied } = opened;
    await step(opened, () => 0);
    expect(run.begun.length).toBe(2);
    control.pause();
    await turns(20);
    expect(run.begun.length).toBe(2); // the one in progress has ended
    expect(run.concurrent).toBe(0);
    expect(pipeline.ahead).toEqual({ playing: null, next: 3 });
    pipeline.applySettings();
    pipeline.applySettings();
    const waiting = pipeline.next(2, new Stopwatch());
    let arrived = false;
    void waiting.then(() => (arrived = true));
    await turns(20);
    expect(arrived).toBe(false);
    control.resume();
    await waiting;
    await turns(20);
    expect(run.begun.map(played => played.step)).toEqual([1, 2, 3, 4]);
    expect(applied).toEqual([3]);
    await pipeline.discard();
  });

  test('ends with the stop of the run, whatever is in progress', async () => {
    for (const after of [0, 1, 4, 30]) {
      const { pipeline, run, control } = open({ staleness: 2, total: 9, playing: [5], publishing: [2] });
      const first = pipeline.next(1, new Stopwatch());
      first.catch(() => undefined);
      await turns(after);
      control.stop();
      const outcome = await first.then(
        () => 'taken',
        (error: unknown) => error,
      );
      if (outcome !== 'taken') expect(outcome).toBeInstanceOf(RunStopped);
      await pipeline.discard({ seed_counter: 0 });
      expect(run.counter).toBe(0);
      expect(run.concurrent).toBe(0);
      expect(pipeline.seeds).toEqual({ seed_counter: 0 });
    }
  });

  test('is discarded during a pause without waiting for its end', async () => {
    const { pipeline, run, control } = open({ staleness: 2, total: 9, playing: [3], publishing: [1] });
    await pipeline.next(1, new Stopwatch());
    control.pause();
    await turns(20); // the rollout of step 3 waits for the end of the pause
    await pipeline.discard();
    expect(run.begun.length).toBe(2);
    expect(run.counter).toBe(1);
  });

  test('plans more rollouts when the number of steps is raised, by the versions promised', async () => {
    const opened = open({ staleness: 3, total: 2, playing: [1], publishing: [1] });
    await step(opened, () => 9);
    expect(opened.run.begun.length).toBe(2);
    opened.config.trainer.total_training_steps = 6;
    for (let n = 2; n <= 6; n++) expect((await step(opened, () => 9)).version).toBe(promised(n, 3));
    expect(opened.run.begun.length).toBe(6);
  });
});
