// Environments with packages and data files run in the environment process as in training: bundled, in a worker, and
// solved by their oracle.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { EnvironmentProcess } from '../../../extension/environments/client/environment-process';
import { isolationMissing } from './deepcoder/isolation';
import { buildEntry, root, startProcess } from '../../support/bundles';

let entry: string;
let running: EnvironmentProcess;

beforeAll(async () => {
  entry = await buildEntry();
  ({ running } = await startProcess(entry, { stepTimeoutMs: 20_000 }));
});
afterAll(async () => {
  await running.stop();
  rmSync(dirname(entry), { recursive: true, force: true });
});

const registry = JSON.parse(readFileSync(join(root, 'envs/registry.json'), 'utf8')) as Record<string, string>;

test.for([
  ['search', {}],
  ['search', { embedding_model: join(root, 'test/golden/search-embedder') }],
  ['small_web', { kinds: ['question'] }],
  ['webshop', {}],
  ['deepcoder', { total_timeout: 20 }],
] as const)('%s is solved by its oracle', async ([env_type, config], { skip }) => {
  const missing = env_type === 'deepcoder' && (await isolationMissing());
  if (missing) skip(missing);
  const source = join(root, 'envs', registry[env_type]);
  const { error, environments } = await running.load([{ tag: env_type, env_type, source, config }]);
  expect(error).toBeUndefined();
  expect(environments[0]).toMatchObject({ name: env_type, has_solver: true });
  const [state] = await running.reset([{ episode: 'e', tag: env_type, seed: 5, member: 0, mode: 'val' }]);
  expect(state.error).toBeUndefined();
  const [{ actions }] = await running.solve(['e']);
  const [step] = await running.step([{ episode: 'e', actions: actions! }]);
  expect(step.error).toBeUndefined();
  expect(step.outcomes.at(-1)).toMatchObject({ terminated: true, reward: 1, info: { success: true } });
});
