// Code edited during a run is prepared beside the running code, checked completely, and used from a defined point in
// the order of requests.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EnvironmentSpec, PreparedEnvironment } from '../../../../extension/protocol/environment-link';
import { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { counter, root, workspace } from '../../../support/bundles';
import { isAlive } from '../../../support/terminal';

const open: EnvironmentProcess[] = [];
const folders: string[] = [];
let running: EnvironmentProcess;
let write: (name: string, text: string) => string;
let source: string;
let spec: EnvironmentSpec;

async function begin(): Promise<void> {
  running = await EnvironmentProcess.start({
    entry: join(root, 'dist/environment-host.cjs'),
    variables: process.env,
    stepTimeoutMs: 2000,
    onNotice: () => undefined,
  });
  open.push(running);
  const made = workspace();
  folders.push(made.folder);
  ({ write } = made);
  source = write('env.ts', counter());
  spec = { tag: 'T', env_type: 'env.ts', source, config: {} };
  expect((await running.load([spec])).error).toBeUndefined();
}
afterAll(async () => {
  await Promise.all(open.map(process => process.stop()));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const reset = (episode: string) => ({ episode, tag: 'T', seed: 1, member: 0, mode: 'train' as const });
const countOf = async (episode: string): Promise<string> => {
  await running.reset([reset(episode)]);
  return (await running.step([{ episode, actions: [1] }]))[0].observation;
};
const prepare = async (types = false): Promise<PreparedEnvironment> => (await running.prepare([spec], types))[0];
const problems = (prepared: PreparedEnvironment) => ('problems' in prepared ? prepared.problems : []);
const use = (prepared: PreparedEnvironment) =>
  running.use('environment' in prepared ? [{ spec, environment: prepared.environment }] : []);

describe('code without type checks', () => {
  beforeAll(begin);
  afterEach(async () => {
    writeFileSync(source, counter());
    await use(await prepare());
  });

  test('code is prepared even if its process dies before or during the preparation', async () => {
    for (const kill of [false, true]) {
      writeFileSync(source, counter(`count += ${kill ? 20 : 30};`));
      process.kill(running.pid!, 'SIGKILL');
      if (!kill) await expect.poll(() => running.pid !== undefined && isAlive(running.pid)).toBe(false);
      await use(await prepare());
      expect(await countOf(`after ${kill}`)).toBe(`count ${kill ? 21 : 31}`);
    }
  });

  test('prepared code is used only once it is activated', async () => {
    writeFileSync(source, counter('count += 10;'));
    const prepared = await prepare();
    expect(prepared.files).toEqual([source]);
    expect(await countOf('before')).toBe('count 1');
    await use(prepared);
    expect(await countOf('after')).toBe('count 11');
    expect((await running.step([{ episode: 'before', actions: [1] }]))[0].observation).toBe('count 2');
  });

  test('preparing does not wait for a running step', async () => {
    writeFileSync(source, counter(`const end = Date.now() + 1500; while (Date.now() < end);`));
    await use(await prepare());
    await running.reset([reset('slow')]);
    let done = false;
    const step = running.step([{ episode: 'slow', actions: [1] }]).then(() => (done = true));
    writeFileSync(source, counter('count += 10;'));
    expect(await prepare()).toHaveProperty('environment');
    expect(done).toBe(false);
    await step;
  });

  test('build errors are reported with all locations, and the previous code continues', async () => {
    writeFileSync(source, counter().replace('let seed = 0;', 'let seed = ;').replace('count++;', 'count+++;'));
    const found = problems(await prepare());
    const lines = readFileSync(source, 'utf8').split('\n');
    const at = lines.findIndex(line => line.includes('let seed = ;'));
    expect(found[0]).toMatchObject({ file: source, line: at + 1, kind: 'build', message: 'Unexpected ";"' });
    expect(lines[at][found[0].column - 1]).toBe(';');
    await running.use([]);
    expect(await countOf('a')).toBe('count 1');
  });

  test('two missing modules are both reported', async () => {
    writeFileSync(source, counter('', { top: `import a from './a';\nimport b from './b';\nvoid [a, b];` }));
    expect(problems(await prepare()).map(({ line, column, endColumn }) => [line, column, endColumn])).toEqual([
      [3, 15, 20],
      [4, 15, 20],
    ]);
  });

  test('a file that throws, and one whose create throws, are refused with their lines', async () => {
    writeFileSync(source, counter('', { top: `throw new Error('on purpose');` }));
    expect(problems(await prepare())).toEqual([
      expect.objectContaining({ file: source, line: 3, kind: 'load', message: expect.stringContaining('on purpose') }),
    ]);
    writeFileSync(
      source,
      counter().replace('let count = config.start;', `let count = config.start; throw new Error('no');`),
    );
    expect(problems(await prepare())[0]).toMatchObject({ line: 10, kind: 'load' });
    expect(await countOf('b')).toBe('count 1');
  });

  test('a file that never finishes loading is refused after the limit', async () => {
    writeFileSync(source, counter('', { top: 'for (;;);' }));
    expect(problems(await prepare())[0]).toMatchObject({ kind: 'load', message: expect.stringContaining('2000 ms') });
  });

  test('a deleted file is refused, and accepted after it is restored', async () => {
    rmSync(source);
    expect(problems(await prepare())[0]).toMatchObject({ file: source, kind: 'build' });
    writeFileSync(source, counter('count += 20;'));
    await use(await prepare());
    expect(await countOf('c')).toBe('count 21');
  });

  test('identical code does not count as a change', async () => {
    const [before, after] = [await prepare(), await prepare()];
    expect(after).toEqual(before);
    await running.reset([reset('kept')]);
    await use(after);
    expect((await running.step([{ episode: 'kept', actions: [1] }]))[0].version).toBe(
      'environment' in before && before.environment.version,
    );
  });
});

describe('type checks', () => {
  beforeAll(async () => {
    await begin();
    expect(problems(await prepare(true))).toEqual([]);
  });

  test('code in a folder without node_modules is checked with the types of zod, the environment API and Node', async () => {
    const top = `import { readFileSync } from 'node:fs';\nconst text: number = readFileSync(__filename, 'utf8');\nvoid text;`;
    writeFileSync(source, counter('', { top }).replace('config.start;', 'config.stat;'));
    const found = problems(await prepare(true));
    expect(found.map(({ kind, line, message }) => [kind, line, message.split('.')[0]])).toEqual([
      ['type', 4, `Type 'string' is not assignable to type 'number'`],
      ['type', 12, `Property 'stat' does not exist on type '{ start: number; }'`],
    ]);
    expect(found[0]).toMatchObject({ file: source, column: 7, endLine: 4, endColumn: 11 });
  });

  test('a result without a reward is refused at the return statement', async () => {
    writeFileSync(source, counter().replace('reward: 0.5, ', ''));
    expect(problems(await prepare(true))).toEqual([
      expect.objectContaining({ kind: 'type', message: expect.stringContaining(`'reward' is missing`) }),
    ]);
  });

  test('errors in imported files are reported in those files, and files with only types are watched', async () => {
    const helper = write('helper.ts', `export const more: number = 'text';\n`);
    const shape = write('shape.ts', `export interface Shape { side: number }\n`);
    const top = `import { more } from './helper';\nimport type { Shape } from './shape';\nexport const shape: Shape = { side: more };`;
    writeFileSync(source, counter('', { top }));
    const prepared = await prepare(true);
    expect(problems(prepared)).toEqual([expect.objectContaining({ file: helper, line: 1, column: 14, kind: 'type' })]);
    expect(prepared.files.sort()).toEqual([source, helper, shape].sort());
    writeFileSync(helper, `export const more: number = 1;\n`);
    writeFileSync(shape, `export interface Shape { side: string }\n`);
    expect(problems(await prepare(true))).toEqual([expect.objectContaining({ file: source, line: 5 })]);
    writeFileSync(shape, `export interface Shape { side: number }\n`);
    expect(problems(await prepare(true))).toEqual([]);
  });

  test('the nearest tsconfig.json sets the strictness; unused names are not errors', async () => {
    writeFileSync(source, counter('', { top: 'export const of = (x) => x;\nconst unused = 1;' }));
    expect(problems(await prepare(true)).map(({ message }) => message)).toEqual([
      `Parameter 'x' implicitly has an 'any' type.`,
    ]);
    const settings = write(
      'tsconfig.json',
      JSON.stringify({ compilerOptions: { strict: true, noImplicitAny: false, noUnusedLocals: true } }),
    );
    expect(problems(await prepare(true))).toEqual([]);
    rmSync(settings);
  });
});
