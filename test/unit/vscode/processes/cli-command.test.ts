import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryShortage } from '../../../../extension/run-data/memory-shortage';
import { ConfigError, startRun } from '../../../../extension/vscode/processes/cli-command';

const node = { path: process.execPath, version: process.versions.node, electron: false };
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'ragen-start-'))));
afterEach(() => rmSync(folder, { recursive: true }));

/** Starts a program in place of the CLI entry. */
const start = (program: string, args: string[] = []) => {
  const cli = join(folder, 'cli.cjs');
  writeFileSync(cli, program);
  return startRun(node, cli, args, folder);
};

test('returns the started run; arguments, folder and environment are passed on', async () => {
  const program = `console.log(JSON.stringify({ run: process.argv.slice(2).join('|') + '|' + process.env.ORT_DISABLE_TELEMETRY, folder: process.cwd() }))`;
  const started = await start(program, ['train', '--config-name', 'quick start', 'a.b=[1, 2]']);
  expect(started.run).toBe('train|--config-name|quick start|a.b=[1, 2]|--detach|--json|1');
  expect(started.folder).toContain('ragen-start-');
});

test('a refused configuration returns its problems, each with its position', async () => {
  const problems = [
    {
      message: 'config: trainer.total_training_steps is "x": make it a whole number',
      file: 'run.yaml',
      line: 3,
      column: 5,
      key: 'trainer.total_training_steps',
    },
    {
      message: 'config: algorithm.gama is no key: did you mean gamma?',
      file: 'run.yaml',
      line: 9,
      column: 3,
      key: 'algorithm.gama',
    },
  ];
  const document = JSON.stringify({ error: { message: 'both', problems } });
  const error = await start(`console.log(${JSON.stringify(document)}); process.exit(1)`).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as ConfigError).problems).toEqual(problems);
  expect((error as ConfigError).message).toBe(problems[0].message);
});

test('an error without a list is a single problem; a multi-line document is read too', async () => {
  const document = JSON.stringify({ error: { message: 'weights: no such folder' } }, null, 2);
  const error = await start(`console.log(${JSON.stringify(document)}); process.exit(1)`).catch(
    (thrown: unknown) => thrown,
  );
  expect((error as ConfigError).problems).toEqual([{ message: 'weights: no such folder' }]);
});

test('a refusal because of memory contains the planned and the available bytes', async () => {
  const memory = { planned: 2 ** 34, available: 2 ** 33, phase: 'policy update' };
  const document = JSON.stringify({ error: { message: 'memory: …', memory } });
  const error = await start(`console.log(${JSON.stringify(document)}); process.exit(1)`).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(MemoryShortage);
  expect((error as MemoryShortage).memory).toEqual(memory);
});

test('any other failure is reported with the last line of its output', async () => {
  await expect(start(`console.error('first\\nthe disk is full: free some'); process.exit(1)`)).rejects.toThrow(
    /^the disk is full: free some$/,
  );
  await expect(start(`process.exit(3)`)).rejects.toThrow(/^the start of the trainer \(.*\) ended with code 3$/);
  const dying = (signal: string) =>
    start(`console.error('0x7f3a in ?? ()'); process.kill(process.pid, '${signal}'); setTimeout(() => {}, 10000)`);
  await expect(dying('SIGTRAP')).rejects.toThrow(/ was stopped by SIGTRAP.*ragen\.nodePath/);
  await expect(dying('SIGKILL')).rejects.toThrow(/ was killed \(SIGKILL\), most likely.*memory/);
  await expect(startRun({ ...node, path: '/none/node' }, 'x', [], folder)).rejects.toThrow(
    /^\/none\/node does not start: /,
  );
});
