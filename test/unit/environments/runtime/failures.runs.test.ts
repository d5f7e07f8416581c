// Faulty environment code in a run: each fault ends only its own episode, with one sentence that names the location.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import type { EnvironmentNotice } from '../../../../extension/protocol/environment-link';
import { buildEntry, counter, startProcess, workspace } from '../../../support/bundles';

let entry: string;
let running: EnvironmentProcess;
let notices: EnvironmentNotice[];
let files: ReturnType<typeof workspace>;

beforeAll(async () => {
  entry = await buildEntry();
  ({ running, notices } = await startProcess(entry));
});
afterAll(async () => {
  await running.stop();
  rmSync(dirname(entry), { recursive: true, force: true });
});
beforeEach(() => {
  files = workspace();
  notices.length = 0;
});
afterEach(() => rmSync(files.folder, { recursive: true, force: true }));

/** Loads the text as the environment Bad. Returns its path and the result of loading. */
async function load(text: string, config: Record<string, unknown> = {}, name = 'bad.ts') {
  const source = files.write(name, text);
  const { error, environments } = await running.load([{ tag: 'Bad', env_type: name, source, config }]);
  return { source, error, environments };
}
const begin = (ids: string[], tag = 'Bad') =>
  running.reset(ids.map((episode, member) => ({ episode, tag, seed: 7, member, mode: 'train' })));

