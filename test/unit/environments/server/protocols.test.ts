// Protocol details that the recorded exchanges do not contain: OpenEnv's plain HTTP, GymService's errors, and VAGEN's
// batch server.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeMultipart, encodeMultipart } from '../../../../envs/remote/multipart';
import { actionMeant } from '../../../../extension/environments/server/sessions';
import { builtIn, request, startServing, type Serving } from './serving';

let serving: Serving;
let url: string;
beforeAll(async () => {
  serving = await startServing();
  const lake = { success_rate: 1 };
  ({ url } = await serving.serve(
    [
      builtIn('frozen_lake', lake),
      builtIn('sokoban'),
      builtIn('countdown'),
      builtIn('sokoban', { render_mode: 'rgb_array', dim_room: [5, 5] }, 'pictures'),
    ],
    { maxSessions: 20 },
  ));
});
afterAll(() => serving.stop());

type Json = Record<string, unknown>;

it('an environment with roles is refused, because a session has one player', async () => {
  const { sessions } = await serving.serve([builtIn('nim')]);
  await expect(sessions.environment('nim')).rejects.toMatchObject({
    status: 500,
    message: 'environment nim has roles, and a session has one player: serve an environment without roles',
  });
});

describe('OpenEnv over plain HTTP', () => {
  it('separates episodes by their ids; requests without an id share one episode', async () => {
    const first = await request(url, '/reset', { seed: 5, episode_id: 'a' });
    await request(url, '/reset', { seed: 6, episode_id: 'b' });
    expect(first.json).toMatchObject({ reward: null, done: false, observation: { terminated: false, info: {} } });
    const moved = await request(url, '/step', {
      action: { action: 'Right' },
      episode_id: 'a',
      timeout_s: 3,
      request_id: 'r',
    });
    expect(moved.json).toMatchObject({ done: expect.any(Boolean), reward: expect.any(Number) });
    expect((await request(url, '/state?episode_id=a')).json).toEqual({ episode_id: 'a', step_count: 1, seed: 5 });
    expect((await request(url, '/state?episode_id=b')).json).toEqual({ episode_id: 'b', step_count: 0, seed: 6 });
    expect((await request(url, '/state')).status).toBe(404);
    expect((await request(url, '/step', { action: { action: 'Up' } })).json.detail).toMatch(/POST \/reset first$/);
    expect((await request(url, '/reset', undefined, { method: 'POST' })).status).toBe(200); // a body is optional
    const { seed } = (await request(url, '/state')).json;
    expect(Number.isInteger(seed)).toBe(true); // drawn and returned, so that the episode is reproducible
  });

  it('has an address for each environment', async () => {
    expect((await request(url, '/sokoban/metadata')).json.name).toBe('sokoban');
    await request(url, '/sokoban/reset', { seed: 1, episode_id: 'x' });
    await request(url, '/frozen_lake/reset', { seed: 1, episode_id: 'x' });
    expect((await request(url, '/sokoban/step', { action: { action: 'Up' }, episode_id: 'x' })).json.reward).toBe(-0.1);
    const schema = (await request(url, '/sokoban/schema')).json as { action: Json };
    expect(schema.action.title).toBe('EnvironmentAction'); // verifiers takes `Action` for an environment of tools
    expect(schema.action).toMatchObject({
      properties: { action: { enum: ['Up', 'Down', 'Left', 'Right'], 'x-ids': [1, 2, 3, 4] } },
    });
    const texts = (await request(url, '/countdown/schema')).json as { action: Json };
    expect(texts.action).toMatchObject({ properties: { action: { type: 'string' } } });
  });

  it('reports the error in a request', async () => {
    await request(url, '/reset', { seed: 5, episode_id: 'c' });
    const detail = async (path: string, body: unknown) => (await request(url, path, body)).json.detail;
    expect(await detail('/step', { action: { action: 'Fly' }, episode_id: 'c' })).toBe(
      'action is "Fly": use one of Left, Down, Right, Up',
    );
    await request(url, '/countdown/reset', { seed: 5, episode_id: 'c' });
    const texts = { action: { action: 2.5 }, episode_id: 'c' };
    expect((await request(url, '/countdown/step', texts)).json).toMatchObject({ reward: 0, done: true });
    expect(await detail('/reset', { seed: -1 })).toMatch(/^body\.seed: /);
    expect(await detail('/step', { action: 'Up' })).toMatch(/^body\.action: /);
    expect(await detail('/step', [])).toMatch(/^body: /);
  });
});

