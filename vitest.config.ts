import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [
    {
      name: 'proto-as-text', // the bundles load onnx.proto as text (esbuild.mjs); tests see the same
      transform: (code, id) => (id.endsWith('.proto') ? { code: `export default ${JSON.stringify(code)}` } : undefined),
    },
  ],
  test: {
    include: ['test/{unit,property,golden}/**/*.test.ts'],
    globalSetup: 'test/build-bundles.ts',
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    poolOptions: { forks: { maxForks: 2, minForks: 1 } },
    env: { ORT_DISABLE_TELEMETRY: '1' },
  },
});
