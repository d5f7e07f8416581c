// The client of API models, tested with a server that implements both protocols and simulates the failures of real
// services.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApiModel } from '../../../../extension/trainer/config/schema-evaluation';
import { apiModel } from '../../../../extension/trainer/config/schema-evaluation';
import { ApiClient, RequestRefused, retryAfter } from '../../../../extension/trainer/evaluation/api-client';
import type { ApiClientOptions } from '../../../../extension/trainer/evaluation/api-client';
import { apiService } from '../../../../extension/trainer/evaluation/api-service';
import { startPeer } from './api-peer';
import type { ApiPeer, Mishap } from './api-peer';

let peer: ApiPeer;
let abort: AbortController;
beforeEach(async () => {
  peer = await startPeer();
  abort = new AbortController();
});
afterEach(() => peer.close());

const entry = (change: Partial<ApiModel> = {}): ApiModel =>
  apiModel.parse({ provider_name: 'openai', model_name: 'm', base_url: `${peer.url}/v1`, ...change });
const overAnthropic = (change: Partial<ApiModel> = {}): ApiModel =>
  entry({ provider_name: 'anthropic', base_url: peer.url, ...change });
const environment = () => ({ OPENAI_API_KEY: peer.key, ANTHROPIC_API_KEY: peer.key });

const client = (model = entry(), options: Partial<ApiClientOptions> = {}): ApiClient =>
  new ApiClient(apiService('test', model, 77, environment()), {
    timeoutMs: 300,
    maxRetries: 3,
    pauseMs: { first: 1, longest: 4 },
    signal: abort.signal,
    ...options,
  });

const conversation = [
  { role: 'system' as const, content: 'be brief' },
  { role: 'user' as const, content: 'hi' },
];
const failureOf = async (asked: Promise<unknown>): Promise<Error> =>
  asked.then(
    () => expect.fail('it was answered'),
    (error: Error) => error,
  );

describe('protocols', () => {
  test('chat completions: parameters are sent as given, answer and tokens are read', async () => {
    const answer = await client(entry({ generation_kwargs: { temperature: 0, max_tokens: 512 } })).ask(conversation);
    expect(answer).toMatchObject({ text: 'hello', finish: 'stop', usage: { output_tokens: 5 } });
    expect(peer.requests[0].body).toEqual({ temperature: 0, max_tokens: 512, model: 'm', messages: conversation });
  });

  test('messages: the system message is separate, a token limit is always sent, cached tokens are counted', async () => {
    const { usage } = await client(overAnthropic()).ask(conversation);
    expect(peer.requests[0].body).toEqual({
      max_tokens: 77,
      model: 'm',
      system: 'be brief',
      messages: [{ role: 'user', content: 'hi' }],
    });
    expect(usage.input_tokens).toBe(JSON.stringify([conversation[1]]).length);
  });

  test('a truncated or filtered answer is marked in both protocols', async () => {
    for (const model of [entry(), overAnthropic()])
      for (const finish of ['stop', 'length', 'content_filter'] as const) {
        peer.answer = () => ({ text: finish === 'content_filter' ? '' : 'half', finish });
        expect((await client(model).ask(conversation)).finish).toBe(finish);
      }
  });

  test('o1-mini gets no system message, and others can be configured without one', async () => {
    await client(entry({ model_name: 'o1-mini' })).ask(conversation);
    await client(entry({ system_message: 'drop' })).ask(conversation);
    await client(overAnthropic({ system_message: 'drop' })).ask(conversation);
    for (const { body } of peer.requests) {
      expect(body.messages).toEqual([conversation[1]]);
      expect(body).not.toHaveProperty('system');
    }
  });
});

