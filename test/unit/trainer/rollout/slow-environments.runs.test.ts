// Rollouts over real environment processes in which one episode in eight sleeps in each turn: lock step takes one sleep
// per turn, asynchronous rollout about one sleep, and the episodes are identical.
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EnvironmentSpec } from '../../../../extension/protocol/environment-link';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { EnvironmentProcesses } from '../../../../extension/environments/client/environment-processes';
import type { RolloutBatch } from '../../../../extension/trainer/rollout/rollout-batch';
import { buildEntry, counter, workspace } from '../../../support/bundles';
import { characterTokenizer, corridorOptions, ScriptedGenerator } from './scripted-rollout';

const sleepMs = 500;
const turns = 6;
let entry: string;
let files: ReturnType<typeof workspace>;
let spec: EnvironmentSpec;

beforeAll(async () => {
  entry = await buildEntry();
  files = workspace();
  const sleep = `if ((seed + own) % 8 === count) await new Promise(done => setTimeout(done, ${sleepMs}));`;
  const text = counter(sleep, { reset: 'own = options.member;' })
    .replace('let seed = 0;', 'let seed = 0; let own = 0;')
    .replace('step(action)', 'async step(action)');
  spec = { tag: 'Corridor', env_type: 'counter', source: files.write('slow.ts', text), config: {} };
});
afterAll(() => [dirname(entry), files.folder].forEach(folder => rmSync(folder, { recursive: true, force: true })));

async function played(async_rollout: boolean, workers: number): Promise<{ batch: RolloutBatch; ms: number }> {
  const pool = await EnvironmentProcesses.start(
    { entry, variables: process.env, stepTimeoutMs: 20_000, onNotice: () => undefined },
    { Corridor: workers },
  );
  try {
    const { environments } = await pool.load([spec]);
    const generator = new ScriptedGenerator((row, turn) => `${row} ${turn}</think><answer>Add</answer>`);
    const options = corridorOptions({ async_rollout });
    const groups = { ...options.es_manager.train, group_size: 8 };
    const agent = new AgentProxy(generator, pool, characterTokenizer, {
      ...options,
      agent_proxy: { ...options.agent_proxy, max_turn: turns },
      es_manager: { ...options.es_manager, train: groups },
    });
    const start = performance.now();
    const batch = await agent.rollout({ mode: 'train', step: 1, environments });
    return { batch, ms: performance.now() - start };
  } finally {
    await pool.stop();
  }
}

it('slow episodes do not delay the others', async () => {
  const lockStep = await played(false, 1);
  expect(lockStep.ms).toBeGreaterThan(turns * sleepMs);
  expect(lockStep.batch.episodes.map(({ final_state }) => final_state)).toEqual(Array(16).fill(`count ${turns}`));
  for (const workers of [1, 3]) {
    const { batch, ms } = await played(true, workers);
    expect({ ...batch, environmentSeconds: 0 }).toEqual({ ...lockStep.batch, environmentSeconds: 0 });
    expect(ms).toBeLessThan(lockStep.ms - 3 * sleepMs); // about one sleep on an idle machine
  }
});
