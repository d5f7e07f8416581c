// Fuzz targets for HTTP: requests to the environment server, including multipart bodies and WebSocket messages, and
// responses of the Hugging Face Hub.
import { createConnection } from 'node:net';
import { join, resolve, sep } from 'node:path';
import { encodeMultipart } from '../../envs/remote/multipart';
import { readMessage } from '../../extension/environments/server/gym-service';
import { startEnvironmentServer } from '../../extension/environments/server/http-server';
import type { EnvironmentServer } from '../../extension/environments/server/http-server';
import type { EnvironmentSource } from '../../extension/environments/server/sessions';
import { HubClient } from '../../extension/hub/hub-client';
import { answering, responseOf } from './fuzz-answers';
import { Broken, Escaped, holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';

/** Environments that reply immediately, because only the server is tested. */
const pool: EnvironmentSource = {
  load: specs =>
    Promise.resolve({
      environments: specs.map(({ tag, source, config }) => ({
        ...{
          tag,
          source,
          config,
          name: tag,
          version: 'v',
          bundle: '',
          files: [],
          instruction: 'Go.',
          legend: { P: 'you' },
        },
        ...{ actions: { 1: 'Left', 2: 'Right' }, has_solver: false },
      })),
    }),
  reset: episodes => Promise.resolve(episodes.map(({ episode }) => ({ episode, observation: 'P_', version: 'v' }))),
  step: episodes =>
    Promise.resolve(
      episodes.map(({ episode, actions }) => ({
        ...{ episode, observation: '_P', version: 'v' },
        outcomes: actions
          .slice(0, 1)
          .map(action => ({ action, reward: 1, terminated: false, truncated: false, info: {} })),
      })),
    ),
  closeEpisodes: () => Promise.resolve(),
};

const request = (first: string, body = '', headers: string[] = []): string =>
  [
    first,
    'Host: 127.0.0.1',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
    '',
    body,
  ].join('\r\n');
const json = ['Content-Type: application/json'];

/** A client's WebSocket message, masked with zeros. */
function webSocketFrame(text: string): string {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x81, 0x80 | bytes.length, 0, 0, 0, 0]), bytes]).toString('latin1');
}
const upgrade = [
  ...['GET /ws HTTP/1.1', 'Host: 127.0.0.1', 'Upgrade: websocket', 'Connection: Upgrade'],
  ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13', '', ''],
].join('\r\n');

const multipart = (data: Record<string, unknown>): string => {
  const { type, body } = encodeMultipart({ data, images: [new Uint8Array([137, 80, 78, 71])] }, 'form-data');
  const boundary = /boundary="(.*)"/.exec(type)![1];
  return `${type}\n${body.toString('latin1')}`.replaceAll(boundary, 'bbb'); // makes the boundary deterministic
};
const messages = [
  multipart({ env_config: { env_type: 'lake' }, seed: 1 }),
  multipart({ session_id: 'a', method: 'step', params: { action_str: '<answer>Left</answer>' } }),
];
const posted = (path: string, message: string): string => {
  const at = message.indexOf('\n');
  return request(`POST ${path} HTTP/1.1`, message.slice(at + 1), [`Content-Type: ${message.slice(0, at)}`]);
};

const requests = [
  request('GET /health HTTP/1.1'),
  request('GET /lake/metadata?token=x HTTP/1.1'),
  request('GET /state?episode_id=e HTTP/1.1'),
  request('POST /reset HTTP/1.1', '{"seed":1,"episode_id":"e"}', json),
  request('POST /lake/step HTTP/1.1', '{"action":{"action":"Left"},"episode_id":"e"}', json),
  request('POST /mcp HTTP/1.1', '{"jsonrpc":"2.0","method":"tools/list","id":1}', json),
  request('POST /vagen/environments HTTP/1.1', '{"ids2configs":{"a":{"env_name":"lake","env_config":{}}}}', json),
  request('POST /vagen/batch/reset HTTP/1.1', '{"ids2seeds":{"a":1}}', json),
  request('POST /vagen/batch/step HTTP/1.1', '{"ids2actions":{"a":"<answer>Left</answer>"}}', json),
  posted('/connect', messages[0]),
  posted('/call', messages[1]),
  upgrade +
    webSocketFrame('{"type":"reset","data":{"seed":1}}') +
    webSocketFrame('{"type":"step","data":{"action":1}}'),
];

let server: EnvironmentServer | undefined;
let failures: string[] = [];