describe('retries of transient failures', () => {
  const mishaps: Record<string, Mishap> = {
    'too many requests': { status: 429 },
    overloaded: { status: 529, error: { type: 'overloaded_error', message: 'Overloaded' } },
    'a gateway': { status: 502, error: '<html>' },
    'a dropped connection': { drop: true },
    'no answer': { hang: true },
    'half a reply': { text: '{"choices": [' },
    'another protocol': { text: '{"candidates": []}' },
  };
  for (const [name, mishap] of Object.entries(mishaps))
    test(name, async () => {
      for (const model of [entry(), overAnthropic()]) {
        peer.mishaps = [mishap, mishap];
        const asked = client(model, { timeoutMs: 150 });
        expect((await asked.ask(conversation)).text).toBe('hello');
        expect(asked.retries).toBe(2);
      }
    });

  test('end when the retries are used up; the error then names the last failure', async () => {
    peer.mishaps = new Array<Mishap>(9).fill({ status: 503, error: { message: 'down for today' } });
    const error = await failureOf(client().ask(conversation));
    expect(error.message).toBe(
      `api: ${peer.url}/v1/chat/completions gave no usable response in 4 tries (503 down for today): resume the evaluation later; its finished episodes are kept`,
    );
    expect(peer.requests.length).toBe(4);
  });

  test('start no earlier than the time that the service requests, which applies to all requests', async () => {
    peer.mishaps = [{ status: 429, headers: { 'retry-after-ms': '250' } }];
    const shared = client();
    const first = shared.ask(conversation);
    await expect.poll(() => shared.retries).toBe(1); // the refusal has arrived
    await Promise.all([first, shared.ask(conversation)]);
    const [refused, ...later] = peer.requests.map(({ at }) => at);
    for (const at of later) expect(at - refused).toBeGreaterThan(240);
  });

  test('Retry-After is parsed as seconds, a date, a past date, or nonsense', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    const after = (value: string): number | undefined => retryAfter(new Headers({ 'retry-after': value }), now);
    expect(after('2')).toBe(2000);
    expect(after('0.5')).toBe(500);
    expect(after('Thu, 01 Jan 2026 00:00:30 GMT')).toBe(30_000);
    expect(after('Wed, 31 Dec 2025 23:59:00 GMT')).toBe(0);
    expect(after('soon')).toBeUndefined();
    expect(retryAfter(new Headers({ 'retry-after-ms': '80', 'retry-after': '9' }), now)).toBe(80);
    expect(retryAfter(new Headers())).toBeUndefined();
  });

  test('a requested wait of hours ends the evaluation with a message', async () => {
    peer.mishaps = [{ status: 429, headers: { 'retry-after': '7200' } }];
    expect((await failureOf(client().ask(conversation))).message).toContain('next try allowed in 120 minutes');
  });

  test('an abort ends a wait immediately', async () => {
    peer.mishaps = [{ status: 429, headers: { 'retry-after': '60' } }];
    const waiting = client();
    const asked = failureOf(waiting.ask(conversation));
    await expect.poll(() => waiting.retries).toBe(1);
    abort.abort();
    expect((await asked).name).toBe('AbortError');
    expect(peer.requests).toHaveLength(1);
  });
});

