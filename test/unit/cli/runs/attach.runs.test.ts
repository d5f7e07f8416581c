// `ragen attach` as a process: it answers while a detached process reads the files, and proposes a mapping for JSON lines
// whose fields have unusual names.
import { cpSync, existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runFiles } from '../../../../extension/run-data/run-file-names';
import { statusSchema } from '../../../../extension/run-data/run-status-file';
import { samples } from '../../../support/attached';
import { temporaryFolder } from '../../../support/temporary-folder';
import { document, ragen } from '../../../support/terminal';

const workspace = temporaryFolder();

it('the run has a state when the command answers, and a detached process reads the files to their end', async () => {
  const path = join(workspace(), 'lake');
  cpSync(join(samples, 'verl'), path, { recursive: true });
  const { code, answer, stderr } = await document<{ folder: string }>(workspace(), ['attach', path, '--detach']);
  expect(code, stderr).toBe(0);
  const status = () => statusSchema.parse(JSON.parse(readFileSync(join(answer.folder, runFiles.status), 'utf8')));
  expect(['running', 'finished']).toContain(status().state);
  await expect.poll(() => existsSync(join(answer.folder, runFiles.lease))).toBe(false);
  expect(status()).toMatchObject({ state: 'finished', step: 3, total_steps: 3, reward: 0.75 });
  expect(existsSync(join(answer.folder, 'episodes/step-000003.jsonl'))).toBe(true);
});

it('a proposed mapping is printed, written on request, and then used', async () => {
  const file = join(workspace(), 'tries.jsonl');
  const record = (i: number) => ({ it: i, riddle: 'two?', answer_text: `it is ${i}`, points: i / 2 });
  writeFileSync(file, [1, 2].map(i => `${JSON.stringify(record(i))}\n`).join(''));
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(file, old, old);
  const said = await ragen(workspace(), ['attach', file]);
  expect(said.code).toBe(1);
  expect(said.stderr).toContain('the fields of tries.jsonl have unusual names');
  expect(said.stdout).toContain('\n  completion: answer_text\n');
  const { answer } = await document<{ error: { proposal: { file: string } } }>(workspace(), ['attach', file]);
  expect(answer.error.proposal).toMatchObject({ file: 'tries.jsonl', contents: 'rollouts' });

  const mapping = join(workspace(), '.ragen', 'mappings', 'tries.yaml');
  expect((await ragen(workspace(), ['attach', file, '--propose', mapping])).code).toBe(0);
  expect((await ragen(workspace(), ['attach', file, '--propose', mapping])).stderr).toContain('already exists');
  const opened = await document<{ folder: string; found: string[] }>(workspace(), [
    'attach',
    file,
    ...['--mapping', mapping, '--once'],
  ]);
  expect(opened.answer.found).toEqual(['rollouts: tries.jsonl']);
  expect(readFileSync(join(opened.answer.folder, 'episodes/step-000002.jsonl'), 'utf8')).toContain('it is 2');
});
