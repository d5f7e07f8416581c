// The timeline of real runs: every lane is there, the phases cover each step and agree with its metrics, spans of a lane
// nest or are disjoint, and a resume removes what it discards.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keptSteps, readStepTimeline } from '../../../../extension/node/read-timeline';
import {
  episodeSpans,
  lanes,
  stepSummarySchema,
  type Lane,
  type StepTimeline,
} from '../../../../extension/run-data/timeline';
import { traceEvents } from '../../../../extension/run-data/chrome-trace';
import { busySeconds, exposedSeconds, nestingRows } from '../../../../extension/run-data/timeline-measures';
import { document, killAll, readRun, results, runsOf } from '../../../support/terminal';
import { TinkerPeer } from '../../../support/tinker-peer';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

let workspace: Workspace;
let run: string;
let steps: StepTimeline[];
const timelinesOf = async (folder: string): Promise<StepTimeline[]> =>
  Promise.all((await keptSteps(folder)).map(async step => (await readStepTimeline(folder, step))!));
const summariesOf = (folder: string) =>
  readFileSync(join(folder, 'timeline/steps.jsonl'), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(line => stepSummarySchema.parse(JSON.parse(line)));
const train = async (...overrides: string[]): Promise<string> => {
  const { code, stderr, answer } = await document<{ folder: string }>(workspace.folder, [
    'train',
    '--config-name',
    'words',
    ...overrides,
  ]);
  expect(code, stderr).toBe(0);
  return answer.folder;
};
const indicesOf = ({ names, spans }: StepTimeline, lane: Lane): number[] =>
  [...spans.start.keys()].filter(i => names[spans.name[i]].lane === lane);

beforeAll(async () => {
  workspace = makeWorkspace();
  run = await train(
    'trainer.save_freq=2',
    'trainer.test_freq=2',
    'collapse_detection.compute_freq=2',
    'workbench.timeline_every=0',
    'workbench.keep_checkpoints=9',
    'actor_rollout_ref.actor.ppo_epochs=12', // a step long enough for its share of other work to be small
  );
  steps = await timelinesOf(run);
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

describe('a run on this machine', () => {
  test('has a timeline of each step, and one of what came before', () => {
    const { metrics } = readRun(run);
    expect(steps.map(({ step }) => step)).toEqual([0, ...metrics.map(({ step }) => step).filter(step => step > 0)]);
    expect(summariesOf(run).map(({ step }) => step)).toEqual(steps.map(({ step }) => step));
    expect(readdirSync(join(run, 'timeline'))).not.toContain('current.jsonl');
  });

  test('has every lane that a local run has', () => {
    const found = new Set(steps.flatMap(step => lanes.filter(lane => indicesOf(step, lane).length > 0)));
    expect([...found].sort()).toEqual(lanes.filter(lane => lane !== 'requests' && lane !== 'publishing').toSorted());
  });

  // The other work of a step takes milliseconds; these steps take a few hundred. On the quickstart, 98 % are covered.
  test('covers at least 90 % of the time of the steps', () => {
    const trained = steps.filter(({ step }) => step > 0);
    const total = trained.reduce((sum, { seconds }) => sum + seconds, 0);
    const exposed = trained.flatMap(step => Object.values(exposedSeconds(step))).reduce((sum, x) => sum + x, 0);
    expect(exposed / total).toBeGreaterThanOrEqual(0.9);
  });

  test('agrees with the times in the metrics', () => {
    const { metrics } = readRun(run);
    for (const timeline of steps.filter(({ step }) => step > 0)) {
      const line = metrics.find(({ step }) => step === timeline.step)!;
      const { names, spans } = timeline;
      for (const phase of ['gen', 'filter', 'old_log_prob', 'ref', 'adv', 'update_actor', 'dump_rollouts', 'testing']) {
        const seconds = line[`timing_s/${phase}`];
        if (typeof seconds !== 'number') continue;
        const recorded = indicesOf(timeline, 'phases')
          .filter(i => names[spans.name[i]].name === phase)
          .reduce((sum, i) => sum + spans.us[i] / 1e6, 0);
        expect(Math.abs(recorded - seconds), `${phase} of step ${timeline.step}`).toBeLessThan(0.002);
      }
      expect(timeline.seconds).toBeGreaterThanOrEqual(line['timing_s/gen'] as number);
    }
  });

  test('has phases one after another, and calls within them', () => {
    for (const timeline of steps)
      for (const lane of ['phases', 'update', 'scoring', 'diagnosis', 'checkpoint'] as const)
        expect(nestingRows(timeline.spans, indicesOf(timeline, lane)).count, lane).toBeLessThanOrEqual(1);
  });

  test('has a chain for each episode: turns of prompt, sampling and environment, and waiting between them', () => {
    const timeline = steps.find(({ step }) => step === 1)!;
    const { spans, names, episodes } = timeline;
    const trained = [...episodes.keys()].filter(e => episodes[e].startsWith('train-000001'));
    expect(trained.length).toBe(readRun(run).episodes.filter(({ id }) => id.startsWith('train-000001')).length);
    const stepped = indicesOf(timeline, 'episodes').filter(i => names[spans.name[i]].name === 'environment');
    expect(stepped.length).toBeGreaterThan(0); // a turn without a valid action does not reach the environment
    for (const e of trained) {
      const chain = indicesOf(timeline, 'episodes').filter(i => spans.episode[i] === e);
      const kinds = chain.map(i => names[spans.name[i]].name);
      const { batchWait, waveWait } = episodeSpans;
      const turns = kinds.filter(kind => kind !== batchWait && kind !== waveWait).join(' ');
      expect(turns).toMatch(/^reset( prompt sampling( environment)?)+$/);
      expect(kinds.filter((kind, k) => kind === batchWait && kinds[k - 1] !== 'sampling')).toEqual([]);
      chain
        .slice(1)
        .forEach((i, k) =>
          expect(spans.start[i]).toBeGreaterThanOrEqual(spans.start[chain[k]] + spans.us[chain[k]] - 2),
        );
    }
  });

  test('gives the tokens of an episode', () => {
    const timeline = steps.find(({ step }) => step === 1)!;
    const { spans, names, episodes } = timeline;
    for (const { id, turns } of readRun(run).episodes.filter(({ id }) => id.startsWith('train-000001'))) {
      const tokens = [...spans.start.keys()]
        .filter(i => names[spans.name[i]].name === 'sampling' && episodes[spans.episode[i]] === id)
        .map(i => spans.tokens[i]);
      expect(tokens).toHaveLength(turns.length);
      expect(tokens.every(count => count > 0)).toBe(true);
    }
  });

  test('is exported from the terminal', async () => {
    const id = run.split('/').at(-1)!;
    const { code, answer, stderr } = await document<{ file: string; steps: number[]; events: number }>(
      workspace.folder,
      [...['timeline', id, '--steps', '1..2', '--export', 'trace.json']],
    );
    expect(code, stderr).toBe(0);
    expect(answer.steps).toEqual([1, 2]);
    const { traceEvents: events } = JSON.parse(readFileSync(answer.file, 'utf8')) as { traceEvents: unknown[] };
    expect(events).toHaveLength(answer.events);
    expect(events).toHaveLength(
      [
        ...traceEvents(
          '',
          steps.filter(({ step }) => step === 1 || step === 2),
        ),
      ].length,
    );
    const list = await document<{ step: number }[]>(workspace.folder, ['timeline', id, '--steps', '2..']);
    expect(list.answer.map(({ step }) => step)).toEqual(steps.map(({ step }) => step).filter(step => step >= 2));
    const refused = await document<{ error: { message: string } }>(workspace.folder, ['timeline', id, '--steps', 'x']);
    expect([refused.code, refused.answer.error.message]).toEqual([1, expect.stringContaining('--steps is "x"')]);
  });

  test('that is resumed from an earlier checkpoint shows nothing of the steps it discards', async () => {
    const before = results(run);
    const newest = Math.max(...steps.map(({ step }) => step));
    const id = run.split('/').at(-1)!;
    const discarded = await readStepTimeline(run, newest);
    const { code, stderr } = await document(workspace.folder, [...['resume', id, '--from', '2', '--discard']]);
    expect(code, stderr).toBe(0);
    const summaries = summariesOf(run);
    expect(summaries.map(({ step }) => step)).toEqual(steps.map(({ step }) => step));
    const again = await readStepTimeline(run, newest);
    expect(again!.start).toBeGreaterThan(discarded!.start + discarded!.seconds * 1000);
    expect((await readStepTimeline(run, 1))!.start).toBe(steps.find(({ step }) => step === 1)!.start);
    expect(results(run)).toEqual(before); // what was trained does not depend on times
  });

  test('is covered by no checksum, so its files may be deleted', async () => {
    expect(readFileSync(join(run, 'checksums.jsonl'), 'utf8')).not.toContain('timeline');
    rmSync(join(run, 'timeline'), { recursive: true });
    const id = run.split('/').at(-1)!;
    const { code, stderr } = await document(workspace.folder, [...['resume', id, '--from', '2', '--discard']]);
    expect(code, stderr).toBe(0);
    expect(summariesOf(run).map(({ step }) => step)).toEqual(steps.map(({ step }) => step).filter(step => step > 2));
    const refused = await document<{ error: { message: string } }>(workspace.folder, [
      ...['timeline', id, '--steps', '1', '--export', 'none.json'],
    ]);
    expect(refused.answer.error.message).toContain('has no single calls of the given steps');
  });
});

test('a run on a server also has its requests and the publication of weights', async () => {
  const model = join(workspace.folder, 'models/random');
  const { vocab_size: vocabSize } = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as {
    vocab_size: number;
  };
  const { added_tokens } = JSON.parse(readFileSync(join(model, 'tokenizer.json'), 'utf8')) as {
    added_tokens: { id: number; content: string }[];
  };
  const idOf = (text: string) => added_tokens.find(({ content }) => content === text)!.id;
  const leaning = { [idOf('</answer>')]: 6, [idOf('<|im_end|>')]: 5 }; // some answers parse, so groups differ
  const peer = await TinkerPeer.start({ vocabSize, leaning, latencyMs: 5 });
  try {
    const folder = await train('workbench.engine=tinker', `workbench.engine_url=${peer.url}`, 'lora.rank=8');
    expect(runsOf(workspace.folder)).toContain(folder);
    const timeline = (await timelinesOf(folder)).find(found => found.step > 0 && 'update' in busySeconds(found))!;
    const busy = busySeconds(timeline);
    expect(busy.publishing).toBeGreaterThan(0);
    const requests = indicesOf(timeline, 'requests').map(i => timeline.names[timeline.spans.name[i]].name);
    const sampled = indicesOf(timeline, 'episodes').filter(
      i => timeline.names[timeline.spans.name[i]].name === 'sampling',
    );
    expect(requests.filter(name => name === 'asample')).toHaveLength(sampled.length);
    expect(requests).toEqual(expect.arrayContaining(['save_weights_for_sampler', 'forward', 'optim_step']));
    expect(summariesOf(folder).find(({ step }) => step === timeline.step)!.in_flight[0]).toBeGreaterThan(1);
  } finally {
    await peer.stop();
  }
});
