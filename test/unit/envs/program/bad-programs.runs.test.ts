// Programs that misbehave beside programs that do not, in one training step: each bad episode ends with one sentence or
// with the reward 0, the good episodes are unaffected, and the run goes on.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Episode } from '../../../../extension/run-data/episode';
import { trainHere, type Trained } from '../../../support/train-here';
import { makeWorkspace, type Workspace } from '../../../support/workspace';
import { askPolicy } from './program-player';

vi.mock('../../../../extension/node/installation', async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

/** What the members of a group do, by number. */
const [good, silent, flooding, lying, foreign, half, hostile, hanging] = [0, 1, 2, 3, 4, 5, 6, 7];
const program = `${askPolicy}
import { mkdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
const { OPENAI_BASE_URL: url, RAGEN_REWARD_FILE: file, RAGEN_MEMBER: member } = process.env;
const forever = () => new Promise(() => setInterval(() => 0, 1000));
const chunk = 'x'.repeat(2 ** 20);
const write = text => new Promise(done => process.stdout.write(text, done));
const behaviours = [
  async () => writeFileSync(file, String((await ask('Say something.')).length % 2)),
  forever,
  async () => {
    await ask('Say something.');
    for (let i = 0; i < 64; i++) await write(chunk);
    writeFileSync(file, '0');
  },
  async () => {
    await ask('Say something.');
    mkdirSync(file);
  },
  async () => {
    await ask('Say something.');
    const others = [url.replace(/\\/e\\/\\d+/, '/e/1'), url.replace(/\\/e\\/\\d+\\/[0-9a-f]+/, '/e/1/00'), url.replace(/\\/e.*/, '/v1')];
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Not mine.' }] });
    const statuses = [];
    for (const other of others) statuses.push((await fetch(other + '/chat/completions', { method: 'POST', body })).status);
    console.log('foreign: ' + statuses.join(' '));
    writeFileSync(file, '0');
  },
  async () => {
    await ask('Say something.');
    const { hostname, port, pathname } = new URL(url);
    const socket = net.connect(Number(port), hostname);
    socket.write('POST ' + pathname + '/chat/completions HTTP/1.1\\r\\nHost: ' + hostname + '\\r\\nContent-Length: 100\\r\\n\\r\\n{"mess');
    await forever();
  },
  async () => {
    await ask('Say something.');
    const { hostname, port } = new URL(url);
    for (const text of ['GARBAGE\\r\\n\\r\\n', 'GET / HTTP/9.9\\r\\n\\r\\n', '\\0'.repeat(100_000)]) {
      const socket = net.connect(Number(port), hostname, () => socket.write(text));
      await new Promise(done => socket.once('close', done).once('error', () => undefined).resume());
    }
    writeFileSync(file, '{"reward": "all of it"}');
  },
  async () => {
    await ask('Say something.');
    await forever();
  },
];
await behaviours[Number(member)]();
process.exit(0);
`;

let workspace: Workspace;
let trained: Trained;

beforeAll(async () => {
  workspace = makeWorkspace();
  workspace.write('agent/play.mjs', program);
  trained = await trainHere(workspace, [
    'custom_envs.Words.env_type=program',
    `custom_envs.Words.env_config={command: [${process.execPath}, play.mjs], folder: agent, reward: file, at_once: 8, time_limit: 12}`,
    'agent_proxy.max_turn=4',
    'es_manager.train.group_size=8',
    'es_manager.train.env_groups=2',
    'es_manager.train.env_configs.n_groups=[2]',
    'actor_rollout_ref.rollout.rollout_filter_value=1',
    'workbench.max_failed_episodes_share=1',
  ]);
}, 300_000);
afterAll(() => workspace.remove());

const of = (member: number): Episode[] => {
  const found = trained.episodes.filter(({ env_id }) => env_id % 8 === member);
  expect(found.length).toBeGreaterThan(0);
  return found;
};

test('the run goes on, and good programs end as they do alone', () => {
  expect(trained.end).toBe('finished');
  for (const episode of of(good)) {
    expect(episode.error).toBeUndefined();
    expect(episode.final_state).toBe('The program ended with exit code 0.');
    expect(episode.reward).toBe(episode.messages.at(-1)!.content.length % 2);
  }
});

test.each([
  ['never calls', silent, /No call within 12 s: call OPENAI_BASE_URL, or raise env_config\.time_limit/],
  ['makes a folder of its reward file', lying, /RAGEN_REWARD_FILE cannot be read \(/],
  ['writes a reward that is no number', hostile, /The content of the reward file is \{.*reward.*all of it.*\}/],
])('a program that %s fails its episode in one sentence', (_, member, message) => {
  for (const { error } of of(member)) {
    expect(error).toMatch(message);
    expect(error).not.toContain('\n');
  }
});

test.each([
  ['hangs after a call', hanging],
  ['sends half a request', half],
])('a program that %s ends with its time, without a reward', (_, member) => {
  for (const { error, final_state, reward, truncated } of of(member)) {
    expect([error, reward, truncated]).toEqual([undefined, 0, true]);
    expect(final_state).toBe('The program was ended, because it ran longer than 12 s.');
  }
});

test('what a program floods is bounded in its episode', () => {
  for (const { error, final_state } of of(flooding)) {
    expect(error).toBeUndefined();
    expect(final_state.length).toBeLessThan(2100);
  }
});

test('calls with the numbers of other episodes are refused, and no conversation has them', () => {
  for (const { error, final_state } of of(foreign)) {
    expect(error).toBeUndefined();
    expect(final_state).toContain('foreign: 404 404 404');
  }
  const told = trained.episodes.map(({ messages }) => JSON.stringify(messages)).join('\n');
  expect(told).not.toContain('Not mine.');
  expect(readFileSync(join(trained.folder, 'metrics.jsonl'), 'utf8').trim().split('\n')).toHaveLength(2);
});
