// `ragen plugin new` writes a plug-in of each kind that `ragen plugin check` accepts; the check finds errors in the code,
// its types and its values.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pluginKinds } from '../../../../extension/protocol/plugin-link';
import type { PluginReport } from '../../../../extension/trainer/plugins/plugin-check';
import { document, ragen } from '../../../support/terminal';
import { root } from '../../../support/workspace';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-plugins-'));
  mkdirSync(join(folder, 'plugins'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const check = async (file: string, ...args: string[]) =>
  (await document<PluginReport>(folder, ['plugin', 'check', file, ...args])).answer;

describe.each(pluginKinds)('%s', kind => {
  test('the template passes the check', async () => {
    const { answer } = await document<{ files: string[]; use: string }>(folder, ['plugin', 'new', kind, `my_${kind}`]);
    expect(answer.files[0]).toBe(join(folder, 'plugins', `my_${kind}.ts`));
    expect(answer.use).toContain(`plugins/my_${kind}.ts`);
    expect(readFileSync(answer.files[0], 'utf8')).toContain(`'my_${kind}'`);
    const report = await check(`plugins/my_${kind}.ts`);
    expect(report.checks.filter(({ state }) => state === 'failed')).toEqual([]);
    expect([report.kind, report.name, report.checks.length]).toEqual([kind, `my_${kind}`, expect.any(Number)]);
    expect(report.checks.length).toBeGreaterThan(2);
    const again = await ragen(folder, ['plugin', 'new', kind, `my_${kind}`]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('already exists: choose another name')]);
  }, 240_000);
});

const estimator = (body: string): string => `import { defineEstimator } from 'ragen-workbench/api/plugins/estimator';
export default defineEstimator({ name: 'bad', estimate: ({ scores }) => { ${body} } });
`;

test('the check reports errors of the types, of the values and of their repetition', async () => {
  const write = (text: string) => writeFileSync(join(folder, 'plugins/bad.ts'), text);
  write(estimator('return { samples: scores.join() };'));
  expect((await check('plugins/bad.ts')).checks).toMatchObject([{ state: 'failed' }]);
  write(estimator('return { samples: scores.map(score => 1 / (score - scores[0])) };'));
  const invalid = await check('plugins/bad.ts');
  const states = invalid.checks.map(({ state }) => state);
  expect(states).toEqual(['passed', 'passed', 'failed', 'failed', 'failed']);
  expect(invalid.checks[2].evidence).toBe(
    'plug-in plugins/bad.ts returned Infinity for sample 0 in estimate(): return finite numbers',
  );
  write(estimator('return { samples: scores.map(() => Math.random()) };'));
  expect((await check('plugins/bad.ts')).checks[2].evidence).toContain('use no clock and no Math.random');
  write(estimator('for (;;) scores.fill(0);'));
  expect((await check('plugins/bad.ts', '--timeout', '200')).checks[2].evidence).toContain('within 200 ms');
}, 240_000);

test('unknown kinds and names are refused with one sentence', async () => {
  const said = async (...args: string[]) => (await ragen(folder, ['plugin', 'new', ...args])).stderr;
  expect(await said('mode', 'a')).toContain('mode is no kind of plug-in: use estimator');
  expect(await said('estimator', '../a')).toContain('../a cannot be the name of a new plug-in: use lowercase letters');
});

test.each(readdirSync(join(root, 'examples/plugins')))(
  'the example %s passes the check',
  async name => {
    cpSync(join(root, 'examples/plugins', name), join(folder, 'plugins', name));
    expect((await check(`plugins/${name}`)).checks.filter(({ state }) => state === 'failed')).toEqual([]);
  },
  240_000,
);
