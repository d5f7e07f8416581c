// The verifiers library plays its environments for a run, and plays ours: its real environment server, from PyPI.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { callOf, replyAction } from '../../envs/api/model-calls';
import frozenLake from '../../envs/frozen-lake/index';
import verifiers from '../../envs/verifiers/index';
import { trainHere } from '../support/train-here';
import { makeWorkspace, root, type Workspace } from '../support/workspace';
import { builtIn, startServing, type Serving } from '../unit/environments/server/serving';
import { installed, program, variables } from './library';

vi.mock('../../extension/node/installation', async () =>
  (await import('../support/test-installation')).testInstallation(),
);

let folder: string;
let workspace: Workspace;
let serving: Serving;
const servers: ChildProcess[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-verifiers-'));
  workspace = makeWorkspace();
  serving = await startServing();
});
afterAll(async () => {
  for (const { pid } of servers) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  await serving.stop();
  workspace.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Serves a taskset by the script of the examples; resolves to the server's address and the file with the tasks. */
async function serve(taskset: string, env: Record<string, unknown>): Promise<{ address: string; tasks: string }> {
  const tasks = join(folder, `${taskset}.jsonl`);
  const script = join(root, 'examples/verifiers/serve.py');
  const options = ['--tasks', tasks, '--address', 'tcp://127.0.0.1:0', '--env', JSON.stringify(env)];
  const server = spawn(program('python'), [script, taskset, ...options], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: variables(folder),
  });
  servers.push(server);
  let said = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()));
  const address = await vi.waitFor(
    () => {
      const found = /at (tcp:\S+)/.exec(said);
      if (server.exitCode !== null || !found) throw new Error(`the server of ${taskset} is not ready: ${said}`);
      return found[1];
    },
    { timeout: 240_000, interval: 300 },
  );
  return { address, tasks };
}

const onThisMachine = { runtime: { type: 'subprocess' } };

test.skipIf(!installed)('a taskset of verifiers is trained on, with its rewards and metrics', async () => {
  const { address, tasks } = await serve('letter_words_v1', { agent: onThisMachine });
  const trained = await trainHere(workspace, [
    'custom_envs.Words.env_type=verifiers',
    `custom_envs.Words.env_config={server: "${address}", tasks: "${tasks}", success_reward: 1}`,
    'agent_proxy.max_turn=4',
    'actor_rollout_ref.rollout.rollout_filter_value=1',
  ]);
  expect(trained.end).toBe('finished');
  expect(trained.episodes.map(({ error }) => error)).toEqual(Array(16).fill(undefined));
  for (const { seed, reward, success, turns, tokens } of trained.episodes) {
    const letter = 'abcdefgh'[seed % 8];
    expect(turns.map(({ state }) => state)).toEqual([`user: Say a word with ${letter}.`, 'user: Another one.']);
    const replies = turns.map(({ answer, raw }) => answer ?? raw);
    const begins = replies.filter(reply => reply.startsWith(letter)).length / 2;
    expect(reward).toBe(2 * begins);
    expect(success).toBe(reward > 1);
    expect(turns[1].info).toMatchObject({ begins: 2 * begins });
    expect(tokens.mask.filter(bit => bit === 1)).toHaveLength(
      turns.reduce((sum, { span: [from, to] }) => sum + to - from, 0),
    );
  }
  expect(Object.keys(trained.lines[0])).toEqual(
    expect.arrayContaining(['train/Words/begins', 'train/Words/characters']),
  );
});

test.skipIf(!installed)('verifiers plays an environment that is served here', async () => {
  const { url } = await serving.serve([builtIn('frozen_lake', { success_rate: 1 })]);
  const { address, tasks } = await serve('openenv', {
    taskset: { base_url: `${url}/frozen_lake`, resets: [{ seed: 10007 }] },
    player: { ...onThisMachine, harness: { id: 'one_call_v1' } },
  });
  const player = verifiers.create(verifiers.config.parse({ server: address, tasks }));
  const config = frozenLake.config.parse({ success_rate: 1 });
  const lake = frozenLake.create(config);
  const { actions } = frozenLake;
  const names = typeof actions === 'function' ? actions(config)! : actions!;

  let { observation } = await lake.reset({ seed: 10007 });
  let shown = await player.reset({ seed: 0 });
  const moves = (await lake.solve!())!;
  let sum = 0;
  for (const move of moves) {
    const message = callOf(shown.observation as string)!.messages.at(-1)!;
    expect(JSON.parse(message.content)).toMatchObject({ observation: { text: observation } });
    const name = names[move as number];
    const here = await lake.step(move);
    const there = await player.step(
      replyAction({ content: name, tool_calls: [], finish: 'stop', prompt_tokens: 1, completion_tokens: 1 }),
    );
    sum += here.reward;
    observation = here.observation;
    shown = there;
    expect(there.terminated).toBe(here.terminated);
    if (here.terminated) expect(there.reward).toBe(sum);
  }
  expect(sum).toBeGreaterThan(0);
  await player.close!();
});

test('the script of the examples is the one that the guide names', () => {
  const guide = readFileSync(join(root, 'docs/environments/verifiers.md'), 'utf8');
  expect(guide).toContain('](../../examples/verifiers/serve.py)');
});
