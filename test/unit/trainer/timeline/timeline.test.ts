// The recorder with a clock of its own: which step a span belongs to, what an episode waits for, and what is written.
import { describe, expect, it } from 'vitest';
import type { RemoteEngine } from '../../../../extension/engine/remote-engine';
import type { EnvironmentPool } from '../../../../extension/environments/client/environment-pool';
import type { StepTimeline } from '../../../../extension/run-data/timeline';
import { Timeline } from '../../../../extension/trainer/timeline/timeline';
import type { TimelineWriter } from '../../../../extension/trainer/timeline/timeline-writer';
import type { PlayedSoFar, TextGenerator } from '../../../../extension/trainer/rollout/rollout-request';
import { partial } from '../../../support/partial';

interface Shown {
  name: string;
  from: number;
  to: number;
  episode?: string;
  waitsFor?: string;
  turn?: number;
}

/** A recorder whose clock the test sets, in milliseconds. */
function recorder() {
  const clock = { now: 1000 };
  const written: StepTimeline[] = [];
  const writer = partial<TimelineWriter>({
    write: (_: number, spans: () => StepTimeline) => void written.push(spans()),
    writeCurrent: () => undefined,
    continueAfter: () => undefined,
    settled: () => Promise.resolve(),
    close: () => Promise.resolve(),
  });
  const timeline = new Timeline(writer, () => clock.now);
  const lane = (step: number, wanted: string): Shown[] => {
    const { names, spans, episodes, start } = written.find(other => other.step === step)!;
    return [...spans.start.keys()]
      .filter(i => names[spans.name[i]].lane === wanted)
      .map(i => ({
        name: names[spans.name[i]].name,
        from: start + spans.start[i] / 1000,
        to: start + (spans.start[i] + spans.us[i]) / 1000,
        ...(spans.episode[i] >= 0 && { episode: episodes[spans.episode[i]], turn: spans.turn[i] }),
        ...(spans.cause[i] >= 0 && { waitsFor: episodes[spans.cause[i]] }),
      }));
  };
  return { clock, written, timeline, lane };
}

const [a, b] = ['train-000001-g000-m00', 'train-000001-g000-m01'];
const played = (...ids: string[]) => ids.map(id => ({ entry: { id } })) as PlayedSoFar[];
const observer = { begun: () => undefined, ready: () => undefined, asked: () => undefined, ended: () => undefined };
const sampling = {} as Parameters<TextGenerator['generate']>[1];
const row = (id: string) => ({ row: id, append: [1], seed: 1 });
const answer = (id: string, tokens: number) => ({
  row: id,
  ids: Array<number>(tokens).fill(1),
  logprobs: [],
  finish: 'stop' as const,
});

describe('an episode', () => {
  it('waits for the slowest row of its call, and for the slowest environment of its wave', async () => {
    const { clock, timeline, lane } = recorder();
    timeline.endStep(0);
    const engine = timeline.engine(partial<RemoteEngine>({ onRows: () => undefined }));
    const generator = timeline.generator({
      async generate() {
        clock.now = 1050;
        engine.onRows([b]);
        clock.now = 1080;
        engine.onRows([a]);
        return [answer(a, 8), answer(b, 5)];
      },
      release: () => undefined,
    });
    const pool = timeline.pool(
      partial<EnvironmentPool>({
        async step(...[, report]: Parameters<EnvironmentPool['step']>) {
          clock.now = 1090;
          report?.([{ episode: a, outcomes: [], observation: '', version: '' }]);
          clock.now = 1120;
          return [];
        },
      }),
    );
    const watch = timeline.observer(observer);
    watch.begun({ mode: 'train', step: 1 }, played(a, b));
    clock.now = 1010;
    watch.ready(played(a, b));
    clock.now = 1020;
    watch.asked(played(a, b));
    await generator.generate([row(a), row(b)], sampling);
    await pool.step([
      { episode: a, actions: [] },
      { episode: b, actions: [] },
    ]);
    clock.now = 1125;
    watch.ready(played(a, b));
    timeline.endStep(1);
    expect(lane(1, 'episodes').filter(({ episode }) => episode === a)).toEqual(
      [
        { name: 'prompt', from: 1010, to: 1020, episode: a, turn: 1 },
        { name: 'sampling', from: 1020, to: 1080, episode: a, turn: 1 },
        { name: 'environment', from: 1080, to: 1090, episode: a, turn: 1 },
        { name: 'wait for the wave', from: 1090, to: 1125, episode: a, turn: 1, waitsFor: b },
      ].toSorted((x, y) => x.from - y.from),
    );
    expect(lane(1, 'episodes').filter(({ episode }) => episode === b)).toEqual([
      { name: 'wait for the wave', from: 1000, to: 1010, episode: b, turn: 0, waitsFor: a },
      { name: 'prompt', from: 1010, to: 1020, episode: b, turn: 1 },
      { name: 'sampling', from: 1020, to: 1050, episode: b, turn: 1 },
      { name: 'wait for the batch', from: 1050, to: 1080, episode: b, turn: 1, waitsFor: a },
      { name: 'environment', from: 1080, to: 1120, episode: b, turn: 1 },
    ]);
    expect(lane(1, 'sampling')).toEqual([{ name: 'generate', from: 1020, to: 1080 }]);
    expect(lane(1, 'environments')).toEqual([{ name: 'step', from: 1080, to: 1120 }]);
    await timeline.close();
  });
});

