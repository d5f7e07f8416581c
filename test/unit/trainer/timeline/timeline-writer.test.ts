// The timeline's files: which steps keep their spans, and that a disk which refuses them does not matter.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keptSteps, readStepTimeline } from '../../../../extension/node/read-timeline';
import { decodeStep, encodeStep, stepSummarySchema } from '../../../../extension/run-data/timeline';
import { Timeline } from '../../../../extension/trainer/timeline/timeline';
import { TimelineWriter } from '../../../../extension/trainer/timeline/timeline-writer';
import { generatedStep } from '../../../e2e/preview/timeline-data';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
afterEach(() => void vi.useRealTimers());
const writerOf = (steps: number, every: number) =>
  new TimelineWriter({ path: folder(), file: name => join(folder(), name) }, { steps, every });
const summaries = () =>
  readFileSync(join(folder(), 'timeline/steps.jsonl'), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map(line => stepSummarySchema.parse(JSON.parse(line)));

describe('the files', () => {
  it('keep the spans of the newest steps and of every k-th, and a line for each step', async () => {
    const writer = writerOf(3, 5);
    for (let step = 0; step <= 13; step++) writer.write(step, () => generatedStep(step, { episodes: 2 }), 40);
    await writer.close();
    expect(await keptSteps(folder())).toEqual([0, 5, 10, 11, 12, 13]);
    expect(summaries().map(({ step }) => step)).toEqual(Array.from({ length: 14 }, (_, step) => step));
    expect(await readStepTimeline(folder(), 12)).toMatchObject({ step: 12, partial: false });
    expect(await readStepTimeline(folder(), 9)).toBeNull();
  });

  it('keep no spans if both settings are 0', async () => {
    const writer = writerOf(0, 0);
    for (let step = 1; step <= 3; step++) writer.write(step, () => generatedStep(step, { episodes: 2 }), 40);
    await writer.close();
    expect(await keptSteps(folder())).toEqual([]);
    expect(summaries()).toHaveLength(3);
  });

  it('show the step in progress until it ends', async () => {
    const writer = writerOf(3, 0);
    writer.writeCurrent(() => generatedStep(4, { episodes: 2 }, true));
    writer.writeCurrent(() => expect.unreachable('an earlier write is still going on'));
    await expect.poll(() => readStepTimeline(folder(), 'current')).toMatchObject({ step: 4, partial: true });
    writer.write(4, () => generatedStep(4, { episodes: 2 }), 40);
    await writer.close();
    expect(await readStepTimeline(folder(), 'current')).toBeNull();
    expect(readdirSync(join(folder(), 'timeline')).sort()).toEqual(['step-000004.jsonl', 'steps.jsonl']);
  });

  it('of a step that was killed right after its checkpoint comes from the file of the step in progress', async () => {
    const killed = writerOf(2, 0);
    for (let step = 0; step <= 3; step++) killed.write(step, () => generatedStep(step, { episodes: 2 }), 40);
    const step4 = decodeStep([...encodeStep(generatedStep(4, { episodes: 2 }))]); // times as a file has them
    await killed.secure({ ...step4, partial: true }); // written while the checkpoint was being saved
    expect(await keptSteps(folder())).toEqual([2, 3]);

    const next = writerOf(2, 0);
    next.continueAfter(4);
    await next.settled();
    expect(await readStepTimeline(folder(), 4)).toEqual(step4);
    expect(await readStepTimeline(folder(), 'current')).toBeNull();
    expect(await keptSteps(folder())).toEqual([3, 4]);
    expect(summaries().map(({ step, spans }) => [step, spans])).toEqual([
      ...[0, 1, 2, 3].map(step => [step, 40]),
      [4, step4.spans.start.length],
    ]);
  });

  it('of the step in progress is dropped by a trainer that continues after another step, or has the step already', async () => {
    const killed = writerOf(2, 0);
    for (let step = 0; step <= 3; step++) killed.write(step, () => generatedStep(step, { episodes: 2 }), 40);
    await killed.settled();
    const before = summaries();
    for (const [current, checkpoint] of [
      [4, 3],
      [3, 3],
    ]) {
      await killed.secure(generatedStep(current, { episodes: 1 }));
      const next = writerOf(2, 0);
      next.continueAfter(checkpoint);
      await next.settled();
      expect(await readStepTimeline(folder(), 'current')).toBeNull();
      expect(await keptSteps(folder())).toEqual([2, 3]);
      expect(summaries()).toEqual(before);
    }
  });

  it.each(['continues', 'is stopped'])(
    'of a killed step outlive a trainer that opens the run slowly and %s',
    async what => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
      const step4 = decodeStep([...encodeStep(generatedStep(4, { episodes: 2 }))]);
      await writerOf(2, 0).secure(step4);

      const opening = new Timeline(writerOf(2, 0));
      opening.begin('phases', 'open environments')();
      vi.advanceTimersByTime(60_000);
      if (what === 'continues') opening.continueAfter(4);
      await opening.close();
      expect(await readStepTimeline(folder(), what === 'continues' ? 4 : 'current')).toEqual(step4);
    },
  );

  it('that are damaged are refused with their name', async () => {
    mkdirSync(join(folder(), 'timeline'));
    writeFileSync(join(folder(), 'timeline/step-000002.jsonl'), '{"schema":1}\n');
    await expect(readStepTimeline(folder(), 2)).rejects.toThrow(/step-000002\.jsonl is damaged/);
  });
});

it('a disk that refuses a write costs that step only', async () => {
  const writer = writerOf(3, 0);
  writeFileSync(join(folder(), 'timeline'), 'not a folder');
  writer.write(1, () => generatedStep(1, { episodes: 2 }), 40);
  await writer.close();
  expect(existsSync(join(folder(), 'timeline/steps.jsonl'))).toBe(false);
});
