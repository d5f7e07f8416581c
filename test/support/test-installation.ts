// Installation paths for tests that build a run in their own process and take the engine and the environments from the
// bundles. A test file replaces extension/node/installation by this module (`vi.mock`) before other imports.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export function testInstallation() {
  const root = resolve(__dirname, '../..');
  return {
    installation: {
      root,
      presets: join(root, 'media/presets'),
      sweeps: join(root, 'media/sweeps'),
      models: join(root, 'media/models'),
      environments: join(root, 'envs'),
      cli: join(root, 'dist/cli.cjs'),
      trainer: join(root, 'dist/trainer.cjs'),
      engineWorker: join(root, 'dist/engine-worker.cjs'),
      environmentHost: join(root, 'dist/environment-host.cjs'),
      environmentContract: join(root, 'dist/environment-contract.cjs'),
      pluginHost: join(root, 'dist/plugin-host.cjs'),
      cache: mkdtempSync(join(tmpdir(), 'ragen-cache-')),
    },
  };
}
