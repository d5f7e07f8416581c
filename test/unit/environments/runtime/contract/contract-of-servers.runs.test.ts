// Built-in environments that need a server meet the contract: Lean and ALFWorld with the substitute servers of their
// own tests, and FrozenLake behind `ragen env serve`, with both protocols.
import { spawn, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import alfworld from '../../../../../envs/alfworld/index';
import type { EnvironmentDefinition } from '../../../../../envs/api/environment';
import lean from '../../../../../envs/lean/index';
import remote from '../../../../../envs/remote/index';
import { checkContract } from '../../../../../extension/environments/runtime/contract/contract';
import { builtIn, startServing, type Serving } from '../../server/serving';
import { tinyHouse } from '../../../envs/alfworld/tiny-house';

const options = { seeds: 3, steps: 12, budgetMs: 10_000, announce: () => undefined };
let proofs: ChildProcess;
let house: Awaited<ReturnType<typeof tinyHouse>>;
let serving: Serving;
let leanUrl: string;
let lakes: string;
beforeAll(async () => {
  proofs = spawn(process.execPath, [resolve(__dirname, '../../../envs/lean/tiny-lean.mjs'), '--http'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise<string>(done => createInterface(proofs.stdout!).once('line', done));
  leanUrl = `http://127.0.0.1:${port}`;
  house = await tinyHouse();
  serving = await startServing();
  lakes = (await serving.serve([builtIn('frozen_lake', { success_rate: 0.8 })], { maxSessions: 100 })).url;
});
afterAll(async () => {
  proofs.kill();
  house.stop();
  await serving.stop();
});

test.each<[string, EnvironmentDefinition, () => Record<string, unknown>]>([
  ['lean', lean, () => ({ server_url: leanUrl })],
  ['alfworld', alfworld, () => ({ url: house.url, protocol: 'gym_service' })],
  ['remote, OpenEnv', remote, () => ({ url: `${lakes}/frozen_lake`, protocol: 'openenv' })],
  ['remote, GymService', remote, () => ({ url: `${lakes}/frozen_lake`, protocol: 'gym_service' })],
])('%s keeps the contract', async (_, definition, given) => {
  const config = definition.config.parse(given()) as Record<string, unknown>;
  await definition.dependencies?.(config);
  const results = await checkContract(definition, config, options);
  expect(results.filter(({ state }) => state === 'failed')).toEqual([]);
  expect(results.filter(({ state }) => state === 'passed').length).toBeGreaterThan(6);
});
