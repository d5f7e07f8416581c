// The environment `remote`: how it handles a server that is missing, full, slow or lost, and how it reads observations.
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import alfworld from '../../../../envs/alfworld/index';
import remote, { timeoutMsOf } from '../../../../envs/remote/index';
import { encodeMultipart, decodeMultipart } from '../../../../envs/remote/multipart';
import { openEnvState } from '../../../../envs/remote/openenv-client';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listen(answer: RequestListener, converse?: (socket: WebSocket) => void): Promise<string> {
  const server = createServer(answer);
  if (converse) new WebSocketServer({ server, path: '/ws' }).on('connection', converse);
  servers.push(server);
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const parsed = (config: Record<string, unknown>) => remote.config.parse({ backoff: 0.01, ...config });
const fields = { action: { action: '{action}' }, text: null, images: 'images' };

describe('a missing server', () => {
  it('is reported before the first episode', async () => {
    const gone = await listen(() => undefined);
    servers[0].closeAllConnections();
    await new Promise(resolve => servers.splice(0)[0].close(resolve));
    await expect(remote.dependencies!(parsed({ url: gone }))).rejects.toMatchObject({
      name: 'MissingDependency',
      message: `cannot reach a server at ${gone} (ECONNREFUSED)`,
      remedy: 'start the server, for instance by ragen env serve, or correct env_config.url and env_config.protocol',
    });
  });

  it('is reported when something else answers', async () => {
    const url = await listen((_, response) => response.writeHead(404).end('no'));
    await expect(remote.dependencies!(parsed({ url }))).rejects.toThrow(
      `cannot reach a server at ${url} (the server answered /health with status 404: no)`,
    );
    const other = await listen((request, response) =>
      response.writeHead(request.url === '/health' ? 200 : 404).end('no'),
    );
    await expect(remote.dependencies!(parsed({ url: other, protocol: 'gym_service' }))).rejects.toThrow(
      `cannot use GymService with the server at ${other} (the server answered /connect with status 404: no)`,
    );
  });

  it('is not contacted without the required key', async () => {
    await expect(remote.dependencies!(parsed({ api_key_env: 'RAGEN_NO_SUCH_KEY' }))).rejects.toThrow(
      'needs a key, but the environment variable RAGEN_NO_SUCH_KEY is not set',
    );
  });
});

describe('OpenEnv', () => {
  const observation = (text: string, more = {}) =>
    JSON.stringify({ type: 'observation', data: { observation: { text }, reward: 0, done: false, ...more } });

  it('waits while the server is full, replays after a broken connection, and sends the key', async () => {
    const keys: unknown[] = [];
    const connections: string[][] = [];
    const server = await listen(
      (_, response) => response.end('{}'),
      socket => {
        const received: string[] = [];
        connections.push(received);
        if (connections.length === 1)
          return socket.send(JSON.stringify({ type: 'error', data: { message: 'full', code: 'CAPACITY_REACHED' } }));
        socket.on('message', message => {
          const { type, data } = JSON.parse((message as Buffer).toString()) as {
            type: string;
            data: { action?: string };
          };
          if (type === 'close') return;
          received.push(data.action ?? type);
          if (connections.length === 2 && data.action === 'b') return socket.terminate();
          socket.send(observation(received.join(' ')));
        });
      },
    );
    servers[0].on('upgrade', request => keys.push(request.headers['x-api-key']));
    process.env.RAGEN_REMOTE_KEY = 'secret';
    const environment = remote.create(parsed({ url: server, api_key_env: 'RAGEN_REMOTE_KEY' }));
    expect((await environment.reset({ seed: 1 })).observation).toBe('reset');
    expect((await environment.step('a')).observation).toBe('reset a');
    expect((await environment.step('b')).observation).toBe('reset a b');
    expect(connections).toEqual([[], ['reset', 'a', 'b'], ['reset', 'a', 'b']]);
    expect(keys).toEqual(['secret', 'secret', 'secret']);
    await environment.close!();
  });

  it('gives up on a slow server after its timeout', async () => {
    const url = await listen(
      (_, response) => response.end('{}'),
      () => undefined,
    );
    const environment = remote.create(parsed({ url, timeout: 0.05, retries: 1 }));
    await expect(environment.reset({ seed: 1 })).rejects.toThrow(
      `got no response from the server at ${url} after 2 requests (no answer within 0.05 s)`,
    );
  });

  it('reads observations of any form', () => {
    const read = (observation: unknown, more = {}) => openEnvState({ observation, ...more }, fields);
    expect(read({ text: 'a' }, { reward: null, done: true })).toEqual({
      ...{ text: 'a', images: [], reward: 0, done: true, truncated: false, info: {} },
    });
    expect(read({ stdout: 'x', code: 1 }).text).toBe('{"stdout":"x","code":1}');
    expect(openEnvState({ observation: { said: 'x' } }, { ...fields, text: 'said' }).text).toBe('x');
    expect(openEnvState({ observation: { said: [1] } }, { ...fields, text: 'said' }).text).toBe('[1]');
    const png = Buffer.from('\x89PNG rest', 'latin1').toString('base64');
    expect(read({ text: 'a', images: [`data:image/png;base64,${png}`, png] })).toMatchObject({
      text: 'a\n<image>\n<image>',
      images: [expect.any(Uint8Array), expect.any(Uint8Array)],
    });
    const jpeg = Buffer.of(0xff, 0xd8, 0xff, 0xe0).toString('base64');
    expect(read({ text: '<image> b', images: `data:image/jpeg;base64,${jpeg}` })).toMatchObject({
      text: '<image> b',
      images: [Uint8Array.of(0xff, 0xd8, 0xff, 0xe0)],
    });
    expect(() => read({ text: 'a', images: 'R0lGODlh' })).toThrow('image 1 is neither PNG nor JPEG');
    expect(() => read({ text: 'a' }, { reward: 'much' })).toThrow(
      'the server\'s reward is "much", which is not a number',
    );
  });

  it('reports success by the server’s flag or by the return', async () => {
    const play = async (data: object, config = {}) => {
      const url = await listen(
        (_, response) => response.end('{}'),
        socket => socket.on('message', () => socket.send(JSON.stringify({ type: 'observation', data }))),
      );
      const environment = remote.create(parsed({ url, ...config }));
      await environment.reset({ seed: 1 });
      const { info, terminated, truncated } = await environment.step('a');
      return { success: info.success, terminated, truncated };
    };
    const done = (observation: object, reward: number) => ({
      observation: { text: 'a', ...observation },
      reward,
      done: true,
    });
    expect(await play(done({}, 1))).toEqual({ success: true, terminated: true, truncated: false });
    expect((await play(done({}, 0))).success).toBe(false);
    expect((await play(done({}, 1), { success_return: 1 })).success).toBe(false);
    expect((await play(done({ info: { success: false } }, 1))).success).toBe(false);
    expect((await play(done({ info: { metrics: { traj_metrics: { success: 1 } } } }, 0))).success).toBe(true);
    expect(await play(done({ truncated: true }, 0))).toMatchObject({ terminated: false, truncated: true });
  });
});

it('has a time limit that covers all its attempts', () => {
  const timeoutMs = (config: object) => timeoutMsOf(parsed({ backoff: 2, ...config }));
  expect(timeoutMs({ retries: 0, timeout: 10, connect_timeout: 5 })).toBe(15_000);
  expect(timeoutMs({ retries: 2, timeout: 10, connect_timeout: 5 })).toBe(165_000);
});

describe('a multipart body', () => {
  it('decodes to what was encoded', async () => {
    const images = [new Uint8Array([137, 80, 78, 71, 13, 10, 13, 10]), new Uint8Array([1, 13, 10, 45, 45])];
    const data = { text: 'a\r\n--b\n世', nested: { list: [1, null, true] } };
    for (const subtype of ['form-data', 'mixed'] as const) {
      const { type, body } = encodeMultipart({ data, images }, subtype);
      expect(await decodeMultipart(type, body)).toEqual({ data, images });
    }
  });

  it('names the format of each picture', () => {
    const images = [Uint8Array.of(137, 80, 78, 71), Uint8Array.of(0xff, 0xd8, 0xff, 0xdb)];
    const text = encodeMultipart({ data: {}, images }, 'mixed').body.toString('latin1');
    expect(text.match(/filename="[^"]*"\r\nContent-Type: [^;\r]*/g)).toEqual([
      'filename="data.json"\r\nContent-Type: application/json',
      'filename="0.png"\r\nContent-Type: image/png',
      'filename="1.jpeg"\r\nContent-Type: image/jpeg',
    ]);
  });

  it('is refused when malformed', async () => {
    const text = (data: string) =>
      Buffer.from(`--b\r\nContent-Disposition: form-data; name="data"\r\n\r\n${data}\r\n--b--\r\n`);
    const type = 'multipart/form-data; boundary=b';
    expect((await decodeMultipart(type, text('{"a": 1}'))).data).toEqual({ a: 1 });
    await expect(decodeMultipart(type, text('[1]'))).rejects.toThrow('has a part "data" that is not a JSON object');
    await expect(decodeMultipart('text/plain', text('{}'))).rejects.toThrow('is text/plain, not multipart');
    await expect(decodeMultipart(type, Buffer.from('else'))).rejects.toThrow('cannot be read as multipart');
  });
});

it.each([
  ['http', remote.config.shape],
  ['alfworld', alfworld.config.shape],
])('the page %s lists the configuration’s keys', (page, shape) => {
  const text = readFileSync(join(__dirname, `../../../../docs/environments/${page}.md`), 'utf8');
  const from = text.indexOf('| `env_config` key');
  const rows = text.slice(from, text.indexOf('\n\n', from)).split('\n').slice(2);
  const named = rows.flatMap(row =>
    [...row.split('|')[1].matchAll(/`(?<key>[^`]+)`/g)].map(({ groups }) => groups!.key),
  );
  expect(named.toSorted()).toEqual(Object.keys(shape).toSorted());
});
