// Events over real kills and resumes: those of the steps that remain are kept exactly once and in order.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { placeEvents } from '../../../../extension/run-data/event-marks';
import type { RunEvent } from '../../../../extension/run-data/run-events';
import { checkpoint as askCheckpoint } from '../../../../extension/protocol/trainer-link';
import { HeldEpisodes } from '../../../support/held-episodes';
import { document, kill, killAll, readRun, startDetached, until } from '../../../support/terminal';
import { joinRun } from '../../../support/watcher';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const eventsOf = (run: string): RunEvent[] => readRun(run).events;
const shown = (events: readonly RunEvent[], ...kinds: RunEvent['kind'][]) =>
  events.filter(({ kind }) => kinds.includes(kind)).map(({ kind, step }) => `${kind} ${step}`);

test('the marks of a checkpoint, a refused edit and each resume outlive kills before the next checkpoint', async () => {
  const held = new HeldEpisodes(workspace.folder);
  const run = await startDetached(workspace.folder, [
    ...['trainer.total_training_steps=1000', 'trainer.save_freq=-1', 'trainer.test_freq=-1'],
    ...['trainer.val_before_train=false', ...held.overrides],
  ]);
  const watcher = await joinRun(run);
  const { folder } = await watcher.link.sendRequest(askCheckpoint, null);
  const saved = Number(folder.slice(-6));
  await kill(run);
  const first = shown(eventsOf(run), 'checkpoint');
  expect(first).toEqual([`checkpoint ${saved}`]);

  const resume = async (): Promise<void> => {
    const { code, stderr } = await document(workspace.folder, ['resume', basename(run), '--detach']);
    expect(code, stderr).toBe(0);
  };
  const count = (kind: RunEvent['kind']) => eventsOf(run).filter(each => each.kind === kind).length;

  // The second session stays within its first step, so that all its events belong to the checkpoint's step.
  held.set('train');
  await resume();
  await held.reached('train');
  const source = join(workspace.folder, 'environments/words.ts');
  const text = readFileSync(source, 'utf8');
  const save = (code: string) => {
    writeFileSync(`${source}.new`, code);
    renameSync(`${source}.new`, source);
  };
  save(`${text}\nthis is no code`);
  await until('the refusal', () => count('environment_refused') > 0);
  await kill(run);
  save(text);
  held.set('train');

  await resume(); // the third session
  await held.reached('train');
  await kill(run);
  held.release('train');
  await resume();
  await until('the last resume', () => count('resume') === 3);
  await until('a further step', () => readRun(run).metrics.some(({ step }) => step > saved));

  const events = eventsOf(run);
  expect(shown(events, 'checkpoint', 'resume', 'environment_refused')).toEqual([
    `checkpoint ${saved}`,
    `resume ${saved}`,
    `environment_refused ${saved}`,
    `resume ${saved}`,
    `resume ${saved}`,
  ]);
  const marks = placeEvents(events).flatMap(({ mark, step }) => (mark && step <= saved ? [mark] : []));
  expect(marks.filter(mark => mark !== 'setting')).toEqual(['checkpoint', 'resume', 'refused', 'resume', 'resume']);
  const times = events.map(({ time }) => time);
  expect(times).toEqual([...times].sort());

  // The kept events are covered by the logs' checksums: a resume from the next checkpoint verifies them.
  const stopped = await document(workspace.folder, ['stop', basename(run)]);
  expect(stopped.code, stopped.stderr).toBe(0);
  await resume();
  await kill(run);
}, 180_000);
