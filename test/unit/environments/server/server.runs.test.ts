// Server behaviour that does not depend on the protocol: keys, capacity, idle sessions, limits, errors, requests from
// web pages, and shutdown.
import { existsSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { isLoopback } from '../../../../extension/environments/server/http-router';
import { startEnvironmentServer } from '../../../../extension/environments/server/http-server';
import { counter, workspace } from '../../../support/bundles';
import { builtIn, request, startServing, type Serving } from './serving';

let serving: Serving;
const { folder, write } = workspace();
const own = (name: string, text: string) => {
  return { tag: name, env_type: name, source: write(`${name}/index.ts`, text), config: {} };
};
const counting = () => own('counter', counter());

beforeAll(async () => void (serving = await startServing()));
afterAll(async () => {
  await serving.stop();
  rmSync(folder, { recursive: true, force: true });
});

const opened = (url: string, headers?: Record<string, string>) =>
  new Promise<{ socket: WebSocket; status: number; first: Promise<Record<string, unknown>> }>(resolve => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`, { headers });
    const first = received(socket);
    socket.on('open', () => resolve({ socket, status: 101, first }));
    socket.on('unexpected-response', (_, response) => resolve({ socket, status: response.statusCode!, first }));
    socket.on('error', () => undefined);
  });
const received = (socket: WebSocket) =>
  new Promise<Record<string, unknown>>(resolve =>
    socket.once('message', text => resolve(JSON.parse((text as Buffer).toString()) as Record<string, unknown>)),
  );

describe('the API key', () => {
  it('is required for all paths except health, and accepted in three parts of a request', async () => {
    const { url } = await serving.serve([counting()], { apiKey: 'secret' });
    expect((await request(url, '/health')).status).toBe(200);
    for (const path of ['/metadata', '/schema', '/sessions', '/state', '/openapi.json', '/counter/schema', '/nothing'])
      expect(await request(url, path)).toMatchObject({ status: 401, json: { detail: 'unauthorized' } });
    for (const path of ['/reset', '/step', '/connect', '/call', '/vagen/environments'])
      expect((await request(url, path, {})).status).toBe(401);
    const metadata = (path: string, headers = {}) => request(url, path, undefined, { headers });
    expect((await metadata('/metadata', { 'x-api-key': 'secre' })).status).toBe(401);
    expect((await metadata('/metadata', { 'x-api-key': 'secret' })).status).toBe(200);
    expect((await metadata('/metadata', { authorization: 'Bearer secret' })).status).toBe(200);
    expect((await metadata('/metadata?token=secret')).status).toBe(200);
    expect((await opened(url)).status).toBe(401);
    const { socket, status } = await opened(url, { 'x-api-key': 'secret' });
    expect(status).toBe(101);
    socket.terminate();
  });

  it('is required if other machines can reach the address', async () => {
    expect(['127.0.0.1', 'localhost', '::1', '127.8.0.1'].every(isLoopback)).toBe(true);
    expect(['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.org', 'host'].some(isLoopback)).toBe(false);
    await expect(serving.serve([counting()], { host: '0.0.0.0' })).rejects.toThrow(
      /^env serve: --host 0\.0\.0\.0 can be reached by other machines: set --api-key-env to the name of .*, or use --host 127\.0\.0\.1$/,
    );
    const { url } = await serving.serve([counting()], { host: '0.0.0.0', apiKey: 'secret' });
    expect((await request(url.replace('0.0.0.0', '127.0.0.1'), '/health')).status).toBe(200);
  });

  it('does not open the server to web pages', async () => {
    const { url } = await serving.serve([counting()]);
    const page = { origin: 'http://example.org' };
    expect((await request(url, '/reset', {}, { headers: page })).status).toBe(403);
    expect((await opened(url, page)).status).toBe(403);
    // DNS rebinding: a GET from a page whose host name resolves to this address has no Origin header.
    const rebound = (host: string, path = '/state') =>
      new Promise<number>(resolve => {
        const { port } = new URL(url);
        get({ host: '127.0.0.1', port, path, headers: { host } }, response => resolve(response.resume().statusCode!));
      });
    for (const host of [
      'evil.example',
      `evil.example:${new URL(url).port}`,
      '127.0.0.1.evil.example',
      'x@evil.example',
    ])
      expect([host, await rebound(host)]).toEqual([host, 403]);
    for (const host of ['localhost', `127.0.0.1:${new URL(url).port}`, '[::1]:80'])
      expect(await rebound(host)).toBe(404);
    const guarded = await serving.serve([counting()], { apiKey: 'secret' }); // a proxy may give it another name
    const headers = { host: 'envs.example', 'x-api-key': 'secret' };
    const status = await new Promise(resolve =>
      get(`${guarded.url}/schema`, { headers }, ({ statusCode }) => resolve(statusCode)),
    );
    expect(status).toBe(200);
  });
});

describe('capacity', () => {
  it('is full with status 503 and a retry time, until a session ends', async () => {
    const { url, sessions } = await serving.serve([counting()], { maxSessions: 2 });
    for (const episode_id of ['a', 'b']) expect((await request(url, '/reset', { episode_id })).status).toBe(200);
    const full = await request(url, '/reset', { episode_id: 'c' });
    expect(full.status).toBe(503);
    expect(full.headers.get('retry-after')).toBe('5');
    expect(full.json.detail).toMatch(/^Server at capacity: 2\/2 sessions active/);
    expect((await request(url, '/reset', { episode_id: 'a' })).status).toBe(200); // a separate session
    const { first } = await opened(url);
    expect(await first).toMatchObject({ type: 'error', data: { code: 'CAPACITY_REACHED', max_sessions: 2 } });
    await sessions.list()[0].close();
    expect((await request(url, '/reset', { episode_id: 'c' })).status).toBe(200);
  });

  it('is not exceeded by concurrent requests', async () => {
    const { url } = await serving.serve([counting()], { maxSessions: 3 });
    const all = await Promise.all([...Array(8).keys()].map(i => request(url, '/reset', { episode_id: `${i}` })));
    expect(all.map(({ status }) => status).sort()).toEqual([200, 200, 200, 503, 503, 503, 503, 503]);
  });

  it('is released by idle sessions', async () => {
    let now = 0;
    const { url, sessions } = await serving.serve([counting()], { sessionTimeoutMs: 1000, now: () => now });
    const { socket } = await opened(url);
    socket.send('{"type":"reset","data":{}}');
    await received(socket);
    await request(url, '/reset', { episode_id: 'a' });
    now = 900;
    await request(url, '/step', { episode_id: 'a', action: { action: 'Add' } });
    now = 1100;
    const closed = new Promise(resolve => socket.once('close', resolve));
    await sessions.closeIdle();
    expect(sessions.list()).toHaveLength(1); // only the session that was used
    expect(await closed).toBe(1000);
    now = 2000;
    await sessions.closeIdle();
    expect((await request(url, '/state?episode_id=a')).status).toBe(404);
  });

  it('is released by a broken connection', async () => {
    const { url, sessions } = await serving.serve([counting()]);
    const { socket } = await opened(url);
    socket.send('{"type":"reset","data":{}}');
    await received(socket);
    socket.terminate();
    await expect.poll(() => sessions.list().length).toBe(0);
  });
});

describe('client errors', () => {
  it('a client that disconnects while it sends a body causes no server error', async () => {
    const { url, errors } = await serving.serve([counting()]);
    const socket = connectTcp(Number(new URL(url).port), '127.0.0.1');
    socket.end('POST /reset HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"seed"');
    await new Promise(resolve => socket.resume().once('close', resolve));
    expect((await request(url, '/health')).status).toBe(200);
    expect(errors).toEqual([]);
  });

  it('bodies that are too large, encoded, or not JSON are refused', async () => {
    const { url } = await serving.serve([counting()], { maxBodyBytes: 1000 });
    const big = await request(url, '/reset', { episode_id: 'x'.repeat(2000) });
    expect(big).toMatchObject({
      status: 413,
      json: { detail: 'the body is larger than 1000 bytes: send a smaller body' },
    });
    const chunked = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 4; i++) controller.enqueue(new TextEncoder().encode('x'.repeat(500)));
        controller.close();
      },
    });
    const streamed = await fetch(`${url}/reset`, { method: 'POST', body: chunked, duplex: 'half' } as RequestInit);
    expect(streamed.status).toBe(413);
    expect((await request(url, '/reset', {}, { headers: { 'content-encoding': 'gzip' } })).status).toBe(415);
    expect((await request(url, '/reset', undefined, { method: 'POST', body: '{' })).status).toBe(400);
    const { socket } = await opened(url);
    const closed = new Promise(resolve => socket.once('close', resolve));
    socket.send('x'.repeat(2000));
    expect(await closed).toBe(1009);
  });

  it('unknown paths and methods are refused', async () => {
    const { url } = await serving.serve([counting()]);
    expect((await request(url, '/else')).json.detail).toMatch(/^there is no \/else: use a path of/);
    expect(await request(url, '/reset')).toMatchObject({ status: 405, json: { detail: '/reset takes POST, not GET' } });
    expect((await request(url, '/%ff/reset', {})).status).toBe(404);
    expect((await request(url, '/vagen/else')).status).toBe(404);
  });

  it('client configurations are refused, or accepted if allowed', async () => {
    const strict = await serving.serve([builtIn('frozen_lake', { size: 5 })]);
    const config = (env_config: unknown, id = 'a') => ({
      ids2configs: { [id]: { env_name: 'frozen_lake', env_config } },
    });
    expect((await request(strict.url, '/vagen/environments', config({ size: 5 }))).status).toBe(200); // the same value
    expect(await request(strict.url, '/vagen/environments', config({ size: 6 }, 'b'))).toMatchObject({
      status: 403,
      json: { error: expect.stringMatching(/^env_config\.size differs from this server's value: .* --allow-config$/) },
    });
    const free = await serving.serve([builtIn('frozen_lake', { size: 5 })], { allowConfig: true });
    expect((await request(free.url, '/vagen/environments', config({ size: 6 }))).status).toBe(200);
    const { results } = (await request(free.url, '/vagen/batch/reset', { ids2seeds: { a: 1 } })).json as {
      results: Record<string, [{ obs_str: string }]>;
    };
    expect(results.a[0].obs_str.split('\n')).toHaveLength(6);
    const refused = await request(free.url, '/vagen/environments', config({ size: 'big' }, 'b'));
    expect(refused.status).toBe(422);
    expect(refused.json.error).toMatch(/env_config\.size, which is "big"/);
    expect(refused.json.error).not.toMatch(/\(\//); // no paths of this machine
  });
});

describe('environments that fail', () => {
  it('end only their own episode, with a message that contains no path', async () => {
    const failing = own('failing', counter("if (action === 2) throw new Error('bad luck');"));
    const { url, errors } = await serving.serve([failing, counting()]);
    await request(url, '/reset', { seed: 4 });
    const failed = await request(url, '/step', { action: { action: 'Bad' } });
    expect(failed.status).toBe(500);
    expect(failed.json.detail).toMatch(
      /^environment failing \(index\.ts:\d+\) threw "bad luck" in step\(Bad\) at seed 4/,
    );
    expect((await request(url, '/step', { action: { action: 'Add' } })).status).toBe(409);
    expect((await request(url, '/reset', { seed: 4 })).status).toBe(200);
    expect((await request(url, '/counter/reset', {})).status).toBe(200);
    expect(errors).toHaveLength(1);
  });

  it('that do not load are reported', async () => {
    const { url } = await serving.serve([own('broken', 'export default 1;')]);
    expect(await request(url, '/reset', {})).toMatchObject({ status: 500 });
    expect((await request(url, '/health')).status).toBe(200);
  });
});

describe('shutdown', () => {
  let done: (() => void) | undefined;
  afterEach(() => {
    vi.useRealTimers();
    done?.();
  });

  it('lets running requests finish and closes all sessions', async () => {
    const hold = join(folder, 'hold');
    const slow = own(
      'slow',
      counter(
        `writeFileSync(${JSON.stringify(hold)}, ''); return new Promise(r => { const timer = setInterval(() => { if (existsSync(${JSON.stringify(hold)})) return; clearInterval(timer); r({ observation: "late", reward: 1, terminated: false, truncated: false, info: {} }); }, 5); });`,
        { top: `import { existsSync, writeFileSync } from 'node:fs';` },
      ),
    );
    const server = await serving.serve([slow]);
    const { url } = server;
    await request(url, '/reset', {});
    const { socket } = await opened(url);
    const closed = new Promise(resolve => socket.once('close', resolve));
    const step = request(url, '/step', { action: { action: 'Add' } });
    await expect.poll(() => existsSync(hold), { timeout: 20_000 }).toBe(true); // the step has begun
    const ended = server.close();
    expect(server.close()).toBe(ended);
    rmSync(hold);
    expect((await step).json).toMatchObject({ observation: { text: 'late' }, reward: 1 });
    await ended;
    expect(await closed).toBe(1000);
    await expect(request(url, '/health')).rejects.toThrow();
  });

  it('closes a connection that stays open without a request, at its time limit', async () => {
    const server = await serving.serve([counting()]);
    const idle = connectTcp(Number(new URL(server.url).port), '127.0.0.1');
    done = () => idle.destroy();
    await new Promise(resolve => idle.once('connect', resolve));
    const cut = new Promise(resolve => idle.once('close', resolve));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const ended = server.close();
    vi.advanceTimersByTime(5000);
    await Promise.all([ended, cut]);
  });

  it('reports an address in use', async () => {
    const { url } = await serving.serve([counting()]);
    const port = Number(new URL(url).port);
    await expect(
      startEnvironmentServer({
        pool: serving.pool,
        offered: [counting()],
        host: '127.0.0.1',
        port,
        apiKey: undefined,
        allowConfig: false,
        maxSessions: 1,
        sessionTimeoutMs: 1000,
        maxBodyBytes: 1000,
        onError: () => undefined,
      }),
    ).rejects.toThrow(`env serve: 127.0.0.1:${port} is taken: choose another address with --host and --port`);
  });
});
