// Clients that request forbidden data or occupy too many resources of the server: keys and paths, clients that never
// read, requests that never end, too many connections and sessions.
import { rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { counter, workspace } from '../../../support/bundles';
import { request, startServing, type Serving } from './serving';

let serving: Serving;
const { folder, write } = workspace();
const own = (name: string, text: string) => {
  return { tag: name, env_type: name, source: write(`${name}/index.ts`, text), config: {} };
};
const counting = () => own('counter', counter());
/** Returns an observation of a million characters in each step. */
const big = "observation: 'x'.repeat(1e6)";
const large = () =>
  own(
    'large',
    counter(`return { ${big}, reward: 0, terminated: false, truncated: false, info: {} };`, {
      reset: `return { ${big} };`,
    }),
  );

beforeAll(async () => void (serving = await startServing()));
afterAll(async () => {
  await serving.stop();
  rmSync(folder, { recursive: true, force: true });
});

const portOf = (url: string) => Number(new URL(url).port);
const opened = (url: string): Promise<Socket> =>
  new Promise(resolve => {
    const socket = connect(portOf(url), '127.0.0.1');
    socket.on('error', () => undefined).once('connect', () => resolve(socket));
  });
const closed = (socket: Socket) => new Promise<void>(resolve => socket.once('close', () => resolve()));

/** Returns all bytes that the server sends in response to these bytes until it closes the connection. */
async function answers(url: string, bytes: string): Promise<string> {
  const socket = await opened(url);
  let text = '';
  socket.setEncoding('latin1').on('data', (more: string) => (text += more));
  socket.write(bytes, 'latin1');
  await closed(socket);
  return text;
}
const head = (first: string, ...headers: string[]) =>
  [first, 'Host: 127.0.0.1', 'Connection: close', ...headers, '', ''].join('\r\n');
const statusOf = async (url: string, bytes: string) => (await answers(url, bytes)).slice(9, 12);
const upgrade = (path: string, ...headers: string[]) =>
  [
    `GET ${path} HTTP/1.1`,
    ...['Host: 127.0.0.1', 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'],
    ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', ...headers, '', ''],
  ].join('\r\n');

describe('the API key', () => {
  it('is required on every path of a session named health', async () => {
    const { url } = await serving.serve([counting()], { apiKey: 'secret' });
    const key = { headers: { 'x-api-key': 'secret' } };
    const made = { ids2configs: { health: { env_name: 'counter', env_config: {} } } };
    expect((await request(url, '/vagen/environments', made, key)).status).toBe(200);
    expect((await request(url, '/vagen/reset/health', { seed: 1 }, key)).status).toBe(200);
    for (const [method, path] of [
      ['POST', '/vagen/reset/health'],
      ['POST', '/vagen/step/health'],
      ['GET', '/vagen/reward/health'],
      ['GET', '/vagen/system_prompt/health'],
      ['DELETE', '/vagen/close/health'],
      ['POST', '/counter/vagen/reset/health'],
      ['POST', '/vagen/reset/health/'],
      ['POST', '/vagen/reset//health'],
      ['POST', '/vagen/x/../reset/health'],
    ])
      expect([path, await statusOf(url, head(`${method} ${path} HTTP/1.1`, 'Content-Length: 0'))]).toEqual([
        path,
        '401',
      ]);
    expect((await request(url, '/vagen/reward/health', undefined, key)).status).toBe(200); // the session still exists
  });

  it.each([
    ['GET /health', '200'],
    ['GET /health/', '200'],
    ['GET /health?x=/metadata', '200'],
    ['GET /counter/health', '200'],
    ['GET /cou%6eter/health', '200'],
    ['GET /vagen/health', '200'],
    ['GET /x/../health', '200'],
    ['GET /metadata/%2e%2e/health', '200'],
    ['HEAD /health', '401'],
    ['OPTIONS /health', '401'],
    ['POST /health', '401'],
    ['TRACE /health', '401'],
    ['GET /HEALTH', '401'],
    ['GET /%68ealth', '401'],
    ['GET //health', '401'],
    ['GET /health%2f', '401'],
    ['GET /health;x', '401'],
    ['GET /health/../metadata', '401'],
    ['GET /health%00', '401'],
    ['GET /metadata?/health', '401'],
    ['GET /metadata#/health', '401'],
    ['GET /metadata%23/health', '401'],
    ['GET /nothing/health', '401'],
    ['GET /metadata\\health', '401'],
    ['GET http://127.0.0.1/health', '401'],
    ['OPTIONS *', '401'],
  ])('%s is answered with %s', async (line, status) => {
    const { url } = await serving.serve([counting()], { apiKey: 'secret' });
    expect(await statusOf(url, head(`${line} HTTP/1.1`))).toBe(status);
  });

  it('is required for WebSockets, at any path and with any subprotocol', async () => {
    const { url } = await serving.serve([counting()], { apiKey: 'secret' });
    for (const path of ['/ws', '/health', '/vagen/health', '/counter/health', '/ws/../health', '/ws/health'])
      for (const more of [[], ['Sec-WebSocket-Protocol: secret']])
        expect([path, await statusOf(url, upgrade(path, ...more))]).toEqual([path, '401']);
  });

  it('is required for each request of a connection', async () => {
    const { url } = await serving.serve([counting()], { apiKey: 'secret' });
    const line = (path: string, ...headers: string[]) =>
      [`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...headers, '', ''].join('\r\n');
    const text = await answers(
      url,
      line('/health') +
        line('/metadata') +
        line('/metadata', 'X-Api-Key: secret') +
        line('/metadata') +
        head('GET /health HTTP/1.1'),
    );
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([200, 401, 200, 401, 200].map(status => `HTTP/1.1 ${status}`));
  });

  it('cannot be replaced by a page without an Origin header', async () => {
    const { url } = await serving.serve([counting()]);
    expect(await statusOf(url, head('GET /metadata HTTP/1.1', 'Sec-Fetch-Site: cross-site'))).toBe('403');
    expect(await statusOf(url, upgrade('/ws', 'Sec-Fetch-Site: cross-site'))).toBe('403');
  });
});

describe('a client that never reads', () => {
  it(
    'a WebSocket whose answer stays unread is not read any further, and is disconnected',
    { timeout: 60_000 },
    async () => {
      const server = await serving.serve([large()], { limits: { sendMs: 1000 } });
      const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`);
      socket.on('error', () => undefined);
      await new Promise(resolve => socket.once('open', resolve));
      let steps = 0;
      const { pool } = serving;
      const step = pool.step.bind(pool);
      pool.step = (...args) => (steps++, step(...args));
      const gone = new Promise(resolve => socket.once('close', resolve));
      socket.send('{"type":"reset","data":{}}');
      await new Promise(resolve => socket.once('message', resolve));
      socket.pause();
      for (let i = 0; i < 1000; i++) socket.send('{"type":"step","data":{"action":"Add"}}');
      await expect.poll(() => server.connections, { timeout: 30_000 }).toBe(0);
      pool.step = step;
      // The operating system's buffers accept a few MiB; the server never reads the other requests of the thousand.
      expect(steps).toBeLessThan(60);
      socket.resume();
      await gone;
      await expect.poll(() => server.sessions.list().length).toBe(0);
    },
  );

  it('a slow reader is still served', { timeout: 60_000 }, async () => {
    const { url } = await serving.serve([large()], { limits: { sendMs: 2000 } });
    const socket = await opened(url);
    const body = '{}';
    socket.write(
      ['POST /reset HTTP/1.1', 'Host: 127.0.0.1', 'Connection: close', `Content-Length: ${body.length}`, '', body].join(
        '\r\n',
      ),
    );
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      socket.pause();
      setImmediate(() => socket.resume());
    });
    await closed(socket);
    expect(bytes).toBeGreaterThan(1e6);
  });

  it(
    'an HTTP connection has at most one pending answer, however many requests it sends, and is disconnected',
    { timeout: 60_000 },
    async () => {
      const server = await serving.serve([large()], { limits: { sendMs: 1000 } });
      await request(server.url, '/reset', {});
      await expect.poll(() => server.connections, { timeout: 10_000 }).toBe(0);
      const socket = await opened(server.url);
      socket.pause();
      const body = '{"action":{"action":"Add"}}';
      const one = ['POST /step HTTP/1.1', 'Host: 127.0.0.1', `Content-Length: ${body.length}`, '', body].join('\r\n');
      for (let i = 0; i < 30; i++) socket.write(one);
      await expect.poll(() => server.connections, { timeout: 30_000 }).toBe(0);
      const [session] = server.sessions.list();
      expect(session.steps).toBeGreaterThan(0);
      expect(session.steps).toBeLessThan(30);
    },
  );

  it('a connection with too many queued requests is disconnected', async () => {
    const server = await serving.serve([counting()]);
    const socket = await opened(server.url);
    const gone = closed(socket);
    socket.write(head('POST /reset HTTP/1.1', 'Content-Length: 2').replace('close', 'keep-alive') + '{}');
    socket.write('GET /state HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(1000));
    await gone;
    expect((await request(server.url, '/health')).status).toBe(200);
  });

  it('a client that disconnects during a refusal does not harm the server', async () => {
    const server = await serving.serve([counting()], { apiKey: 'secret' });
    for (let i = 0; i < 20; i++) {
      const socket = await opened(server.url);
      socket.write(upgrade('/ws'));
      socket.resetAndDestroy();
    }
    expect((await request(server.url, '/health')).status).toBe(200);
  });
});

describe('an endless client', () => {
  it('is disconnected when its headers, its body or the rest of a refused body do not arrive', async () => {
    const server = await serving.serve([counting()], {
      apiKey: 'secret',
      limits: { headersMs: 200, requestMs: 400 },
    });
    const sockets = await Promise.all([...Array(40).keys()].map(() => opened(server.url)));
    const gone = Promise.all(sockets.map(socket => closed(socket.resume())));
    const drips = [
      '',
      'GET /hea',
      'POST /reset HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: secret\r\nContent-Length: 1000\r\n\r\n{',
      'POST /reset HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n',
      'POST /reset HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{',
    ];
    sockets.forEach((socket, i) => socket.write(drips[i % drips.length]));
    const timer = setInterval(() => sockets.forEach(socket => socket.write('x')), 50); // one byte at a time
    await gone;
    clearInterval(timer);
    await expect.poll(() => server.connections).toBe(0);
  });

  it('is disconnected after its WebSocket is refused, although it does not close its side', async () => {
    const server = await serving.serve([counting()], { apiKey: 'secret' });
    const socket = connect({ port: portOf(server.url), host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined).resume();
    socket.write(upgrade('/ws'));
    await new Promise(resolve => socket.once('end', resolve));
    await expect.poll(() => server.connections).toBe(0);
    socket.destroy();
  });

  it('cannot send endless headers', async () => {
    const { url } = await serving.serve([counting()]);
    expect(await statusOf(url, head('GET /health HTTP/1.1', `X-Much: ${'x'.repeat(10_000)}`))).toBe('431');
  });
});

describe('the number of', () => {
  it('connections is limited, per client and in total', async () => {
    for (const limits of [
      { maxClientConnections: 3, maxConnections: 10 },
      { maxClientConnections: 10, maxConnections: 3 },
    ]) {
      const server = await serving.serve([counting()], { limits });
      const sockets = await Promise.all([0, 1, 2].map(() => opened(server.url)));
      await expect.poll(() => server.connections).toBe(3);
      const more = await opened(server.url);
      await closed(more.resume());
      expect(server.connections).toBe(3);
      sockets[0].destroy();
      await expect.poll(() => server.connections).toBe(2);
      expect((await request(server.url, '/health')).status).toBe(200);
      for (const socket of sockets) socket.destroy();
    }
  });

  it('sessions is limited per client', async () => {
    const server = await serving.serve([counting()], { maxSessions: 4, maxClientSessions: 2 });
    for (const episode_id of ['a', 'b']) expect((await request(server.url, '/reset', { episode_id })).status).toBe(200);
    const full = await request(server.url, '/reset', { episode_id: 'c' });
    expect(full.status).toBe(503);
    expect(full.json.detail).toBe(
      'Server at capacity: 2/2 sessions of your address active. Try again later or close sessions.',
    );
    await server.sessions.create({ client: '10.0.0.2' });
    const made = { ids2configs: { x: { env_name: 'counter', env_config: {} } } };
    expect((await request(server.url, '/vagen/environments', made)).status).toBe(503);
    await server.sessions.list()[0].close();
    expect((await request(server.url, '/reset', { episode_id: 'c' })).status).toBe(200);
  });
});
