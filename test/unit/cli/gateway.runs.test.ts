// `ragen gateway` serves a model to programs: replies, the log with exact tokens, and refusals.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallRecord } from '../../../extension/cli/models/gateway-calls';
import { ragen } from '../../support/terminal';
import { makeWorkspace, root, type Workspace } from '../../support/workspace';

let workspace: Workspace;
let gateway: ChildProcess;
let served: { url: string; key: string; log: string };

beforeAll(async () => {
  workspace = makeWorkspace();
  const args = ['gateway', '--model', 'ragen-tiny', '--threads', '1', '--log', 'calls.jsonl', '--json'];
  gateway = spawn(process.execPath, [join(root, 'dist/cli.cjs'), ...args], {
    cwd: workspace.folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  served = await new Promise((done, failed) => {
    createInterface(gateway.stdout!).once('line', line => done(JSON.parse(line) as typeof served));
    gateway.once('exit', code => failed(new Error(`the gateway ended with exit code ${code}`)));
  });
});
afterAll(() => {
  gateway.kill('SIGKILL');
  workspace.remove();
});

const complete = (body: object): Promise<Response> =>
  fetch(`${served.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${served.key}` },
    body: JSON.stringify({ model: 'policy', ...body }),
  });
interface Completion {
  choices: { message: { role: string; content: string } }[];
  usage: { prompt_tokens: number; completion_tokens: number };
}

test('a conversation is answered and logged with its exact tokens', async () => {
  const messages = [{ role: 'user', content: 'Where am I?' }];
  const first = (await (await complete({ messages, max_tokens: 4 })).json()) as Completion;
  expect(first.usage.completion_tokens).toBeLessThanOrEqual(4);
  const longer = [...messages, first.choices[0].message, { role: 'user', content: 'And now?' }];
  const second = (await (await complete({ messages: longer, max_tokens: 4 })).json()) as Completion;
  const other = await complete({ messages: [{ role: 'user', content: 'Another one.' }], max_tokens: 4 });
  expect(other.status).toBe(200);
  await other.text();
  const log = () =>
    readFileSync(served.log, 'utf8')
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line) as CallRecord);
  await expect.poll(log).toHaveLength(3);
  const [one, two, three] = log();
  expect([one, two, three].map(({ continues }) => continues)).toEqual([null, 1, null]);
  expect(two.prompt_tokens.slice(0, one.prompt_tokens.length + one.tokens.length)).toEqual([
    ...one.prompt_tokens,
    ...one.tokens,
  ]);
  expect(two.added).toBe('user: And now?');
  expect(two.logprobs).toHaveLength(two.tokens.length);
  expect(second.usage).toMatchObject({
    prompt_tokens: two.prompt_tokens.length,
    completion_tokens: two.tokens.length,
  });
});

test('a conversation that does not fit is refused', async () => {
  const refused = await complete({ messages: [{ role: 'user', content: 'long '.repeat(5000) }] });
  expect(refused.status).toBe(400);
  expect(((await refused.json()) as { error: { message: string } }).error.message).toMatch(
    /^the prompt of \d+ tokens and a reply of 256 tokens exceed the context of \d+ tokens: shorten/,
  );
});

test('SIGTERM ends the server', async () => {
  const ended = new Promise(resolve => gateway.once('exit', code => resolve(code)));
  gateway.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('a wrong option is refused with its place and remedy', async () => {
  const { code, stderr } = await ragen(workspace.folder, ['gateway', '--model', 'ragen-tiny', '--tools', 'xml']);
  expect(code).toBe(1);
  expect(stderr).toContain('--tools is "xml": use one of auto, hermes, llama3, plain');
});