describe('a fault in a step', () => {
  const when = (statement: string) => counter(`if (action === 2) { ${statement} }`);
  const line = 19;

  test.each([
    ['throws', `throw new Error('boom');`, 'threw', `threw "boom" in step(Bad)`, 'fix the file and save it', true],
    [
      'throws a text',
      `throw 'just text';`,
      'threw',
      `threw "just text" in step(Bad)`,
      'fix the file and save it',
      false,
    ],
    [
      'rejects',
      `return Promise.reject(new TypeError('late'));`,
      'threw',
      'threw "late"',
      'fix the file and save it',
      true,
    ],
    ['returns nothing', 'return;', 'bad_value', 'returned missing in step(Bad)', 'return { observation', false],
    [
      'reward NaN',
      `return { observation: '', reward: NaN, terminated: false, truncated: false, info: {} };`,
      'bad_value',
      'returned the reward NaN',
      'finite number',
      false,
    ],
    [
      'reward Infinity',
      `return { observation: '', reward: 1 / 0, terminated: false, truncated: false, info: {} };`,
      'bad_value',
      'returned the reward Infinity',
      'finite number',
      false,
    ],
    [
      'reward text',
      `return { observation: '', reward: '1', terminated: false, truncated: false, info: {} };`,
      'bad_value',
      'returned the reward "1"',
      'finite number',
      false,
    ],
    [
      'no terminated',
      `return { observation: '', reward: 1, truncated: false, info: {} };`,
      'bad_value',
      'returned missing as terminated',
      'return { observation',
      false,
    ],
    [
      'no info',
      `return { observation: '', reward: 1, terminated: false, truncated: false };`,
      'bad_value',
      'returned missing as info',
      'an object as info',
      false,
    ],
    [
      'observation number',
      `return { observation: 5, reward: 1, terminated: false, truncated: false, info: {} };`,
      'bad_value',
      'returned the observation 5',
      'return a text',
      false,
    ],
    [
      'info with a function',
      `return { observation: '', reward: 1, terminated: false, truncated: false, info: { a: { f() {} } } };`,
      'bad_value',
      'an invalid info: a.f is a function',
      'plain data',
      false,
    ],
    [
      'bad images',
      `return { observation: { text: '', images: ['x'] }, reward: 1, terminated: false, truncated: false, info: {} };`,
      'bad_value',
      'images that are not byte arrays',
      'Uint8Array',
      false,
    ],
  ])('is reported with its cause and remedy: %s', async (_, statement, kind, what, remedy, placed) => {
    const { source } = await load(when(statement));
    await begin(['a', 'b']);
    const [a, b] = await running.step([
      { episode: 'a', actions: [1, 2, 1] },
      { episode: 'b', actions: [1, 1] },
    ]);
    expect(a.error?.kind).toBe(kind);
    expect(a.error?.message).toContain(what);
    expect(a.error?.message).toContain(remedy);
    expect(a.error?.message).toContain('at seed 7, member 0 after [Add]');
    expect(a.error?.at).toBe(placed ? `${source}:${line}` : source);
    expect(a.error?.message).toMatch(/^environment Bad \(.*bad\.ts/);
    expect(a.outcomes.map(({ reward }) => reward)).toEqual([0.5]);
    expect(a.observation).toBe('count 1');
    expect(b).toMatchObject({ observation: 'count 2', outcomes: [{ reward: 0.5 }, { reward: 0.5 }] });
    expect(b.error).toBeUndefined();
    const [again] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(again.error).toEqual(a.error);
    await begin(['a']);
    const [fresh] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(fresh).toMatchObject({ observation: 'count 1' });
    expect(fresh.error).toBeUndefined();
  });

  test.each([
    ['never returns', 'for (;;);', 'timed_out', 'did not return within 400 ms in step(Bad)'],
    ['waits for ever', 'return new Promise(() => {});', 'timed_out', 'did not return within 400 ms in step(Bad)'],
    ['exits', 'process.exit(3);', 'died', 'ended its thread with exit code 3 in step(Bad)'],
    [
      'throws from a timer',
      'setTimeout(() => { throw new Error("stray"); }); return new Promise(() => {});',
      'threw',
      'threw "stray"',
    ],
  ])('%s: the others are rebuilt', async (_, statement, kind, what) => {
    await load(when(statement));
    await begin(['a', 'b', 'c']);
    await running.step(['a', 'b', 'c'].map(episode => ({ episode, actions: [1, 1, 1] })));
    const [c, a, b] = await running.step([
      { episode: 'c', actions: [1] },
      { episode: 'a', actions: [1, 2, 1] },
      { episode: 'b', actions: [1, 1] },
    ]);
    expect(a.error?.kind).toBe(kind);
    expect(a.error?.message).toContain(what);
    expect(a.error?.message).toContain('at seed 7, member 0 after [Add, Add, Add, Add]');
    expect(a.outcomes).toEqual([]);
    expect(c).toMatchObject({ observation: 'count 4', outcomes: [{ info: { count: 4 } }] });
    expect(b).toMatchObject({ observation: 'count 5', outcomes: [{ info: { count: 4 } }, { info: { count: 5 } }] });
    expect(c.error ?? b.error).toBeUndefined();
    const [next] = await running.step([{ episode: 'b', actions: [1] }]);
    expect(next.observation).toBe('count 6');
  });

  test('if two calls of a batch never return, both episodes fail and the third continues', async () => {
    await load(when('for (;;);'));
    await begin(['a', 'b', 'c']);
    const steps = await running.step(['a', 'b', 'c'].map((episode, i) => ({ episode, actions: [i < 2 ? 2 : 1] })));
    expect(steps.map(({ error }) => error?.kind)).toEqual(['timed_out', 'timed_out', undefined]);
    expect(steps[2].observation).toBe('count 1');
  });
});

describe('a fault in other calls', () => {
  test('action lists that do not map numbers to names fail their episode; other episodes return their actions', async () => {
    const own = `return { observation: 'o', actions: options.member === 1 ? ['Left', 2] : { 4: 'Nurse' } };`;
    await load(counter('', { reset: own }));
    const [good, bad] = await begin(['a', 'b']);
    expect(good).toMatchObject({ observation: 'o', actions: { 4: 'Nurse' } });
    expect(bad.error).toMatchObject({ kind: 'bad_value' });
    expect(bad.error?.message).toContain('returned ["Left",2] as actions in reset()');
  });

  test('a reset that throws fails only its episode', async () => {
    const { source } = await load(counter('', { reset: `if (options.member === 1) throw new RangeError('no');` }));
    const [a, b] = await begin(['a', 'b']);
    expect(a.observation).toBe('seed 7 member 0 count 0');
    expect(b.error).toEqual({
      kind: 'threw',
      message: `environment Bad (${source}:15) threw "no" in reset() at seed 7, member 1 before any action: fix the file and save it`,
      at: `${source}:15`,
    });
  });

  test('a reset that ends the thread leaves episodes that were reset before unchanged', async () => {
    const late = `if (options.member === 1) { setTimeout(() => { throw new Error('late'); }, 50); return new Promise(() => {}) as never; }`;
    await load(counter('', { reset: late }));
    const states = await begin(['a', 'b', 'c']);
    expect(states.map(({ error }) => error && /threw "late" .* in reset\(\)/.test(error.message))).toEqual([
      undefined,
      true,
      undefined,
    ]);
    const steps = await running.step(['a', 'c'].map(episode => ({ episode, actions: [1] })));
    expect(steps.map(({ observation, error }) => error?.message ?? observation)).toEqual(['count 1', 'count 1']);
  });

  test('a solver that never returns yields no solution and affects no episode', async () => {
    await load(counter().replace('step(action) {', 'solve() { for (;;); },\n      step(action) {'));
    await begin(['a']);
    await running.step([{ episode: 'a', actions: [1, 1] }]);
    expect(await running.solve(['a'])).toEqual([{ episode: 'a', actions: undefined }]);
    expect(notices.map(({ text }) => text).join('')).toContain('did not return within 400 ms in solve()');
    const [step] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(step.observation).toBe('count 3');
  });

  test('errors name an unknown episode and an unknown tag', async () => {
    const [step] = await running.step([{ episode: 'ghost', actions: [1] }]);
    expect(step.error?.message).toBe('episode ghost is unknown: reset it first');
    const [state] = await begin(['a'], 'Ghost');
    expect(state.error?.message).toBe('tag Ghost is not loaded: load it first');
  });

  test('printed output becomes a log and never reaches the link', async () => {
    await load(counter(`console.log('seen', action); process.stderr.write('err\\n');`));
    await begin(['a']);
    const [step] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(step.observation).toBe('count 1');
    expect(notices).toContainEqual({ method: 'log', tag: 'Bad', stream: 'stdout', text: 'seen 1\n' });
    expect(notices).toContainEqual({ method: 'log', tag: 'Bad', stream: 'stderr', text: 'err\n' });
  });

  test('excessive output is truncated', async () => {
    await load(counter(`for (let i = 0; i < 200; i++) console.log('x'.repeat(1000));`));
    await begin(['a']);
    const began = performance.now();
    const [step] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(step.observation).toBe('count 1');
    const text = () => notices.map(notice => notice.text).join('');
    await expect.poll(text, { timeout: 20_000 }).toContain('further output in this second was dropped'); // sent separately
    const seconds = Math.ceil((performance.now() - began) / 1000) + 1; // including partial seconds
    expect(text().length).toBeLessThan(70_000 * seconds);
  });
});

describe('a fault at load', () => {
  test('a missing file is reported', async () => {
    const source = join(files.folder, 'none.ts');
    const { error } = await running.load([{ tag: 'Bad', env_type: 'none', source, config: {} }]);
    expect(error).toEqual({
      kind: 'build',
      message: `environment Bad (${source}) does not exist: set env_type to the name of an environment or to the path of its file`,
      at: source,
    });
  });

  test('a syntax error is reported with its line', async () => {
    const { source, error } = await load('export const a = 1;\nexport default {\n  name: ,\n};\n');
    expect(error).toMatchObject({ kind: 'build', at: `${source}:3` });
    expect(error?.message).toBe(
      `environment Bad (${source}:3) does not build (Unexpected ","): fix the file and save it`,
    );
  });

  test('an import that cannot be resolved is reported with its line', async () => {
    const { source, error } = await load(`import x from './missing';\nexport default x;\n`);
    expect(error).toMatchObject({ kind: 'build', at: `${source}:1` });
    expect(error?.message).toContain('Could not resolve "./missing"');
  });

  test.each([
    [
      'no default export',
      'export const a = 1;',
      'has no default export: end the file with "export default defineEnvironment(',
    ],
    [
      'no schema',
      `export default { name: 'x', config: {}, create() {}, instruction: '' };`,
      'has a definition whose config is {}, which is not a zod schema',
    ],
    [
      'no step',
      counter().replace('step(action)', 'stop(action)'),
      'from create(config): return an object with reset and step',
    ],
  ])('is reported: %s', async (_, text, message) => {
    const { error } = await load(text);
    expect(error?.message).toContain(message);
  });

  test('an exception at the top level is reported with its line', async () => {
    const { source, error } = await load(counter('', { top: `throw new Error('early');` }));
    expect(error).toMatchObject({ kind: 'threw', at: `${source}:3` });
    expect(error?.message).toBe(`environment Bad (${source}:3) threw "early": fix the file and save it`);
  });

  test.each([
    ['never ends', 'for (;;);', 'did not return within 400 ms while it was loaded: make the call return'],
    ['exits', 'process.exit(0);', 'ended its thread with exit code 0'],
  ])('a top level that %s', async (_, top, message) => {
    const { error } = await load(counter('', { top }));
    expect(error?.message).toContain(message);
  });

  test.each([
    [
      { start: 'one' },
      'does not accept custom_envs.Bad.env_config.start, which is "one" (expected number, received string): give it an allowed value',
    ],
    [{ begin: 1 }, 'does not know custom_envs.Bad.env_config.begin (1): use one of start'],
  ])('is reported for the configuration %j', async (config, message) => {
    const { error } = await load(counter(), config);
    expect(error?.message).toContain(message);
    expect(error?.kind).toBe('bad_value');
  });

  test('a missing dependency is reported with the command that installs it', async () => {
    const need = `dependencies() { throw new MissingDependency('finds no lake', 'dig one'); }, create(config) {`;
    const text = counter('', { top: `import { MissingDependency } from 'ragen-workbench/api';` });
    const { source, error } = await load(text.replace('create(config) {', need));
    expect(error?.message).toBe(`environment Bad (${source}) finds no lake: dig one`);
  });

  test('a dependency check that waits for another program may exceed the limit', async () => {
    const wait = `return new Promise(resolve => setTimeout(() => resolve({ observation: 'late', reward: 0, terminated: false, truncated: false, info: {} }), 900));`;
    for (const [waitMs, expectedMessage] of [
      [300, 'did not return within 400 ms'],
      [5000, undefined],
    ] as const) {
      await load(counter(wait).replace('create(config) {', `patience: () => ${waitMs}, create(config) {`));
      await begin(['a']);
      const [step] = await running.step([{ episode: 'a', actions: [1] }]);
      if (expectedMessage) expect(step.error?.message).toContain(expectedMessage);
      else expect([step.error, step.observation]).toEqual([undefined, 'late']);
    }
  });

  test('a failed build keeps the previous code', async () => {
    await load(counter());
    const { error } = await load('export default {');
    expect(error?.kind).toBe('build');
    const [state] = await begin(['a']);
    expect(state.observation).toBe('seed 7 member 0 count 0');
  });
});