/** The server's response to these bytes, until the server closes the connection or the timeout ends. */
const answered = (bytes: Buffer): Promise<string> =>
  new Promise(done => {
    const socket = createConnection(Number(new URL(server!.url).port), '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (more: string) => (text += more));
    socket.on('error', () => undefined);
    socket.once('close', () => done(text));
    socket.end(bytes);
    socket.setTimeout(200, () => socket.destroy()); // the server waits for more input
  });

const commit = 'a'.repeat(40);
const head = (headers: Record<string, string> = {}, code = 200): string =>
  `${JSON.stringify({ status: code, headers: { 'content-type': 'application/json', ...headers } })}\n`;
const list = JSON.stringify([
  { type: 'file', path: 'config.json', size: 10, oid: 'b'.repeat(40) },
  { type: 'file', path: 'model.safetensors', size: 100, oid: 'c'.repeat(40), lfs: { oid: 'd'.repeat(64), size: 100 } },
  { type: 'directory', path: 'onnx', size: 0, oid: 'e'.repeat(40) },
]);
const info = JSON.stringify({
  _id: 'x',
  id: 'a/b',
  modelId: 'a/b',
  sha: commit,
  private: false,
  gated: false,
  likes: 1,
  downloads: 2,
  lastModified: '2026-01-01T00:00:00.000Z',
});
/** Separator between the responses to two requests. */
const between = '\n=====\n';
const hubOptions = { endpoint: 'https://hub.example', token: 'hf_x', offline: false, silenceMs: 1000, retryMs: 0 };

export const httpTargets: readonly FuzzTarget[] = [
  {
    name: 'multipart body',
    form: 'bytes',
    corpus: messages.map(message => Buffer.from(message, 'latin1')),
    weight: 4,
    lawful: ['ServiceError'],
    async run(input) {
      const at = input.indexOf('\n');
      const type = input.subarray(0, Math.max(0, at)).toString('latin1');
      return readMessage(type, input.subarray(at + 1));
    },
  },
  {
    name: 'HTTP request',
    form: 'bytes',
    corpus: requests.map(each => Buffer.from(each, 'latin1')),
    weight: 4,
    async begin() {
      const spec = (tag: string) => ({ tag, env_type: tag, source: `/secret-folder/${tag}.ts`, config: {} });
      const options = { host: '127.0.0.1', port: 0, apiKey: undefined, allowConfig: false, maxSessions: 1000 };
      const onError = (line: string): void => void failures.push(line);
      const limits = { sessionTimeoutMs: 100, maxBodyBytes: 100_000 };
      server = await startEnvironmentServer({
        ...options,
        ...limits,
        pool,
        onError,
        offered: [spec('lake'), spec('cave')],
      });
    },
    async run(input) {
      failures = [];
      const text = await answered(input);
      if (failures.length > 0) throw new Broken(`the server failed: ${failures[0]}`);
      holds(!/HTTP\/1\.1 500/.test(text), 'the server answers 500');
      if (text.includes('secret-folder')) throw new Escaped('an answer names a folder');
      await Promise.all(server!.sessions.list().map(session => session.close()));
    },
    end: () => server?.close(),
  },
  {
    name: 'answers of a hub',
    form: 'text',
    corpus: [
      [head() + info, head() + list].join(between),
      [head() + info, head({ link: '<https://hub.example/next>; rel="next"' }) + list, head() + list].join(between),
      head({ 'x-error-code': 'GatedRepo' }, 403) + '{"error":"no"}',
    ],
    weight: 4,
    lawful: ['UserError', 'Interrupted'],
    async run(input) {
      const answers = input
        .toString('latin1')
        .split(between)
        .map(each => Buffer.from(each, 'latin1'));
      const reported: unknown[] = [];
      for (const type of ['model', 'dataset'] as const) {
        let asked = 0;
        const stop = new AbortController();
        const interrupted = Object.assign(new Error('it asks to be waited for'), { name: 'Interrupted' });
        answering(() => {
          if (++asked > 20) stop.abort(interrupted);
          return responseOf(answers[Math.min(asked - 1, answers.length - 1)]);
        });
        const timer = setTimeout(() => stop.abort(interrupted), 20);
        const { files, commit } = await new HubClient(hubOptions)
          .list({ repo: 'a/b', revision: 'main', type }, stop.signal)
          .finally(() => clearTimeout(timer));
        for (const { name, etag } of files)
          for (const [below, part] of [
            ['/cache', name],
            ['/blobs', etag],
            ['/commits', commit],
          ])
            if (!resolve(join(below, part)).startsWith(below + sep))
              throw new Escaped(`${part} leads out of its folder`);
        reported.push(files);
      }
      return reported;
    },
  },
];
