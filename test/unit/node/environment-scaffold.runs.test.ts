// A new environment as the command writes it: it type-checks in a folder without node_modules, and nothing is
// overwritten.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nameProblem, scaffoldEnvironment } from '../../../extension/node/environment-scaffold';
import { writeEnvironmentTypes } from '../../../extension/node/environment-types';
import { root } from '../../support/bundles';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'ragen-scaffold-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Type errors that an editor would show in the folder's environments. */
function mistakes(): string[] {
  const settings = join(folder, 'envs/tsconfig.json');
  const { config } = ts.readConfigFile(settings, ts.sys.readFile) as { config: unknown };
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(config, ts.sys, dirname(settings));
  const found = [...errors, ...ts.getPreEmitDiagnostics(ts.createProgram(fileNames, options))];
  return found.map(
    ({ messageText, file }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
  );
}

test("its types are the extension's", async () => {
  const [file] = await scaffoldEnvironment(root, folder, 'ice_field');
  await writeEnvironmentTypes(root, folder);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain("name: 'ice_field'");
  const beside = (name: string, code: string) => writeFileSync(join(folder, 'envs', name), code);
  beside('wrong.ts', text.replace('random.integers(0, size)', "random.integers('0', size)"));
  beside(
    'wrapped.ts',
    `import sokoban from 'ragen-workbench/envs/sokoban';
import { withTimeLimit } from 'ragen-workbench/api/wrappers/time-limit';
export default withTimeLimit(sokoban, { maxSteps: 3 });
`,
  );
  expect(mistakes()).toEqual([expect.stringMatching(/wrong\.ts: Argument of type 'string'/)]);
}, 60_000);

test('the types follow an extension that has moved, if there are any', async () => {
  await writeEnvironmentTypes(root, folder, true);
  expect(() => readFileSync(join(folder, '.ragen/types/zod.d.ts'))).toThrow();
  const file = join(folder, '.ragen/types/zod.d.ts');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, 'export * from "/old/zod/index.cjs";\n');
  await writeEnvironmentTypes(root, folder, true);
  expect(readFileSync(file, 'utf8')).toContain(`"${join(root, 'node_modules/zod/index.cjs')}"`);
});

test('existing files are never overwritten', async () => {
  await scaffoldEnvironment(root, folder, 'maze');
  expect(nameProblem('maze', folder)).toBe('envs/maze/maze.ts already exists.');
  await expect(scaffoldEnvironment(root, folder, 'maze')).rejects.toThrow(
    'maze cannot be the name of a new environment',
  );
  writeFileSync(join(folder, 'envs/tsconfig.json'), '{}');
  mkdirSync(join(folder, 'config'), { recursive: true });
  writeFileSync(join(folder, 'config/lake.yaml'), 'mine');
  await expect(scaffoldEnvironment(root, folder, 'lake')).rejects.toThrow('config/lake.yaml already exists.');
  await scaffoldEnvironment(root, folder, 'pond');
  expect(readFileSync(join(folder, 'envs/tsconfig.json'), 'utf8')).toBe('{}');
  expect(readFileSync(join(folder, 'config/pond.yaml'), 'utf8')).toMatch(
    /tags: \[Pond\][\s\S]*env_type|env_type: envs\/pond\/pond\.ts/,
  );
});

test.each(['', 'Maze', '2048', 'a-b', '../x', 'a/b'])('%j is not a valid name', name => {
  expect(nameProblem(name, folder)).toMatch(/^Use lowercase letters/);
});
