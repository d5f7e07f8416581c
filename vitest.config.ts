// Two suites. `fast` takes less than three minutes and runs first; `runs` has training tests, tests that start many
// processes, and the longest property tests. A file named on the command line is found in either suite.
import { configDefaults, defineConfig } from 'vitest/config';

const runs = [
  'test/unit/trainer/**/*.test.ts',
  'test/unit/environment-host/{bad-code,contract,contract-of-servers,failures,hostile-channel,hostile-process,overlap,prepare,process,strays}.test.ts',
  'test/unit/environment-server/{server,terminal}.test.ts',
  'test/unit/rollout/slow-environments.test.ts',
  'test/unit/environment-tools/terminal.test.ts',
  'test/unit/envs/deepcoder/*.test.ts',
  'test/unit/envs/writing-your-own.test.ts',
  'test/unit/host/environment-scaffold.test.ts',
  'test/unit/models/{lora-training,memory-plan}.test.ts',
  'test/unit/store/hub-model.test.ts',
  'test/property/config/load-config.test.ts',
  'test/property/environment-server/*.test.ts',
  'test/property/fuzz.test.ts',
  'test/property/models/{memory-plan,packed-updates}.test.ts',
  'test/property/rollout/environment-processes.test.ts',
  'test/property/store/checkpoint.test.ts',
];

export default defineConfig({
  plugins: [
    {
      name: 'proto-as-text', // the bundles load onnx.proto as text too (esbuild.mjs)
      transform: (code, id) => (id.endsWith('.proto') ? { code: `export default ${JSON.stringify(code)}` } : undefined),
    },
  ],
  test: {
    globalSetup: 'test/build-bundles.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    poolOptions: { forks: { maxForks: 2, minForks: 1 } },
    env: { ORT_DISABLE_TELEMETRY: '1' },
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: ['test/{unit,property,golden}/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...runs],
        },
      },
      { extends: true, test: { name: 'runs', include: runs } },
    ],
  },
});
