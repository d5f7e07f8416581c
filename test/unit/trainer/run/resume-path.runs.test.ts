// trainer.resume_mode: a run that starts from another run's checkpoint continues as that run did. With `disable`, a run
// is not resumed.
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { document, killAll, readRun, results } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let first: string;

interface Answer {
  folder: string;
  error?: { message: string };
}

const ragen = (...args: string[]) => document<Answer>(workspace.folder, args);

beforeAll(async () => {
  workspace = makeWorkspace();
  const { code, stderr, answer } = await ragen(
    ...['train', '--config-name', 'words', 'workbench.keep_checkpoints=10', 'trainer.total_training_steps=3'],
    'trainer.resume_mode=disable',
  );
  expect(code, stderr).toBe(0);
  first = answer.folder;
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

test('resume_path: a new run starts after the checkpoint’s step, with its weights, optimizer and seeds', async () => {
  const path = join('.ragen/runs', basename(first), 'checkpoints/step-000002');
  const { code, stderr, answer } = await ragen(
    ...['train', '--config-name', 'words', 'trainer.total_training_steps=3'],
    ...['trainer.resume_mode=resume_path', `trainer.resume_from_path=${path}`],
  );
  expect(code, stderr).toBe(0);
  const run = readRun(answer.folder);
  expect(run.metrics.map(({ step }) => step)).toEqual([3]);
  expect(run.events.some(({ kind, message }) => kind === 'resume' && message.includes('step-000002'))).toBe(true);
  const [own, other] = [results(answer.folder), results(first)];
  expect(own.weights).toEqual(other.weights);
  expect(own.metrics[0]).toEqual(other.metrics.find(({ step }) => step === 3));
  expect(own.episodes['step-000003.jsonl']).toBe(other.episodes['step-000003.jsonl']);
});

test('a missing checkpoint is reported before a run is created', async () => {
  const runs = readdirSync(join(workspace.folder, '.ragen/runs'));
  const { code, answer } = await ragen(
    ...['train', '--config-name', 'words', 'trainer.resume_mode=resume_path'],
    'trainer.resume_from_path=nowhere/step-000001',
  );
  expect(code).toBe(1);
  expect(answer.error?.message).toMatch(/nowhere\/step-000001/);
  expect(readdirSync(join(workspace.folder, '.ragen/runs'))).toEqual(runs);
});

test('disable: a run continues only from an explicitly named checkpoint', async () => {
  const refused = await ragen('resume', basename(first));
  expect(refused.code).toBe(1);
  expect(refused.answer.error?.message).toMatch(/^run .* was made with trainer\.resume_mode=disable: start a new run/);
  expect((await ragen('resume', basename(first), '--checkpoint', 'step-000002', '--discard')).code).toBe(0);
  expect(readRun(first).metrics.at(-1)!.step).toBe(3);
});
