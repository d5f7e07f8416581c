// The guide's example of a role that a model behind an API plays, in real runs against a local server: training,
// a service that is down, and an evaluation in which an API model plays every role.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, afterEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { document, readRun } from '../../../support/terminal';
import { trainHere } from '../../../support/train-here';
import { groupOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';
import { startPeer, type ApiPeer } from '../evaluation/api-peer';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

const guide = readFileSync(join(root, 'docs/environments/multi-agent.md'), 'utf8');
const block = (language: string): string => new RegExp(`\\n\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(guide)![1];

let workspace: Workspace;
let peer: ApiPeer;
beforeAll(() => {
  workspace = makeWorkspace();
  workspace.write('envs/order.ts', block('ts'));
  workspace.write('config/order.yaml', block('yaml'));
});
beforeEach(async () => {
  peer = await startPeer();
  peer.answer = () => ({ text: '<think>I must not say it.</think><answer>Something warm.</answer>' });
  process.env.RAGEN_TEST_GUEST_KEY = peer.key;
});
afterEach(async () => {
  delete process.env.RAGEN_TEST_GUEST_KEY;
  await peer.close();
});
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const served = () => [
  `+model_info.guest.base_url=${peer.url}/v1`,
  '+model_info.guest.api_key_env=RAGEN_TEST_GUEST_KEY',
  'workbench.threads=1',
];
const small = [
  ...groupOverrides('train', [2], 4),
  'agent_proxy.max_turn=4',
  'ppo_mini_batch_size=4',
  'micro_batch_size_per_gpu=4',
];

test('the policy is trained in its own role', { timeout: 180_000 }, async () => {
  const run = await trainHere(workspace, [...served(), ...small], 2, undefined, 'order');
  expect(run.end).toBe('finished');
  const turns = run.episodes.flatMap(episode => episode.turns);
  const given = turns.filter(({ role }) => role === 'user');
  expect(given.length).toBeGreaterThan(0);
  for (const { answer, span, penalty } of given)
    expect([answer, span, penalty]).toEqual(['Something warm.', [0, 0], 0]);
  for (const { turns: own, tokens, roles } of run.episodes) {
    expect(roles!.user.player).toBe('guest');
    expect(own.filter(({ role }) => role === 'agent').every(({ span: [from, to] }) => to > from)).toBe(true);
    expect(tokens.starts ?? [0]).toEqual([0]); // the context of the agent alone
  }
  const replies = readFileSync(join(run.folder, 'role-replies.jsonl'), 'utf8');
  expect(replies.trim().split('\n')).toHaveLength(peer.requests.length);
  expect(replies).not.toContain(peer.key);
  expect(run.lines[0]['train/Order/roles/user/turns']).toBeGreaterThan(0);
});

test('a service that is down fails episodes, and the run finishes', { timeout: 180_000 }, async () => {
  peer.mishaps = Array.from({ length: 500 }, () => ({ status: 500, error: { message: 'told to fail' } }));
  const overrides = ['+model_info.guest.max_retries=0', 'workbench.max_failed_episodes_share=1'];
  const run = await trainHere(workspace, [...served(), ...small, ...overrides], 2, undefined, 'order');
  expect(run.end).toBe('finished');
  const failed = run.episodes.filter(({ error }) => error !== undefined);
  expect(failed.length).toBeGreaterThan(0);
  for (const { error, kept } of failed) {
    expect(error).toMatch(
      /^model guest did not play the role user of Order in turn \d: api: .* \(500 told to fail\): the episode ends$/,
    );
    expect(kept).not.toBe(true);
  }
  expect(run.events.some(event => event.startsWith('environment_error: model guest did not play'))).toBe(true);
});

test.each([
  ['{waiter: {model: guest}}', 'has waiter, which is no role of environment order: use one of user, agent'],
  [
    '{user: {model: guest}, agent: {model: guest}}',
    'has all roles of environment order, so no role is left to the policy',
  ],
  ['{user: {model: gest}}', 'config: custom_envs.Order.roles.user.model is "gest", which is not a model of model_info'],
])('roles %s are refused in one sentence', async (roles, message) => {
  const overrides = [`custom_envs.Order.roles=${roles}`];
  await expect(trainHere(workspace, [...served(), ...small, ...overrides], 1, undefined, 'order')).rejects.toThrow(
    message,
  );
});

test('an API model plays every role of an evaluation, each in its own context', { timeout: 120_000 }, async () => {
  const { code, stderr, answer } = await document<{ folder: string }>(workspace.folder, [
    ...['eval', '--config-name', 'order', ...served(), ...groupOverrides('val', [2], 1), 'agent_proxy.max_turn=4'],
    ...['custom_envs.Order.roles=null', 'model_config={model_name: guest, max_concurrency: 2}'],
  ]);
  expect(code, stderr).toBe(0);
  const { episodes } = readRun(answer.folder);
  expect(episodes.map(({ turns }) => turns.map(({ role }) => role))).toEqual(
    episodes.map(() => ['agent', 'user', 'agent', 'user']),
  );
  for (const { body } of peer.requests) {
    const [system, ...chat] = (body as { messages: { content: string }[] }).messages;
    const isGuest = system.content.includes('You are a guest.');
    const states = chat.filter((_, i) => i % 2 === 0).map(({ content }) => content);
    for (const state of states) expect(state.includes('You want')).toBe(isGuest);
  }
});
