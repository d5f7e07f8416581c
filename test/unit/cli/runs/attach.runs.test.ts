// `ragen attach` as a process: it answers while a detached process reads the files, is interrupted within a large step,
// and proposes a mapping for JSON lines whose fields have unusual names.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runFiles } from '../../../../extension/run-data/run-file-names';
import { statusSchema } from '../../../../extension/run-data/run-status-file';
import { samples } from '../../../support/attached';
import { temporaryFolder } from '../../../support/temporary-folder';
import { document, ragen, runsOf } from '../../../support/terminal';
import { root } from '../../../support/workspace';

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

it('Ctrl-C ends the command within a large step, of which nothing is left; the next call reads it', async () => {
  const file = join(workspace(), 'rollouts.jsonl');
  const count = 20_000;
  const line = `${JSON.stringify({ step: 1, prompt: 'x'.repeat(4000), completion: 'two', reward: 1 })}\n`;
  writeFileSync(file, line.repeat(count));
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(file, old, old);
  const args = [join(root, 'dist/cli.cjs'), 'attach', file, '--once'];
  const child = spawn(process.execPath, args, { cwd: workspace(), stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const written = () => runsOf(workspace()).flatMap(run => readdirSync(join(run, 'episodes')));
  // The beginning is shown; then the complete step is written to a new file.
  await expect.poll(() => written().sort().slice(-2)).toEqual(['step-000001.jsonl', 'step-000001.jsonl.new']);
  child.kill('SIGINT');
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(stderr).toContain('not everything was read');
  const [run] = runsOf(workspace());
  expect(written()).not.toContain('step-000001.jsonl.new');
  expect(existsSync(join(run, runFiles.lease))).toBe(false);
  expect((JSON.parse(readFileSync(join(run, runFiles.status), 'utf8')) as { state: string }).state).toBe('stopped');
  expect((await ragen(workspace(), ['attach', file, '--once'])).code).toBe(0);
  expect(runsOf(workspace())).toEqual([run]);
  expect(readFileSync(join(run, 'episodes/step-000001.jsonl'), 'utf8').split('\n')).toHaveLength(count + 1);
});

it('says in the terminal which part of a run is not shown, and shows the rest', async () => {
  const path = join(workspace(), 'trl');
  cpSync(join(samples, 'trl/trl-1.16'), path, { recursive: true });
  const damaged = join(path, 'completions/completions_00002.parquet');
  writeFileSync(damaged, 'PAR1 this is no table PAR1');
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(damaged, old, old);
  const { code, stderr, answer } = await document<{ folder: string; left_out: string[] }>(workspace(), [
    ...['attach', path, '--once'],
  ]);
  expect(code).toBe(0);
  expect(answer.left_out).toEqual([expect.stringContaining(`${damaged} `)]);
  expect(stderr).toContain(`  not shown  ${answer.left_out[0]}\n`);
  expect(readdirSync(join(answer.folder, 'episodes')).filter(name => name.startsWith('step-'))).toEqual([
    'step-000001.jsonl',
    'step-000003.jsonl',
  ]);
});