describe('a span belongs to', () => {
  it('the step in its episode, also while an earlier step is in progress, and its sampling is then stale', async () => {
    const { clock, timeline, lane, written } = recorder();
    timeline.endStep(0);
    const generator = timeline.generator({
      generate: async ([{ row: id }]) => {
        clock.now += 10;
        return [answer(id, 3)];
      },
      release: () => undefined,
    });
    const of = (step: number) => `train-00000${step}-g000-m00`;
    await generator.generate([row(of(1))], sampling);
    const end = timeline.begin('update', 'update');
    await generator.generate([row(of(2))], sampling);
    end();
    timeline.endStep(1);
    await generator.generate([row(of(2))], sampling);
    timeline.endStep(2);
    expect([lane(1, 'sampling').length, lane(2, 'sampling').length, lane(1, 'update').length]).toEqual([1, 2, 1]);
    expect(written.map(({ staleness }) => staleness.map(([, steps]) => steps))).toEqual([[0], [1, 0]]);
    await timeline.close();
  });

  it('the lane of its call: engine, phases and requests', async () => {
    const { clock, timeline, lane } = recorder();
    timeline.endStep(0);
    const tick = async () => void (clock.now += 5);
    const engine = timeline.engine(
      partial<RemoteEngine>({
        onRows: () => undefined,
        score: tick,
        release: tick,
        crossScore: tick,
        state: tick,
      }),
    );
    const stopwatch = timeline.stopwatch(1);
    await stopwatch.time('old_log_prob', () =>
      engine.score('actor', [{ ids: new Int32Array(7), mask: new Uint8Array(7) }], {} as never, 1),
    );
    await stopwatch.time('collapse_metrics', () => engine.crossScore([], [], {} as never, 1));
    await engine.release([a]);
    const done = timeline.request('save_weights_for_sampler');
    clock.now += 3;
    done();
    await timeline.time(1, 'save_checkpoint', () => engine.state());
    timeline.endStep(1);
    expect(lane(1, 'scoring')).toEqual([{ name: 'score', from: 1000, to: 1005 }]);
    expect(
      lane(1, 'diagnosis')
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['collapse_metrics', 'crossScore']);
    expect(lane(1, 'phases').map(({ name }) => name)).toEqual(['old_log_prob', 'collapse_metrics', 'save_checkpoint']);
    expect(lane(1, 'publishing')).toEqual([{ name: 'save_weights_for_sampler', from: 1015, to: 1018 }]);
    expect(lane(1, 'requests')).toHaveLength(1);
    expect(
      lane(1, 'checkpoint')
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['save_checkpoint', 'state']);
    await timeline.close();
  });

  it('no step of a run that continues from a checkpoint before its first step', async () => {
    const { timeline, written, clock } = recorder();
    timeline.begin('phases', 'load')();
    timeline.continueAfter(7);
    timeline.endStep(7);
    timeline.begin('phases', 'gen')();
    clock.now += 5;
    timeline.endStep(8);
    expect(written.map(({ step }) => step)).toEqual([8]);
    await timeline.close();
  });
});

describe('a failed call', () => {
  it('ends its span, and its error is passed on', async () => {
    const { timeline, lane } = recorder();
    timeline.endStep(0);
    const engine = timeline.engine(
      partial<RemoteEngine>({ onRows: () => undefined, remember: () => Promise.reject(new Error('no memory')) }),
    );
    const generator = timeline.generator({
      generate: () => Promise.reject(new Error('gone')),
      release: () => undefined,
    });
    await expect(engine.remember()).rejects.toThrow('no memory');
    await expect(generator.generate([row(a)], sampling)).rejects.toThrow('gone');
    timeline.endStep(1);
    expect([lane(1, 'update').length, lane(1, 'sampling').length]).toEqual([1, 1]);
    await timeline.close();
  });
});
