// Two suites. `fast` takes less than three minutes and runs first. `runs` (`*.runs.test.ts`) contains tests that train,
// tests that start many processes, and the longest property tests. A file named on the command line is found in either
// suite.
import { configDefaults, defineConfig } from 'vitest/config';

const runs = 'test/{unit,property}/**/*.runs.test.ts';

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
          exclude: [...configDefaults.exclude, runs],
        },
      },
      { extends: true, test: { name: 'runs', include: [runs] } },
    ],
  },
});
