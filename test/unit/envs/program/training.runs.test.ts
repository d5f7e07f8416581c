// A program that is not changed for the training is trained on: it calls the model with plain `fetch`, and writes its
// reward. The episodes have the exact sampled tokens, and are stored, filtered and trained like all others.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { trainHere, type Trained } from '../../../support/train-here';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

vi.mock('../../../../extension/node/installation', async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

/** Asks twice in one conversation, then once more in another; the reward is the share of short replies. */
const program = `
import { writeFileSync } from 'node:fs';
const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key, RAGEN_SEED: seed, RAGEN_TASK: task } = process.env;
const ask = async messages => {
  const response = await fetch(url + '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + key },
    body: JSON.stringify({ model: 'any', messages, temperature: 0.2 }),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(body));
  return body.choices[0].message;
};
const chat = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Word ' + seed + ' of ' + task }];
chat.push(await ask(chat));
chat.push({ role: 'user', content: 'Again.' });
chat.push(await ask(chat));
const other = await ask([{ role: 'user', content: 'Judge: ' + chat.at(-1).content }]);
const replies = [chat[2], chat[4], other].map(({ content }) => content.length);
writeFileSync(process.env.RAGEN_REWARD_FILE, JSON.stringify({ reward: replies.filter(n => n % 2 === 0).length / 3 }));
console.log('leaked: ' + process.env.SOME_SECRET_KEY);
`;

const secret = 'not-for-programs-0123';
let workspace: Workspace;
let trained: Trained;

beforeAll(async () => {
  workspace = makeWorkspace();
  workspace.write('agent/play.mjs', program);
  workspace.write('agent/tasks.jsonl', '{"lake":1}\n{"lake":2}\n');
  process.env.SOME_SECRET_KEY = secret;
  trained = await trainHere(workspace, [
    'custom_envs.Words.env_type=program',
    `custom_envs.Words.env_config={command: [${process.execPath}, play.mjs], folder: agent, tasks: tasks.jsonl, files: [play.mjs], reward: file, at_once: 3}`,
    'agent_proxy.max_turn=4',
    'actor_rollout_ref.rollout.rollout_filter_value=1',
  ]);
});
afterAll(() => {
  delete process.env.SOME_SECRET_KEY;
  workspace.remove();
});

test('all episodes end with a reward and train', () => {
  expect(trained.end).toBe('finished');
  expect(trained.episodes.map(({ error }) => error)).toEqual(Array(16).fill(undefined));
  expect(trained.episodes.every(({ terminated, turns }) => terminated && turns.length === 3)).toBe(true);
  expect(new Set(trained.episodes.map(({ reward }) => reward)).size).toBeGreaterThan(1);
  expect(trained.lines.at(-1)!['actor/grad_norm']).toBeGreaterThan(0);
});

test('calls of one conversation are one sample, and another conversation is another sample', () => {
  for (const { tokens, turns } of trained.episodes) {
    expect(tokens.starts).toHaveLength(2);
    const [first, second, other] = turns.map(({ span }) => span);
    expect(second[0]).toBeGreaterThan(first[1]);
    expect(second[1]).toBe(tokens.starts![1]);
    expect(other[0]).toBeGreaterThan(tokens.starts![1]);
    const sampled = turns.reduce((sum, { span: [from, to] }) => sum + to - from, 0);
    expect(tokens.mask.filter(bit => bit === 1)).toHaveLength(sampled);
    expect(tokens.logprobs.filter(logprob => logprob !== null)).toHaveLength(sampled);
  }
});

test('the trace shows the conversation, the task of the group and the version of the program', () => {
  const [episode] = trained.episodes;
  expect(episode.turns[0].state).toBe(
    `system: Be brief.\nuser: Word ${episode.seed} of {"lake":${1 + (episode.seed % 2)}}`,
  );
  expect(episode.turns[1].state).toBe('user: Again.');
  expect(episode.turns[0].info.program).toMatch(/^[0-9a-f]{16}$/);
  expect(episode.final_state).toContain('ended with exit code 0');
  expect(episode.messages.map(({ role }) => role)).toEqual([
    'system',
    'user',
    'assistant',
    'user',
    'assistant',
    'user',
    'assistant',
  ]);
});

test('the program receives no variables that it was not given, and no file of the run folder contains them', () => {
  expect(trained.episodes[0].final_state).toContain('leaked: undefined');
  const files = readdirSync(trained.folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name));
  const containing = (text: string) => files.filter(file => readFileSync(file).includes(text));
  expect(containing('leaked: undefined').length).toBeGreaterThan(0); // the output of the program is among the files
  expect(containing(secret)).toEqual([]);
});
