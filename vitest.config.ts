// Three suites. `runs` (`*.runs.test.ts`) contains tests that train, tests that start many processes, and the longest
// property tests; RAGEN_PART leaves out some of these (test/parts.mjs). Of the other files, `isolated` contains those
// that replace modules or need a DOM, each in a process of its own; the files of `fast` share two processes and their
// loaded modules, which halves their time. A file named on the command line is found in its suite.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { leftOut } from './test/parts.mjs';

const runs = 'test/{unit,property}/**/*.runs.test.ts';
const isolated = ['unit', 'property', 'golden']
  .map(folder => `test/${folder}`)
  .flatMap(folder => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => join(folder, name)))
  .filter(file => file.endsWith('.test.ts') && !file.endsWith('.runs.test.ts'))
  .filter(file => /vi\.(mock|doMock|resetModules)\(|@vitest-environment/.test(readFileSync(file, 'utf8')));

export default defineConfig({
  plugins: [
    {
      name: 'proto-as-text', // esbuild.mjs also loads onnx.proto as text
      transform: (code, id) => (id.endsWith('.proto') ? { code: `export default ${JSON.stringify(code)}` } : undefined),
    },
    {
      name: 'wasm-as-bytes', // esbuild.mjs also loads WebAssembly files as bytes
      load: id =>
        id.endsWith('.wasm')
          ? `import { readFileSync } from 'node:fs'; export default readFileSync(${JSON.stringify(id)});`
          : undefined,
    },
  ],
  test: {
    globalSetup: 'test/build-bundles.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 50_000 } }, // waits end by the test's own time limit, however loaded the machine is
    server: { deps: { inline: [/@jsquash/] } },
    pool: 'forks',
    poolOptions: { forks: { maxForks: 2, minForks: 1 } },
    env: { ORT_DISABLE_TELEMETRY: '1' },
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: ['test/{unit,property,golden}/**/*.test.ts'],
          exclude: [...configDefaults.exclude, runs, ...isolated],
          poolOptions: { forks: { isolate: false } },
        },
      },
      { extends: true, test: { name: 'isolated', include: isolated } },
      {
        extends: true,
        test: { name: 'runs', include: [runs], exclude: [...configDefaults.exclude, ...leftOut('tests')] },
      },
    ],
  },
});