it('an action is recognized by its name in upper or lower case, or by its id', () => {
  const names = { 0: 'Up', 7: 'Down', 9: '0' };
  expect(['up', ' DOWN ', 7, '7', 0].map(given => actionMeant(given, names))).toEqual([0, 7, 7, 7, 0]);
  expect(actionMeant('0', names)).toBe(9); // a name takes precedence over an id
  expect(['left', 1, '', '__proto__', 'constructor'].map(given => actionMeant(given, names))).toEqual(
    Array(5).fill(undefined),
  );
  expect(['any text', 7, 2.5, true].map(given => actionMeant(given, undefined))).toEqual([
    'any text',
    '7',
    '2.5',
    'true',
  ]);
});

describe('GymService', () => {
  const post = async (path: string, data: Json, type?: string) => {
    const message = encodeMultipart({ data, images: [] }, 'form-data');
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': type ?? message.type },
      body: new Uint8Array(message.body),
    });
    const body = new Uint8Array(await response.arrayBuffer());
    if (!response.ok)
      return { status: response.status, ...(JSON.parse(Buffer.from(body).toString()) as { detail: string }) };
    const { data: answered, images } = await decodeMultipart(response.headers.get('content-type')!, body);
    return { status: 200, data: answered, images };
  };

  it('takes the environment from the path or the configuration', async () => {
    for (const [path, env_config] of [
      ['/countdown/connect', {}],
      ['/connect', { env_type: 'countdown' }],
      ['/connect', { env_name: 'countdown' }],
    ] as const) {
      const begun = await post(path, { env_config, seed: 1 });
      expect(begun.data).toMatchObject({ obs: expect.stringMatching(/^Target: /), info: {} });
      const { session_id } = begun.data!;
      const { data } = await post('/call', {
        session_id,
        method: 'step',
        params: { action_str: '<answer>1 + 1</answer>' },
      });
      expect(data).toMatchObject({ reward: expect.any(Number), done: true });
      expect((await post('/call', { session_id, method: 'close' })).data).toEqual({ closed: true });
    }
    expect(await post('/connect', { env_config: { env_type: 'else' } })).toMatchObject({ status: 404 });
  });

  it('plays all actions of an answer and returns the sum of their rewards', async () => {
    const { data } = await post('/sokoban/connect', { seed: 3 });
    const { session_id } = data!;
    const step = (action_str: string) => post('/call', { session_id, method: 'step', params: { action_str } });
    const three = await step('<think>a || b</think><answer>Up || left||Fly|| 2</answer>');
    expect(three.data!.reward).toBeCloseTo(-0.3);
    expect((await step('Down')).data!.reward).toBe(-0.1);
    expect((await step('Up || Down')).data!.info).toEqual({ action_is_valid: false, action_is_effective: false });
    const stats = (await request(url, '/sessions')).json as { sessions: Json[] };
    expect(stats).toMatchObject({ num_sessions: expect.any(Number), max_sessions: 20, session_timeout: 60 });
    expect(stats.sessions.find(({ session_id: id }) => id === session_id)).toMatchObject({
      idle_seconds: expect.any(Number),
    });
  });

  it('reports which part of a request is wrong', async () => {
    expect(await post('/call', { method: 'step' })).toEqual({ status: 400, detail: 'session_id required' });
    expect(await post('/call', { session_id: 'x' })).toEqual({ status: 400, detail: 'method required' });
    expect(await post('/call', { session_id: 'x', method: 'step' })).toEqual({
      status: 404,
      detail: 'Session x not found',
    });
    const { data } = await post('/connect', {});
    const { session_id } = data!;
    expect(await post('/call', { session_id, method: 'fly' })).toEqual({ status: 400, detail: 'Unknown method: fly' });
    expect(await post('/call', { session_id, method: 'step' })).toMatchObject({ status: 409 });
    expect(await post('/call', { session_id, method: 'reset', params: { seed: 'one' } })).toMatchObject({
      status: 400,
    });
    expect(await post('/connect', {}, 'application/json')).toMatchObject({ status: 400 });
    expect(await post('/connect', {}, 'multipart/form-data; boundary=other')).toMatchObject({ status: 400 });
  });
});

