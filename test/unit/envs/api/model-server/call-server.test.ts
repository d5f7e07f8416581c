// The server of model calls: who may call, what is refused with which status, and the order of waiting calls.
import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CallServer, maxBodyBytes, mostWaiting, type CallLine } from '../../../../../envs/api/model-server/call-server';

let server: CallServer;
let line: CallLine;
beforeAll(async () => {
  server = await CallServer.start();
  line = server.open();
});
afterAll(() => server.close());

const reply = (content: string) => ({
  ...{ content, tool_calls: [], finish: 'stop' as const, prompt_tokens: 1, completion_tokens: 1 },
});
const post = (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const asking = (content: string) => ({ messages: [{ role: 'user', content }] });
const messageOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string } }).error.message;

/** Sends headers that `fetch` does not let a caller set. */
const statusWith = (headers: Record<string, string>): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const sent = request(`${line.url}/models`, { headers }, response => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once('error', reject).end();
  });

test('calls are answered in the order of their arrival', async () => {
  const first = post(line.url, asking('1'));
  const one = await line.next();
  const second = post(line.url, asking('2'));
  one.answer(reply('first'));
  expect(await (await first).json()).toMatchObject({ choices: [{ message: { content: 'first' } }] });
  const two = await line.next();
  expect(two.call.messages).toEqual([{ role: 'user', content: '2' }]);
  two.answer(reply('second'));
  expect(await (await second).json()).toMatchObject({ choices: [{ message: { content: 'second' } }] });
});

test('a stream is sent as events', async () => {
  const sent = post(line.url, { ...asking('1'), stream: true });
  (await line.next()).answer(reply('streamed'));
  const response = await sent;
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const text = await response.text();
  expect(text).toMatch(/^data: \{.*\}\n\n/);
  expect(text).toMatch(/"content":"streamed".*data: \[DONE\]\n\n$/s);
});

test('a program that hangs up does not disturb the next call', async () => {
  const controller = new AbortController();
  const lost = fetch(`${line.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(asking('lost')),
    signal: controller.signal,
  });
  lost.catch(() => undefined);
  const waiting = await line.next();
  controller.abort();
  await expect(lost).rejects.toThrow();
  waiting.answer(reply('late'));
  const next = post(line.url, asking('next'));
  (await line.next()).answer(reply('heard'));
  expect((await next).status).toBe(200);
});

test('only the address of an open episode is served', async () => {
  const other = server.open();
  expect((await post(line.url.replace(line.secret, '0'.repeat(48)), asking('a'))).status).toBe(404);
  expect((await post(line.url.replace('/e/1/', '/e/2/'), asking('a'))).status).toBe(404);
  other.close();
  const refused = await post(other.url, asking('a'));
  expect([refused.status, await messageOf(refused)]).toEqual([404, expect.stringMatching(/^there is no episode/)]);
});

test('requests of web pages and for other hosts are refused', async () => {
  expect(await statusWith({ origin: 'http://evil.example' })).toBe(403);
  expect(await statusWith({ 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await statusWith({ host: 'evil.example' })).toBe(403);
  expect(await statusWith({})).toBe(200);
});

test('errors have OpenAI’s form', async () => {
  const wrong = await post(line.url, { messages: [], n: 3 });
  expect(wrong.status).toBe(400);
  expect(await wrong.json()).toEqual({
    error: {
      message: expect.stringMatching(/^n is 3/) as string,
      type: 'invalid_request_error',
      param: 'n',
      code: null,
    },
  });
  expect((await post(line.url, '{"messages":')).status).toBe(400);
  expect((await post(line.url, asking('a'), { 'content-encoding': 'gzip' })).status).toBe(415);
  expect((await fetch(`${line.url}/embeddings`, { method: 'POST', body: '{}' })).status).toBe(404);
  expect((await fetch(`${line.url}/chat/completions`)).status).toBe(405);
});

test('bodies and waiting calls are bounded', async () => {
  const large = await new Promise((resolve, reject) => {
    const sending = request(`${line.url}/chat/completions`, { method: 'POST' }, response => {
      resolve([response.statusCode, response.headers.connection]);
      sending.destroy();
    });
    sending.once('error', reject).write(Buffer.alloc(maxBodyBytes + 1)); // the body has no end
  });
  expect(large).toEqual([413, 'close']);
  const crowded = server.open();
  const sent = Array.from({ length: mostWaiting + 1 }, (_, i) => post(crowded.url, asking(String(i))));
  const refused = await Promise.any(
    sent.map(async each => {
      const { status } = await each;
      if (status !== 429) throw new Error(String(status));
      return status;
    }),
  );
  expect(refused).toBe(429);
  crowded.close();
  await Promise.allSettled(sent);
});

test('bodies that are still arriving count as waiting calls', async () => {
  const slow = server.open();
  const { port, pathname } = new URL(`${slow.url}/chat/completions`);
  const half = Array.from({ length: mostWaiting }, () => {
    const sending = request({
      host: '127.0.0.1',
      port,
      path: pathname,
      method: 'POST',
      headers: { 'content-length': 100 },
    });
    sending.on('error', () => undefined); // the server closes them at the end
    sending.write('{');
    return sending;
  });
  await expect
    .poll(async () => (await post(slow.url, asking('one more'), { connection: 'close' })).status, { timeout: 30_000 })
    .toBe(429);
  for (const sending of half) sending.destroy();
  slow.close();
});
