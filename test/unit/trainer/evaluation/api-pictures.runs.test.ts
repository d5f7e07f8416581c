// Pictures from an environment to a model behind an API, end to end: a server of this product offers Sokoban as pictures
// over GymService and OpenEnv, `ragen eval` plays it as a remote environment, and a local server of both API protocols
// receives the pictures. Each picture is stored once, and the record of an episode names it.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';
import { document, killAll, readRun } from '../../../support/terminal';
import { makeWorkspace, type Workspace } from '../../../support/workspace';
import { builtIn, startServing, type Serving } from '../../environments/server/serving';
import { startPeer, type ApiPeer } from './api-peer';

const keyVariable = 'RAGEN_TEST_PICTURE_KEY';
const sokoban = { render_mode: 'rgb_array', dim_room: [5, 5], num_boxes: 1, search_depth: 10 };
let workspace: Workspace;
let serving: Serving;
let environmentsAt: string;
let peer: ApiPeer;

beforeAll(async () => {
  workspace = makeWorkspace();
  serving = await startServing();
  ({ url: environmentsAt } = await serving.serve([builtIn('sokoban', sokoban)], { maxSessions: 40 }));
});
afterAll(async () => {
  await serving.stop();
  await killAll(workspace.folder);
  workspace.remove();
});
beforeEach(async () => {
  peer = await startPeer();
  process.env[keyVariable] = peer.key;
  peer.answer = messages => ({ text: `<answer>${['Up', 'Left', 'Down'][messages.length % 3]}</answer>` });
});
afterEach(async () => {
  delete process.env[keyVariable];
  await peer.close();
});

const configuration = (
  env_type: string,
  env_config: Record<string, unknown>,
  provider: 'openai' | 'anthropic',
): string =>
  JSON.stringify({
    defaults: ['base', '_self_'],
    model_path: 'models/nowhere',
    agent_proxy: { enable_think: false, max_turn: 3, max_actions_per_turn: 1 },
    es_manager: { val: { env_groups: 2, group_size: 2, env_configs: { tags: ['Seen'], n_groups: [2] } } },
    custom_envs: { Seen: { env_type, max_actions_per_traj: 5, max_tokens: 50, env_config } },
    model_config: { model_name: 'chat', max_concurrency: 2 },
    model_info: {
      chat: {
        provider_name: provider,
        model_name: 'peer',
        base_url: provider === 'openai' ? `${peer.url}/v1` : peer.url,
        api_key_env: keyVariable,
        timeout_s: 20,
      },
    },
  });

interface Answer {
  folder: string;
  evaluation: { api: { requests: number; input_tokens: number } };
  error?: { message: string };
}
const evaluate = (name: string, config: string, ...overrides: string[]) => {
  workspace.write(`config/${name}.yaml`, config);
  return document<Answer>(workspace.folder, ['eval', '--config-name', name, ...overrides]);
};

type Part = { type: string; image_url?: { url: string }; source?: { type: string; media_type: string; data: string } };
/** The pictures of a request, in order, as bytes. */
const picturesOf = (messages: readonly { content: unknown }[]): Buffer[] =>
  messages.flatMap(({ content }) =>
    Array.isArray(content)
      ? (content as Part[]).flatMap(({ image_url, source }) => {
          const data = source?.data ?? image_url?.url.replace(/^data:image\/png;base64,/, '');
          return data === undefined ? [] : [Buffer.from(data, 'base64')];
        })
      : [],
  );
const nameOf = (bytes: Uint8Array): string => `${createHash('sha256').update(bytes).digest('hex')}.png`;

for (const [provider, protocol] of [
  ['openai', 'gym_service'],
  ['anthropic', 'openenv'],
] as const)
  test(`${provider} over ${protocol}: the model sees each state's picture, and the run keeps each once`, async () => {
    const remote = { protocol, url: `${environmentsAt}/sokoban` };
    const { code, stderr, answer } = await evaluate(`r-${provider}`, configuration('remote', remote, provider));
    expect(code, stderr).toBe(0);
    const { episodes } = readRun(answer.folder);
    expect(episodes).toHaveLength(4);
    const stored = readdirSync(join(answer.folder, 'pictures'));
    const named = new Set(
      episodes.flatMap(({ turns, final_pictures = [] }) => [
        ...turns.flatMap(({ pictures = [] }) => pictures),
        ...final_pictures,
      ]),
    );
    expect(new Set(stored)).toEqual(named);
    for (const name of stored) {
      const bytes = readFileSync(join(answer.folder, 'pictures', name));
      expect(nameOf(bytes)).toBe(name);
      expect(await decodePicture(bytes)).toMatchObject({ width: 80, height: 80 });
    }
    // The request of a turn has one picture for each state so far, in the order of the record.
    expect(peer.answered.length).toBe(answer.evaluation.api.requests);
    const requests = peer.answered.map(messages => picturesOf(messages).map(nameOf).join(' '));
    const expected = episodes.flatMap(({ turns }) =>
      turns.map((_, i) =>
        turns
          .slice(0, i + 1)
          .flatMap(({ pictures }) => pictures!)
          .join(' '),
      ),
    );
    expect(requests.sort()).toEqual(expected.sort());
    // No bytes of pictures and no internal marks are in the record; its texts have plain marks.
    const record = readFileSync(join(answer.folder, 'episodes/val-000000.jsonl'), 'utf8');
    expect(record).not.toMatch(/iVBOR|\\u0002/);
    for (const { turns, messages } of episodes) {
      expect(turns.every(({ state }) => state.split('<image>').length === 2)).toBe(true);
      expect(messages.filter(({ content }) => content.includes('<image>'))).toHaveLength(turns.length);
    }
    const input = peer.answered.reduce((sum, messages) => sum + JSON.stringify(messages).length, 0);
    expect(answer.evaluation.api.input_tokens).toBe(input); // as the service reports them, with pictures
  });

test('summaries of earlier turns show their pictures', async () => {
  const config = configuration('sokoban', sokoban, 'openai');
  const { code, stderr, answer } = await evaluate('single', config, 'agent_proxy.context_window_mode=single_turn');
  expect(code, stderr).toBe(0);
  const { episodes } = readRun(answer.folder);
  const counts = peer.answered.map(messages => picturesOf(messages).length);
  expect(counts.sort()).toEqual(episodes.flatMap(({ turns }) => turns.map((_, i) => i + 1)).sort());
});

test('a model that reads no pictures ends the evaluation in one sentence', async () => {
  peer.mishaps = [{ status: 400, error: { message: 'peer is not a multimodal model' } }];
  const { code, answer } = await evaluate('blind', configuration('sokoban', sokoban, 'openai'));
  expect(code).not.toBe(0);
  expect(answer.error?.message).toMatch(/this model reads none, so choose a model that reads pictures/);
});