describe('VAGEN’s batch server', () => {
  const post = (path: string, body: unknown) => request(url, `/vagen${path}`, body);

  it('creates, resets, steps, scores, describes and closes environments by the client’s ids', async () => {
    const ids2configs = { one: { env_name: 'sokoban' }, two: { env_name: 'pictures', env_config: {} } };
    expect((await post('/environments', { ids2configs })).json).toEqual({ success: true });
    const { results: begun } = (await post('/batch/reset', { ids2seeds: { one: 3, two: 4 } })).json as {
      results: Record<string, [{ obs_str: string; multi_modal_data?: Json }, Json]>;
    };
    expect(begun.one[0].obs_str.split('\n')).toHaveLength(6);
    const [picture] = begun.two[0].multi_modal_data!['<image>'] as { __pil_image__: string }[];
    expect(Buffer.from(picture.__pil_image__, 'base64').subarray(1, 4).toString()).toBe('PNG');
    const ids2actions = { one: '<answer>Up||Down</answer>', two: '<answer>Left</answer>' };
    const { results } = (await post('/batch/step', { ids2actions })).json as { results: Record<string, unknown[]> };
    expect(results.one).toEqual([{ obs_str: expect.any(String) }, -0.2, false, expect.any(Object)]);
    await post('/step/one', { action: '<answer>Up</answer>' });
    const { rewards } = (await post('/batch/reward', { env_ids: ['one', 'two'] })).json as {
      rewards: Record<string, number>;
    };
    expect(rewards.one).toBeCloseTo(-0.3);
    expect(rewards.two).toBe(results.two[1]);
    expect((await post('/batch/system_prompt', { env_ids: ['one'] })).json).toEqual({
      system_prompts: { one: expect.stringMatching(/Sokoban[\s\S]*Available actions:\nUp, Down, Left, Right$/) },
    });
    expect((await request(url, '/vagen/health')).json).toMatchObject({
      status: 'ok',
      registered_envs: ['frozen_lake', 'sokoban', 'countdown', 'pictures'],
      active_services: expect.arrayContaining(['sokoban']),
    });
    expect((await post('/batch/close', { env_ids: ['two'] })).json).toEqual({ status: 'success' });
    expect(await post('/batch/reset', { ids2seeds: { one: 3, two: 4 } })).toMatchObject({
      status: 404,
      json: { error: 'Environment two not found' },
    });
    // Requests run one at a time; a refused batch has no effect.
    expect((await request(url, '/vagen/reward/one')).json.reward).toBeCloseTo(-0.3);
    expect((await post('/reset/one', { seed: 3 })).json).toMatchObject({ observation: begun.one[0], info: {} });
    expect((await request(url, '/vagen/system_prompt/one')).json.system_prompt).toMatch(/Sokoban/);
    const close = await request(url, '/vagen/close/one', undefined, { method: 'DELETE' });
    expect(close.json).toEqual({ status: 'success' });
    expect((await request(url, '/vagen/reward/one')).status).toBe(404);
  });

  it('creates either all environments of a request or none', async () => {
    const before = ((await request(url, '/sessions')).json as { num_sessions: number }).num_sessions;
    const ids2configs = { p: { env_name: 'sokoban' }, q: { env_name: 'else' } };
    expect(await post('/environments', { ids2configs })).toMatchObject({ status: 404 });
    expect((await request(url, '/sessions')).json.num_sessions).toBe(before);
  });

  it('names missing fields and environments', async () => {
    const error = async (path: string, body: unknown) => (await post(path, body)).json.error;
    expect(await error('/environments', {})).toBe('Missing required parameter: ids2configs');
    expect(await error('/environments', { ids2configs: { a: {} } })).toBe(
      "Config for environment a is missing 'env_name'",
    );
    expect(await error('/batch/step', { ids2actions: { a: 1 } })).toMatch(/^ids2actions: /);
    expect(await error('/batch/close', [])).toBe('Missing required parameter: env_ids');
  });
});
