// Resuming a folder with deleted files: the run works without them, or the error names the file and the remedy. Logs
// above 2 GiB, which exceed Node.js's buffers, are read line by line.
import { cpSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { document, killAll, readRun, results } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

interface Answer {
  folder: string;
  state?: string;
  error?: { message: string };
}

let workspace: Workspace;
let run: string;
let kept: string;
let expected: ReturnType<typeof results>;
const ragen = (...args: string[]) => document<Answer>(workspace.folder, args);

beforeAll(async () => {
  workspace = makeWorkspace();
  const made = await ragen(
    'train',
    '--config-name',
    'words',
    'trainer.total_training_steps=3',
    'workbench.keep_checkpoints=9',
  );
  expect(made.code, made.stderr).toBe(0);
  run = made.answer.folder;
  expected = results(run);
  rmSync(join(run, 'checkpoints/step-000003'), { recursive: true }); // gives the resume a step to train
  kept = join(workspace.folder, 'kept');
  cpSync(run, kept, { recursive: true, preserveTimestamps: true });
}, 60_000);
beforeEach(() => {
  rmSync(run, { recursive: true });
  cpSync(kept, run, { recursive: true, preserveTimestamps: true });
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

/** Paths of all files and folders below a folder. */
const namesIn = (folder: string): string[] => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();

/** Size of a sparse file, which uses no disk space. */
const beyondBuffers = 2 ** 31 + 4096;

test('without one of its files or folders, a run continues or is refused with the name of the file and a remedy', async () => {
  const remedy = /--accept-damaged-logs|--from step-\d+ --discard|--trust-code|restore (it|one)/;
  const refused: string[] = [];
  const whole = readdirSync(join(kept, 'checkpoints')).at(-1)!;
  for (const name of namesIn(kept)) {
    if (/^(checkpoints|environments|tensorboard|diagnostics).*\/.*\//.test(name) && !name.includes(whole)) continue; // older ones are not read
    rmSync(run, { recursive: true });
    cpSync(kept, run, { recursive: true, preserveTimestamps: true });
    rmSync(join(run, name), { recursive: true });
    const { code, answer } = await ragen('resume', basename(run));
    if (code === 0) {
      expect(answer.state, name).toBe('finished');
      expect(results(run).weights, name).toEqual(expected.weights);
      continue;
    }
    refused.push(name);
    const message = answer.error?.message ?? '';
    expect(message).toContain(name === 'signature.json' ? join(run, 'manifest.json') : join(run, name));
    expect(message).toMatch(remedy);
    expect(message).not.toMatch(/ENOENT|\n/);
  }
  const needed = namesIn(join(kept, 'checkpoints', whole)).map(name => `checkpoints/${whole}/${name}`);
  expect(refused).toEqual(
    [
      'checkpoints',
      ...needed,
      'checksums.jsonl',
      'events.jsonl',
      'manifest.json',
      'metrics.jsonl',
      'scores.jsonl',
      'signature.json',
    ].sort(),
  );
}, 600_000);

test.each(['metrics.jsonl', 'events.jsonl', 'scores.jsonl', 'checksums.jsonl'])(
  'a run without %s continues if the user accepts the loss',
  async name => {
    rmSync(join(run, name));
    const refused = await ragen('resume', basename(run));
    expect(refused.answer.error?.message).toContain(
      `${join(run, name)} is gone: restore the file or, to continue with`,
    );
    const [, command] = /: ragen (resume .+)$/.exec(refused.answer.error!.message)!;
    const { code, stderr } = await ragen(...command.split(' '));
    expect(code, stderr).toBe(0);
    expect(results(run).weights).toEqual(expected.weights);
    const notes = readRun(run).events.filter(({ kind }) => kind === 'warning');
    expect(notes.map(({ message }) => message)).toEqual([`${name} is gone; the user accepted the damage`]);
  },
  120_000,
);

test.each(['metrics.jsonl', 'events.jsonl', 'scores.jsonl', 'checksums.jsonl', 'episodes/step-000001.jsonl'])(
  'a resume truncates %s after its checkpoint, even if the file exceeds 2 GiB',
  async name => {
    truncateSync(join(run, name), beyondBuffers);
    const { code, stderr } = await ragen('resume', basename(run));
    expect(code, stderr).toBe(0);
    expect(statSync(join(run, name)).size).toBeLessThan(2 ** 20);
    expect(results(run)).toEqual(expected);
  },
  120_000,
);

test('an accepted log of more than 2 GiB keeps its readable lines', async () => {
  const file = join(run, 'scores.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const damaged = lines.map((line, i) => (i === 0 ? `?${line}` : line)).join('\n');
  writeFileSync(file, damaged);
  truncateSync(join(run, 'events.jsonl'), beyondBuffers);
  const { code, stderr } = await ragen('resume', basename(run), '--accept-damaged-logs');
  expect(code, stderr).toBe(0);
  expect(readFileSync(join(run, 'damaged/scores.jsonl'), 'utf8')).toBe(damaged);
  expect(readFileSync(file, 'utf8').split('\n').slice(0, -1)).toEqual(lines.slice(1));
}, 120_000);
