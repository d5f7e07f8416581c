// `ragen eval` of API models end to end, with a local server that implements both protocols: episodes, concurrency,
// costs, failures, resume after a kill, and that the key is never on disk. No real service is contacted.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EvaluationSummary } from '../../../../extension/trainer/evaluation/evaluation-summary';
import { startPeer } from './api-peer';
import type { ApiPeer } from './api-peer';
import { document, kill, killAll, readRun, runsOf, statusOf, until } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

interface Answer {
  run: string;
  folder: string;
  state: string;
  evaluation: EvaluationSummary;
  error?: { message: string };
}

const keyVariable = 'RAGEN_TEST_PEER_KEY';
let workspace: Workspace;
let peer: ApiPeer;

/** A configuration with 12 groups of 2 episodes and 3 concurrent requests, for either protocol. */
const configuration = (url: string): string => `# A model behind an API.
defaults:
  - words
  - _self_
model_path: models/nowhere # not looked at
agent_proxy:
  enable_think: true
es_manager:
  val:
    env_groups: 12
    group_size: 2
    env_configs: {tags: [Words], n_groups: [12]}
model_config:
  model_name: chat
  max_concurrency: 3
model_info:
  chat: &model
    provider_name: openai
    model_name: peer-1
    base_url: ${url}/v1
    api_key_env: ${keyVariable}
    generation_kwargs: {temperature: 0, max_tokens: 64}
    max_retries: 3
    timeout_s: 5
    price_per_million: {input: 2, output: 10}
  claude:
    provider_name: anthropic
    model_name: peer-2
    base_url: ${url}
    api_key_env: ${keyVariable}
`;

beforeAll(() => {
  workspace = makeWorkspace();
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});
beforeEach(async () => {
  peer = await startPeer();
  process.env[keyVariable] = peer.key;
  workspace.write('config/api.yaml', configuration(peer.url));
  // Every second turn has a well-formed thought; the words differ in length, and therefore in reward.
  peer.answer = messages => {
    const word = 'word'.repeat(1 + (messages.at(-1)!.content.length % 3));
    return {
      text: messages.length % 4 === 1 ? `<think> hm </think><answer>${word}</answer>` : `<answer>${word}</answer>`,
    };
  };
});
afterEach(async () => {
  delete process.env[keyVariable];
  await peer.close();
});

const evaluate = (...overrides: string[]) =>
  document<Answer>(workspace.folder, ['eval', '--config-name', 'api', ...overrides]);

/** Contents of all files below a folder, as text. */
const everything = (folder: string): string =>
  readdirSync(folder)
    .map(name => join(folder, name))
    .map(path =>
      statSync(path).isDirectory() ? everything(path) : statSync(path).isFile() ? readFileSync(path, 'latin1') : '',
    )
    .join('\n');

describe('both protocols', () => {
  for (const name of ['chat', 'claude'])
    test(`${name}: complete episodes, each answer once, at most the allowed number of concurrent requests, and the cost`, async () => {
      peer.delayMs = 20;
      const { code, stderr, answer } = await evaluate(`model_config.model_name=${name}`);
      expect(code, stderr).toBe(0);
      const { episodes, metrics } = readRun(answer.folder);
      expect(episodes.map(({ env_id }) => env_id).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 24 }, (_, i) => i),
      );
      expect(peer.mostOpen).toBe(3);
      const turns = episodes.reduce((sum, episode) => sum + episode.turns.length, 0);
      expect(peer.requests.length).toBe(turns);
      // The stored answer contains the generation prefix of local models once, whether the model wrote it or not.
      for (const { raw, answer: said } of episodes.flatMap(episode => episode.turns))
        expect(raw).toMatch(said === null ? /^<think><answer>/ : /^<think> hm <\/think><answer>(word)+<\/answer>$/);
      const { api, overall, model } = answer.evaluation;
      expect(overall).toMatchObject({ groups: 12, episodes: 24 });
      expect(model.path).toBe(name === 'chat' ? 'openai:peer-1' : 'anthropic:peer-2');
      const input = peer.answered.reduce((sum, messages) => sum + JSON.stringify(messages).length, 0);
      expect(api).toMatchObject({ requests: turns, input_tokens: input });
      if (name === 'chat') expect(api!.cost).toBeCloseTo((2 * input + 10 * api!.output_tokens) / 1e6, 12);
      else expect(api!.cost).toBeNull();
      expect(metrics[0]['val-env/response_length']).toBeCloseTo(api!.output_tokens / 24, 9);
      expect(answer.evaluation.entropy).toBeNull();
      // The second turn's request contains the first answer as the model wrote it.
      const second = peer.answered.find(messages => messages.length === 3)!;
      expect(second[1].content).toMatch(/^<think> hm <\/think><answer>/);
    });
});

test('in windowed contexts, the service receives the messages that a local model receives', async () => {
  const few = [
    'es_manager.val.env_groups=2',
    'es_manager.val.env_configs.n_groups=[2]',
    'agent_proxy.max_context_window=1',
  ];
  for (const mode of ['limited_multi_turn', 'single_turn']) {
    peer.answered.length = 0;
    const { code, stderr, answer } = await evaluate(...few, `agent_proxy.context_window_mode=${mode}`);
    expect(code, stderr).toBe(0);
    expect(peer.answered.length).toBe(answer.evaluation.api!.requests);
    expect(peer.answered.length).toBeGreaterThan(4); // some episodes have a second turn
    for (const messages of peer.answered) expect(messages.map(({ role }) => role)).toEqual(['user']);
  }
});

