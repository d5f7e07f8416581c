// The search environment over its shipped corpus and over a server with RAGEN's protocol: pages, rewards, limits, data
// files.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StepResult } from '../../../../envs/api/environment';
import search from '../../../../envs/search/index';

const make = (config: Record<string, unknown> = {}) => search.create(search.config.parse(config));
const data = (name: string) => resolve(__dirname, '../../../../media/data/search', name);
const rows = (name: string) =>
  readFileSync(data(name), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, never>);
/** An environment reset at a seed, with its first observation. */
async function begin(config: Record<string, unknown>, seed: number, mode: 'train' | 'val' = 'train') {
  const environment = make(config);
  const { observation } = (await environment.reset({ seed, mode })) as { observation: string };
  const step = async (action: string) => (await environment.step(action)) as StepResult & { observation: string };
  return { environment, observation, step };
}

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'ragen-search-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the shipped questions', () => {
  test('come from the committed script', () => {
    execFileSync(process.execPath, [resolve(__dirname, '../../../../media/data/make/search.mjs'), folder]);
    for (const name of ['corpus.jsonl', 'train.jsonl', 'val.jsonl'])
      expect(readFileSync(join(folder, 'search', name), 'utf8')).toBe(readFileSync(data(name), 'utf8'));
  });

  test.each(['train', 'val'] as const)(
    'of %s are all answered by their oracle, which finds each article',
    async mode => {
      const questions = rows(`${mode}.jsonl`);
      expect(new Set(questions.map(({ question }) => question)).size).toBe(questions.length);
      const environment = make();
      for (const [seed, { question, supporting }] of questions.entries()) {
        const { observation } = (await environment.reset({ seed, mode })) as { observation: string };
        expect(observation).toContain(`Question: ${question}\n`);
        const actions = (await environment.solve!()) as string[];
        expect(actions).toHaveLength((supporting as string[]).length + 1);
        const seen: string[] = [];
        for (const action of actions) {
          const step = await environment.step(action);
          seen.push(String(step.observation));
          expect(step.terminated).toBe(action.startsWith('finish'));
          if (step.terminated) expect([step.reward, step.info.success]).toEqual([1, true]);
        }
        for (const id of supporting as string[]) expect(seen.join('\n')).toContain(`(ID: ${id}, `);
        expect(await environment.solve!()).toEqual([]);
      }
    },
  );

  test('are selected by the seed modulo their number, and differ in validation', async () => {
    const [train, val] = [rows('train.jsonl'), rows('val.jsonl')];
    expect((await begin({}, train.length + 3)).observation).toContain(train[3].question);
    expect((await begin({}, 3, 'val')).observation).toContain(val[3].question);
    expect((await begin({ max_instances: 2 }, 5)).observation).toContain(train[1].question);
    const asked = new Set(train.map(({ question }) => question));
    expect(val.some(({ question }) => asked.has(question))).toBe(false);
  });
});