describe('permanent failures', () => {
  test('of one conversation fail only that conversation', async () => {
    for (const status of [400, 413, 422]) {
      peer.mishaps = [{ status, error: { code: 'context_length_exceeded', message: 'too long' } }];
      const error = await failureOf(client().ask(conversation));
      expect(error).toBeInstanceOf(RequestRefused);
      expect(error.message).toBe(`${status} too long`);
    }
    expect(peer.requests.length).toBe(3);
  });

  test('are reported at once in one sentence: a wrong key, a missing model, an empty account, a redirect', async () => {
    const cases: [Mishap, RegExp][] = [
      [{ status: 403, error: { message: 'no access' } }, /\(403 no access\): check the key and its permissions$/],
      [{ status: 404, error: { message: 'no such model' } }, /\(404 no such model\): check model_info$/],
      [{ status: 429, error: { code: 'insufficient_quota', message: 'no money' } }, /top up the account$/],
      [{ status: 307, headers: { location: `${peer.url}/elsewhere` } }, /\(307 .*check model_info$/],
    ];
    for (const [mishap, sentence] of cases) {
      peer.mishaps = [mishap];
      expect((await failureOf(client().ask(conversation))).message).toMatch(sentence);
    }
    expect(peer.requests.every(({ path }) => path === '/v1/chat/completions')).toBe(true);
    expect(peer.requests.length).toBe(cases.length);
  });

  test('have messages without the key, even if the service repeats it', async () => {
    const { key } = peer;
    const wrong = 'sk-other-00aa11bb22cc';
    const service = apiService('test', entry(), 77, { OPENAI_API_KEY: wrong });
    const asked = new ApiClient(service, { timeoutMs: 300, maxRetries: 0, signal: abort.signal });
    const unauthorised = await failureOf(asked.ask(conversation));
    expect(unauthorised.message).toContain('401 Incorrect API key provided: ***');
    peer.mishaps = [{ status: 500, error: { message: `crashed with ${key}` } }, { text: `oops ${key}` }];
    const crashed = await failureOf(client(entry(), { maxRetries: 1 }).ask(conversation));
    for (const { message, stack } of [unauthorised, crashed])
      for (const secret of [key, wrong]) expect(`${message} ${stack}`).not.toContain(secret);
  });

  test('have messages without a prefix of the key, even if a message is truncated within the key', async () => {
    const key = 'Zq0KPIxDjkMyKE9m9iMfw05QayguKr';
    process.env.RAGEN_TEST_CUT_KEY = key;
    try {
      const service = apiService('test', entry({ api_key_env: 'RAGEN_TEST_CUT_KEY' }), 77, process.env);
      const asked = new ApiClient(service, { timeoutMs: 300, maxRetries: 0, signal: abort.signal });
      for (const length of [80, 200, 300])
        for (let kept = 8; kept < key.length; kept += 7) {
          const text = `${'x'.repeat(length - kept)}${key}x`;
          peer.mishaps = [{ text }, { status: 500, body: text }, { status: 500, error: { message: text } }];
          for (const _ of peer.mishaps.slice()) {
            const { message } = await failureOf(asked.ask(conversation));
            expect(message).toContain('xxx');
            expect(message).not.toContain(key.slice(0, 8));
          }
        }
    } finally {
      delete process.env.RAGEN_TEST_CUT_KEY;
    }
  });
});

describe('configuration', () => {
  test('refuses a missing or malformed key, or an address that contains one, before anything is sent', () => {
    expect(() => apiService('gpt', entry(), 1, {})).toThrow(
      'config: model_info.gpt needs an API key of openai: set the environment variable OPENAI_API_KEY',
    );
    expect(() => apiService('gpt', entry({ api_key_env: 'MY_KEY' }), 1, { MY_KEY: 'two words' })).toThrow(
      /^environment: MY_KEY contains/,
    );
    const withSecret = entry({ base_url: 'https://user:hidden-password@example.org/v1' });
    expect(() => apiService('gpt', withSecret, 1, environment())).toThrow(/base_url contains a user, a password/);
    expect(() => apiService('gpt', withSecret, 1, environment())).not.toThrow(/hidden-password/);
  });

  test('has a default address and variable for each provider', () => {
    const urlOf = (provider_name: ApiModel['provider_name'], variable: string): string =>
      apiService('x', apiModel.parse({ provider_name, model_name: 'm' }), 1, { [variable]: 'k' }).url;
    expect(urlOf('openai', 'OPENAI_API_KEY')).toBe('https://api.openai.com/v1/chat/completions');
    expect(urlOf('deepseek', 'DEEPSEEK_API_KEY')).toBe('https://api.deepseek.com/v1/chat/completions');
    expect(urlOf('together', 'TOGETHER_API_KEY')).toBe('https://api.together.xyz/v1/chat/completions');
    expect(urlOf('anthropic', 'ANTHROPIC_API_KEY')).toBe('https://api.anthropic.com/v1/messages');
  });
});

test('an answer that is too long is refused, and the status of an overlong error is evaluated', async () => {
  const long = JSON.stringify({ error: { message: 'x'.repeat(2 ** 23) } });
  peer.mishaps = [{ text: 'x'.repeat(2 ** 23) }];
  const error = await failureOf(client(entry(), { timeoutMs: 30_000 }).ask(conversation));
  expect(error).toBeInstanceOf(RequestRefused);
  expect(error.message).toContain('more than 4194304 bytes');
  peer.mishaps = [{ status: 503, error: long }];
  expect(await client(entry(), { timeoutMs: 30_000 }).ask(conversation)).toMatchObject({ text: 'hello' });
});