test('refusals, limits and lost connections do not change the results', async () => {
  const calm = await evaluate();
  peer.mishaps = [
    null,
    { status: 429, headers: { 'retry-after': '0.2' } },
    null,
    { drop: true },
    { status: 500 },
    { text: '{' },
  ];
  const rough = await evaluate();
  expect(rough.code, rough.stderr).toBe(0);
  const played = (folder: string) =>
    readRun(folder)
      .episodes.sort((a, b) => a.env_id - b.env_id)
      .map(({ turns, score }) => ({ turns, score }));
  expect(played(rough.answer.folder)).toEqual(played(calm.answer.folder));
  expect(readRun(rough.answer.folder).events.map(({ message }) => message)).toContain(
    `4 requests to ${peer.url}/v1/chat/completions were retried`,
  );
});

test('answers that are truncated, filtered or refused end their episodes as failures, and are counted', async () => {
  const answer = peer.answer;
  let count = 0;
  peer.answer = messages => {
    count++;
    if (count === 2) return { text: '<think> hm </think><answer>word</answer> and so on', finish: 'length' };
    if (count === 5) return { text: '', finish: 'content_filter' };
    return answer(messages);
  };
  peer.mishaps = [...new Array<null>(6).fill(null), { status: 400, error: { message: 'context too long' } }];
  const { code, stderr, answer: said } = await evaluate();
  expect(code, stderr).toBe(0);
  expect(said.evaluation.api!.failed_episodes).toEqual({ length: 1, content_filter: 1, refused: 1 });
  const failed = readRun(said.folder).episodes.filter(({ metrics }) =>
    Object.entries(metrics).some(([key, value]) => key.startsWith('api_failed/') && value === 1),
  );
  expect(failed.length).toBe(3);
  for (const { success, truncated, turns } of failed) {
    expect([success, truncated]).toEqual([false, true]);
    expect(turns.at(-1)!.finish).toBe('length');
  }
  expect(said.evaluation.overall.episodes).toBe(24); // failures count as episodes
});

test('after a kill only the remaining episodes are requested', async () => {
  peer.delayMs = 60;
  const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, [
    ...['eval', '--config-name', 'api', '--detach'],
  ]);
  expect(code, stderr).toBe(0);
  const file = join(answer.folder, 'episodes/val-000000.jsonl');
  const lines = (): number => {
    try {
      return readFileSync(file, 'utf8').split('\n').length - 1;
    } catch {
      return 0;
    }
  };
  await until('some episodes are played', () => lines() >= 6);
  await kill(answer.folder);
  await peer.forsaken();
  // Episodes that were being written at the kill have no checksum and are requested again.
  const ledger = readFileSync(join(answer.folder, 'checksums.jsonl'), 'utf8').split('\n').slice(0, -1);
  const pieces = ledger.map(line => JSON.parse(line) as { file: string; to: number });
  const covered = pieces.findLast(piece => piece.file === 'episodes/val-000000.jsonl')!.to;
  const kept = readFileSync(file).subarray(0, covered).toString('utf8').split('\n').length - 1;
  expect(kept).toBeGreaterThan(0);
  const finished = readRun(answer.folder).episodes.slice(0, kept);
  peer.requests.length = 0;
  peer.delayMs = 0;
  const resumed = await document<Answer>(workspace.folder, ['resume', basename(answer.folder)]);
  expect(resumed.code, resumed.stderr).toBe(0);
  const { episodes } = readRun(answer.folder);
  expect(episodes.slice(0, kept)).toEqual(finished);
  expect(new Set(episodes.map(({ env_id }) => env_id)).size).toBe(24);
  expect(peer.requests.length).toBe(episodes.slice(kept).reduce((sum, { turns }) => sum + turns.length, 0));
  expect(resumed.answer.evaluation.api!.requests).toBe(episodes.reduce((sum, { turns }) => sum + turns.length, 0));
});

test('a service that stays unavailable stops the evaluation, which can be resumed', async () => {
  peer.mishaps = new Array<{ status: number }>(400).fill({ status: 401 });
  const { code, answer } = await evaluate();
  expect(code).toBe(1);
  expect(answer.error!.message).toMatch(/^api: .* refuses requests \(401 told to fail\): check the key/);
  expect(statusOf(answer.folder)!.state).toBe('failed');
  peer.mishaps = [];
  const resumed = await document<Answer>(workspace.folder, ['resume', answer.run]);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(resumed.answer.evaluation.overall.episodes).toBe(24);
});

test('without a key nothing is created; a wrong key that the service repeats is stored nowhere', async () => {
  const before = runsOf(workspace.folder).length;
  delete process.env[keyVariable];
  const missing = await evaluate();
  expect(missing.code).toBe(1);
  expect(missing.answer.error!.message).toContain(`set the environment variable ${keyVariable}`);
  expect(runsOf(workspace.folder).length).toBe(before);
  const wrong = 'sk-wrong-77ee88dd99cc';
  process.env[keyVariable] = wrong;
  const refused = await evaluate();
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`401 Incorrect API key provided: [redacted ${keyVariable}]`);
  const disk = everything(workspace.folder);
  expect(disk).toContain(keyVariable);
  for (const secret of [peer.key, wrong]) expect(disk + refused.stderr + refused.stdout).not.toContain(secret);
});

test('no episode, result or output contains a key that the service repeats in its answers', async () => {
  const encoded = Buffer.from(`Bearer ${peer.key}`).toString('base64');
  peer.answer = () => ({ text: `<answer>word ${peer.key} ${encoded}</answer>` });
  const said = await evaluate();
  expect(said.code, said.stderr).toBe(0);
  const disk = everything(said.answer.folder);
  expect(disk).toContain(`[redacted ${keyVariable}]`);
  for (const form of [peer.key, encoded.slice(12, -4)]) {
    expect(disk.includes(form)).toBe(false);
    expect((said.stdout + said.stderr).includes(form)).toBe(false);
  }
});
