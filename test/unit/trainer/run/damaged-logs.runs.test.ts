// A damaged log blocks a resume until the user accepts the damage. Then the run continues bit by bit, and the damaged
// file is preserved.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { document, killAll, readRun, results } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

interface Answer {
  folder: string;
  error?: { message: string };
}

let workspace: Workspace;
const ragen = (...args: string[]) => document<Answer>(workspace.folder, args);

beforeAll(() => {
  workspace = makeWorkspace();
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

test('an accepted damaged line of metrics is removed: the other lines stay, the original is kept, and an event records it', async () => {
  const made = await ragen('train', '--config-name', 'words', 'workbench.keep_checkpoints=9');
  expect(made.code, made.stderr).toBe(0);
  const run = made.answer.folder;
  const expected = results(run);
  const steps = readRun(run).metrics.map(({ step }) => step);
  expect(steps).toEqual([0, 1, 2, 3, 4]);
  for (const step of [3, 4]) rmSync(join(run, `checkpoints/step-00000${step}`), { recursive: true });

  const file = join(run, 'metrics.jsonl');
  const bytes = readFileSync(file);
  bytes[5] ^= 1; // damages the first line
  writeFileSync(file, bytes);

  const refused = await ragen('resume', basename(run));
  expect(refused.code).toBe(1);
  const command = `ragen resume ${basename(run)} --checkpoint step-000002 --accept-damaged-logs`;
  expect(refused.answer.error?.message).toContain(`${file} `);
  expect(refused.answer.error?.message).toContain(`continue with its readable lines, run: ${command}`);
  expect(readFileSync(file)).toEqual(bytes);

  const accepted = await ragen(...command.split(' ').slice(1));
  expect(accepted.code, accepted.stderr).toBe(0);
  expect(readFileSync(join(run, 'damaged/metrics.jsonl'))).toEqual(bytes);
  const { metrics, events } = readRun(run);
  expect(metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  expect(events.filter(({ kind }) => kind === 'warning').map(({ message }) => message)).toEqual([
    expect.stringMatching(/^metrics\.jsonl .+; the user accepted the damage, and the damaged file is in damaged\/$/),
  ]);
  const after = results(run);
  expect(after.weights).toEqual(expected.weights);
  expect(after.episodes).toEqual(expected.episodes);
  expect(after.metrics).toEqual(expected.metrics.slice(1));

  // Accepted damage is not reported again: the remaining logs have new checksums.
  rmSync(join(run, 'checkpoints/step-000004'), { recursive: true });
  const again = await ragen('resume', basename(run));
  expect(again.code, again.stderr).toBe(0);
  expect(results(run)).toEqual(after);
}, 120_000);

test('a damaged line of events is accepted together with new settings', async () => {
  const made = await ragen('train', '--config-name', 'words', 'workbench.keep_checkpoints=9');
  expect(made.code, made.stderr).toBe(0);
  const run = made.answer.folder;
  for (const step of [3, 4]) rmSync(join(run, `checkpoints/step-00000${step}`), { recursive: true });
  const file = join(run, 'events.jsonl');
  const bytes = readFileSync(file);
  bytes[1] = 0; // damages the first line
  writeFileSync(file, bytes);

  const changes = ['trainer.total_training_steps=3'];
  const refused = await ragen('resume', basename(run), ...changes);
  expect(refused.code).toBe(1);
  expect(refused.answer.error?.message).toContain('--accept-damaged-logs');
  expect(readFileSync(file)).toEqual(bytes);

  const accepted = await ragen('resume', basename(run), '--accept-damaged-logs', ...changes);
  expect(accepted.code, accepted.stderr).toBe(0);
  expect(readFileSync(join(run, 'damaged/events.jsonl'))).toEqual(bytes);
  const { metrics, events } = readRun(run);
  expect(metrics.at(-1)?.step).toBe(3);
  expect(events.filter(({ kind }) => kind === 'setting').map(({ data }) => data?.key)).toEqual([
    'trainer.total_training_steps',
  ]);
}, 120_000);
