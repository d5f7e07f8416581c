// The installation for tests that assemble a run in their own process: engine and environments run from the bundles. A
// test file mocks extension/node/installation with it before other imports.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export function testInstallation() {
  const root = resolve(__dirname, '../..');
  return {
    installation: {
      root,
      presets: join(root, 'media/presets'),
      models: join(root, 'media/models'),
      environments: join(root, 'envs'),
      trainer: join(root, 'dist/trainer.cjs'),
      engineWorker: join(root, 'dist/engine-worker.cjs'),
      environmentHost: join(root, 'dist/environment-host.cjs'),
      environmentContract: join(root, 'dist/environment-contract.cjs'),
      cache: mkdtempSync(join(tmpdir(), 'ragen-cache-')),
    },
  };
}