test('a search shows ranked passages, truncated when they are long', async () => {
  const { step } = await begin({ max_search_results: 2, max_total_chars: 300 }, 0);
  const { observation, reward, info } = await step('search[Belmouth]');
  expect(observation).toMatch(
    /^Search results for 'Belmouth':\n\[Document 1\] \(ID: doc_\d+, Score: \d+\.\d{3}\)\nBelmouth\n/,
  );
  expect(observation.endsWith('\n\nAvailable actions: search[<query>], finish[<answer>]')).toBe(true);
  expect(observation.match(/\[Document /g)).toHaveLength(2);
  expect([reward, info]).toEqual([0, { action_is_valid: true, action_is_effective: true, success: false }]);
  expect((await step('search[qqq zzz]')).observation).toContain('No documents match the query.');
  const long = join(folder, 'long.json');
  writeFileSync(
    long,
    JSON.stringify([{ content: `beacon ${'x'.repeat(900)}` }, { content: `beacon ${'y'.repeat(900)}` }]),
  );
  const other = await begin({ corpus_path: long }, 0);
  expect((await other.step('search[beacon]')).observation).toContain(`${'x'.repeat(793)}...\n\n[Document 2]`);
});

test('the reward is full for an exact answer, the overlap above the threshold, or the value of a wrong answer', async () => {
  const file = join(folder, 'own.jsonl');
  writeFileSync(file, `${JSON.stringify({ question: 'Who?', ground_truth: ['Henry Platt', 'H. Platt'] })}\n`);
  const config = { train_path: file, correct_reward: 2, incorrect_reward: -0.5 };
  const finish = async (answer: string) => (await begin(config, 9)).step(answer);
  expect(await finish('finish[the henry platt!]')).toMatchObject({
    reward: 2,
    terminated: true,
    info: { success: true, exact_match: true, f1: 1 },
  });
  expect(await finish('finish[Henry Platt Jr]')).toMatchObject({
    reward: 1.6,
    info: { success: true, exact_match: false },
  });
  expect(await finish('finish[nobody]')).toMatchObject({ reward: -0.5, info: { success: false } });
  expect(await finish('The answer is Henry Platt.')).toMatchObject({
    reward: 2,
    observation: 'Your answer (taken from your text): Henry Platt. Reward: 2.00',
    info: { action_is_valid: false, action_is_effective: true, success: true },
  });
});

test('the last step ends the episode, whether it searches or not', async () => {
  const { step } = await begin({ max_steps: 2 }, 1);
  expect(await step(' ')).toMatchObject({ truncated: false, reward: 0, info: { action_is_valid: false } });
  const last = await step('search[Belmouth]');
  expect(last).toMatchObject({ truncated: true, terminated: false, reward: 0 });
  expect(last.observation).toContain('the episode ends without an answer');
});

describe('a retrieval server', () => {
  let server: Server;
  let url: string;
  let asked: unknown[] = [];
  let reply: (body: { query: string; top_k: number }) => { status?: number; body: string; delayMs?: number };
  const text = async (request: IncomingMessage) => {
    let whole = '';
    for await (const chunk of request) whole += String(chunk);
    return whole;
  };

  beforeAll(async () => {
    server = createServer((request, response) => {
      if (request.url === '/health') return void response.end('{"status":"ok","corpus_size":2}');
      if (request.url !== '/retrieve' || request.method !== 'POST') return void response.writeHead(404).end();
      void text(request).then(sent => {
        const body = JSON.parse(sent) as { query: string; top_k: number };
        asked.push(body);
        const { status = 200, body: answer, delayMs = 0 } = reply(body);
        setTimeout(() => response.writeHead(status, { 'content-type': 'application/json' }).end(answer), delayMs);
      });
    });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterAll(() => void server.close());

  test('is queried instead of the corpus', async () => {
    asked = [];
    reply = ({ query }) => ({
      body: JSON.stringify({
        query,
        method: 'dense',
        num_results: 1,
        results: [{ id: 'doc_7', content: 'Far away', score: 0.87654 }],
      }),
    });
    await search.dependencies!(search.config.parse({ retrieval_server_url: url }));
    const { step } = await begin({ retrieval_server_url: url, max_search_results: 3 }, 0);
    const { observation } = await step('search[where?]');
    expect(observation).toContain(`Search results for 'where?':\n[Document 1] (ID: doc_7, Score: 0.877)\nFar away\n\n`);
    expect(asked).toEqual([{ query: 'where?', top_k: 3 }]);
    const mock = await begin({ retrieval_server_url: url, mock_mode: true }, 0);
    expect((await mock.step('search[Belmouth]')).observation).toContain('Belmouth is a town');
  });

  test.each([
    [
      'fails',
      () => ({ status: 500, body: '{"error":"index is gone"}' }),
      'The retrieval server answered 500: index is gone.',
    ],
    ['answers nonsense', () => ({ body: 'hello' }), 'The retrieval server answered without results.'],
    ['finds nothing', () => ({ body: '{"results":[]}' }), 'No documents match the query.'],
    ['is slow', () => ({ body: '{}', delayMs: 900 }), 'The search took longer than 0.3 seconds.'],
  ])('that %s ends no episode', async (_, answer, expectedText) => {
    reply = answer;
    const { step } = await begin({ retrieval_server_url: url, retrieval_timeout: 0.3 }, 0);
    expect(await step('search[x]')).toMatchObject({ terminated: false, truncated: false, reward: 0 });
    expect((await step('search[x]')).observation).toContain(expectedText);
  });

  test('that is missing is reported before the first episode, and during one', async () => {
    const gone = { retrieval_server_url: 'http://127.0.0.1:9' };
    await expect(search.dependencies!(search.config.parse(gone))).rejects.toMatchObject({
      message: 'cannot reach a retrieval server at http://127.0.0.1:9',
      remedy: expect.stringContaining('mock_mode'),
    });
    const { step } = await begin(gone, 0);
    expect((await step('search[x]')).observation).toContain(
      'The retrieval server at http://127.0.0.1:9 cannot be reached.',
    );
  });
});

test.each([
  [{ train_path: 'no/such.parquet' }, /needs a data set, but .*such\.parquet does not exist/],
  [{ corpus_path: 'no/such.jsonl' }, /needs a data set, but .*such\.jsonl does not exist/],
  [{ train_path: data('corpus.jsonl') }, /lacks the columns "question" and "ground_truth"/],
])('missing data is reported: %j', async (config, message) => {
  await expect(search.dependencies!(search.config.parse(config))).rejects.toThrow(message);
});
