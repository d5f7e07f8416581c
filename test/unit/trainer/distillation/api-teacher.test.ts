// A teacher behind an API: requests and replies, failures, and stops. The service runs on this machine.
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RunStopped } from '../../../../extension/engine/run-stopped';
import { openApiTeacher, sampledLogprobs } from '../../../../extension/trainer/distillation/api-teacher';
import type { RunConfig } from '../../../../extension/trainer/config/schema';
import { partial } from '../../../support/partial';

const key = 'sk-of-the-teacher';
let server: Server;
let prompts: number[][] = [];
let answer: (ids: number[], response: ServerResponse) => void;
let stop: AbortController;

const send = (response: ServerResponse, status: number, body: unknown): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
/** Replies with the negative ids as log-probs, and one for the sampled token. */
const echo = (ids: number[], response: ServerResponse): void =>
  send(response, 200, { choices: [{ logprobs: { token_logprobs: [null, ...ids.slice(1).map(id => -id), -9] } }] });

beforeEach(async () => {
  prompts = [];
  answer = echo;
  stop = new AbortController();
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const { prompt } = JSON.parse(text) as { prompt: number[] };
      prompts.push(prompt);
      answer(prompt, response);
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => {
  server.closeAllConnections();
  return new Promise(resolve => server.close(resolve));
});

function open(maxRetries = 0) {
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const config = partial<RunConfig>({
    workbench: { distillation: { teacher: null, service: 'big' } },
    model_info: {
      big: {
        ...{ provider_name: 'openai', model_name: 'm', base_url, api_key_env: 'KEY' },
        ...{ timeout_s: 20, max_retries: maxRetries },
      },
    },
  });
  return openApiTeacher({ config, control: { stopped: stop.signal } }, { KEY: key }, { first: 1, longest: 1 });
}
const samples = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ ids: Int32Array.of(5, i + 1, 7, 8), mask: Uint8Array.of(0, 1, 0, 1) }));

test('each sample gets its log-probs at trained tokens, and progress is reported', async () => {
  const seen: string[] = [];
  const found = await open().logprobs(samples(40), (done, of) => seen.push(`${done}/${of}`));
  expect(found).toEqual(samples(40).map((_, i) => Float32Array.of(0, -i - 1, 0, -8)));
  expect(seen).toEqual(Array.from({ length: 40 }, (_, i) => `${i}/40`));
  expect(prompts).toHaveLength(40);
});

test('samples with pictures are refused before anything is sent', async () => {
  const shown = { ...samples(1)[0], shows: [{ at: 0, picture: 'a.png' }] };
  await expect(open().logprobs([...samples(1), shown], () => undefined)).rejects.toThrow(
    /^config: the teacher of workbench\.distillation\.service receives token ids alone, but the episodes show pictures: use a/,
  );
  expect(prompts).toEqual([]);
});

test('a failed request is repeated', async () => {
  let failures = 2;
  answer = (ids, response) => (failures-- > 0 ? send(response, 503, {}) : echo(ids, response));
  expect(await open(2).logprobs(samples(1), () => undefined)).toHaveLength(1);
  expect(prompts).toHaveLength(3);
});

test('after a refusal, no further samples are requested, and the key is not shown', async () => {
  answer = (_, response) => send(response, 400, { error: { message: `no echo for ${key}` } });
  const teacher = open();
  const error = await teacher.logprobs(samples(200), () => undefined).catch((error: unknown) => error);
  expect(String(error)).toMatch(
    /^UserError: api: the teacher model_info.big refuses a sample \(400 no echo for \*+\): use/,
  );
  answer = echo;
  await teacher.logprobs(samples(1), () => undefined);
  expect(prompts.length).toBeLessThan(40);
});

test('a stop ends the pending requests', async () => {
  answer = () => stop.abort();
  await expect(open().logprobs(samples(3), () => undefined)).rejects.toThrow(RunStopped);
});

test('a closed teacher sends no requests', async () => {
  const teacher = open();
  await teacher.close();
  await expect(teacher.logprobs(samples(1), () => undefined)).rejects.toThrow();
  expect(prompts).toEqual([]);
});

test.each([
  [[null, -1], 'returned 2 log-probs for a sample of 3 tokens, without one for token 2'],
  [[null, -1, null], 'returned 3 log-probs for a sample of 3 tokens, without one for token 2'],
])('a reply without a log-prob of a trained token is refused: %j', (found, sentence) => {
  expect(() => sampledLogprobs(found, Uint8Array.of(0, 0, 1), 'big')).toThrow(
    `api: the teacher big ${sentence}: use a`,
  );
});

test('log-probs of sampled tokens at the end of a reply are left out', () =>
  expect(sampledLogprobs([null, -1, -2, -3], Uint8Array.of(0, 0, 1), 'big')).toEqual(Float32Array.of(0, 0, -2)));
