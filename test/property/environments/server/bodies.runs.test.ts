// For any input, the server answers with JSON and a correct status, and does not crash: any JSON on any path, any bytes
// as multipart data, any message.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { encodeMultipart } from '../../../../envs/remote/multipart';
import type { EnvironmentServer } from '../../../../extension/environments/server/http-server';
import { builtIn, startServing, type Serving } from '../../../unit/environments/server/serving';

let serving: Serving;
let server: EnvironmentServer & { errors: string[] };
beforeAll(async () => {
  serving = await startServing();
  server = await serving.serve([builtIn('frozen_lake')], { maxBodyBytes: 10_000 });
  await server.sessions.environment();
});
afterAll(() => serving.stop());

const runs = { numRuns: 150, seed: 5 };
const keys = [
  'seed',
  'action',
  'episode_id',
  'env_config',
  'session_id',
  'method',
  'params',
  'ids2configs',
  'ids2seeds',
];
const nearly = fc.dictionary(
  fc.oneof(fc.constantFrom(...keys, 'ids2actions', 'env_ids', '__proto__', 'type', 'data'), fc.string()),
  fc.jsonValue(),
);
const json = fc.oneof(fc.jsonValue(), nearly);
const paths = [
  ...['/reset', '/step', '/mcp', '/connect', '/call', '/frozen_lake/step', '/vagen/environments', '/vagen/batch/reset'],
  ...['/vagen/batch/step', '/vagen/batch/reward', '/vagen/batch/system_prompt', '/vagen/batch/close', '/vagen/step/a'],
];

async function answered(path: string, type: string, body: Uint8Array | string) {
  const init = { method: 'POST', headers: { 'content-type': type }, body: body as BodyInit };
  const response = await fetch(`${server.url}${path}`, init);
  const text = await response.text();
  return { status: response.status, isJson: (response.headers.get('content-type') ?? '') === 'application/json', text };
}

/** Asserts a client error in JSON: status 400 or above, but not 500 or 502. */
function expectMistake({ status, isJson, text }: Awaited<ReturnType<typeof answered>>, mayBeRight = false) {
  if (mayBeRight && status === 200) return;
  expect(status).toBeGreaterThanOrEqual(400);
  expect([500, 502]).not.toContain(status);
  expect(isJson).toBe(true);
  const { detail, error } = JSON.parse(text) as Record<string, unknown>;
  expect(typeof (detail ?? error)).toBe('string');
}

it('any JSON on any path is answered with JSON and no server error', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), json, async (path, body) => {
      // An empty object starts an episode, and JSON-RPC reports errors with status 200.
      expectMistake(await answered(path, 'application/json', JSON.stringify(body)), true);
      await Promise.all(server.sessions.list().map(session => session.close()));
    }),
    runs,
  );
  expect(server.errors).toEqual([]);
});

it('any bytes, as JSON and as multipart, are answered with JSON and no server error', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), fc.uint8Array({ maxLength: 300 }), async (path, bytes) => {
      expectMistake(await answered(path, 'application/json', bytes), true);
      expectMistake(await answered(path, 'multipart/form-data; boundary="b"', bytes), true);
    }),
    runs,
  );
  expect(server.errors).toEqual([]);
});

it('any data in a GymService message is answered with JSON and no server error', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('/connect', '/call'), nearly, async (path, data) => {
      const { type, body } = encodeMultipart({ data, images: [] }, 'form-data');
      expectMistake(await answered(path, type, new Uint8Array(body)), path === '/connect');
      await Promise.all(server.sessions.list().map(session => session.close()));
    }),
    runs,
  );
  expect(server.errors).toEqual([]);
});

it('a session survives any message', async () => {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`);
  await new Promise(resolve => socket.once('open', resolve));
  const ask = (text: string) =>
    new Promise<Record<string, unknown>>(resolve => {
      socket.once('message', answer => resolve(JSON.parse((answer as Buffer).toString()) as Record<string, unknown>));
      socket.send(text);
    });
  const message = fc.record(
    { type: fc.constantFrom('reset', 'step', 'state', 'mcp', 'else', 1), data: json },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        json.map(value => JSON.stringify(value)),
        message.map(value => JSON.stringify(value)),
      ),
      async text => {
        const answer = await ask(text);
        expect(['error', 'observation', 'state', 'mcp']).toContain(answer.type);
        if (answer.type === 'error')
          expect(answer.data).toMatchObject({ message: expect.any(String), code: expect.any(String) });
      },
    ),
    runs,
  );
  expect(await ask('{"type": "reset", "data": {"seed": 1}}')).toMatchObject({ type: 'observation' });
  socket.terminate();
});
