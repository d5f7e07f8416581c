// Paths of the product's files, relative to the folder of the running bundle (dist/): presets, bundled models, built-in
// environments, and the bundles of other processes. Also contains the path of the user's cache folder for files derived
// from models.
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const bundles = dirname(fileURLToPath(import.meta.url));
const root = dirname(bundles);

export const installation = {
  root,
  presets: join(root, 'media', 'presets'),
  sweeps: join(root, 'media', 'sweeps'),
  models: join(root, 'media', 'models'),
  environments: join(root, 'envs'),
  cli: join(bundles, 'cli.cjs'),
  trainer: join(bundles, 'trainer.cjs'),
  engineWorker: join(bundles, 'engine-worker.cjs'),
  environmentHost: join(bundles, 'environment-host.cjs'),
  environmentContract: join(bundles, 'environment-contract.cjs'),
  pluginHost: join(bundles, 'plugin-host.cjs'),
  cache: join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ragen-workbench'),
} as const;
