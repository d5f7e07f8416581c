// Rollouts over real environment processes, in which some episodes wait in a turn until all other episodes have ended.
// Lock step would wait in each turn; an asynchronous rollout plays the other episodes to their ends. The episodes are
// identical.
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EnvironmentSpec } from '../../../../extension/protocol/environment-link';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { EnvironmentProcessPool } from '../../../../extension/environments/client/process-pool';
import { buildEntry, counter, workspace } from '../../../support/bundles';
import { characterTokenizer, corridorOptions, ScriptedGenerator } from './scripted-rollout';

const turns = 6;
/** 16 episodes in two groups; member 3 of each group waits in its second turn. */
const [count, slow] = [16, ['g000-m03', 'g001-m03']];
let entry: string;
let files: ReturnType<typeof workspace>;
let spec: EnvironmentSpec;
let release: string;

beforeAll(async () => {
  entry = await buildEntry();
  files = workspace();
  release = join(files.folder, 'release');
  const wait = `while (own === 3 && count === 1 && !existsSync(${JSON.stringify(release)})) await new Promise(done => setTimeout(done, 5));`;
  const text = counter(wait, { top: `import { existsSync } from 'node:fs';`, reset: 'own = options.member;' })
    .replace('let seed = 0;', 'let seed = 0; let own = 0;')
    .replace('step(action)', 'async step(action)');
  spec = { tag: 'Corridor', env_type: 'counter', source: files.write('slow.ts', text), config: {} };
});
afterAll(() => [dirname(entry), files.folder].forEach(folder => rmSync(folder, { recursive: true, force: true })));

/** Plays a rollout; `onTurn` receives each generated turn. */
async function played(async_rollout: boolean, workers: number, onTurn: (row: string, turn: number) => void) {
  const pool = await EnvironmentProcessPool.start(
    { entry, variables: process.env, stepTimeoutMs: 20_000, onNotice: () => undefined },
    { Corridor: workers },
  );
  try {
    const { environments } = await pool.load([spec]);
    const generator = new ScriptedGenerator((row, turn) => {
      onTurn(row.slice(13), turn);
      return `${row} ${turn}</think><answer>Add</answer>`;
    });
    const options = corridorOptions({ async_rollout });
    const groups = { ...options.es_manager.train, group_size: 8 };
    const agent = new AgentProxy(generator, pool, characterTokenizer, {
      ...options,
      agent_proxy: { ...options.agent_proxy, max_turn: turns },
      es_manager: { ...options.es_manager, train: groups },
    });
    const batch = await agent.rollout({ mode: 'train', step: 1, environments });
    return { batch, calls: generator.calls.map(({ rows }) => rows.length) };
  } finally {
    await pool.stop();
  }
}

it('slow episodes do not delay the others', async () => {
  writeFileSync(release, ''); // no episode waits
  const lockStep = await played(false, 1, () => undefined);
  expect(lockStep.calls).toEqual(Array(turns).fill(count));
  expect(lockStep.batch.episodes.map(({ final_state }) => final_state)).toEqual(Array(count).fill(`count ${turns}`));
  for (const workers of [1, 3]) {
    rmSync(release);
    const before: string[] = [];
    const { batch } = await played(true, workers, (row, turn) => {
      before.push(`${row} ${turn}`);
      // The slow episodes continue once all others have played their last turn.
      if (before.filter(each => each.endsWith(` ${turns}`)).length === count - slow.length) writeFileSync(release, '');
    });
    expect({ ...batch, environmentSeconds: 0 }).toEqual({ ...lockStep.batch, environmentSeconds: 0 });
    const released = (count - slow.length) * turns + slow.length * 2;
    const late = slow.flatMap(row => Array.from({ length: turns - 2 }, (_, i) => `${row} ${i + 3}`));
    expect(before.slice(released).sort()).toEqual(late.sort());
  }
});
