// Keys and tokens do not leak. A run whose services and hub need marked keys trains while its server repeats its key in
// every error, and is stopped, resumed and refused; afterwards no file and no output contains the marks.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { document, killAll, ragen, readRun } from '../../support/terminal';
import { makeWorkspace, type Workspace } from '../../support/workspace';

const marks = {
  HF_TOKEN: 'hf_MARKEDaabbccddeeff0011',
  OPENAI_API_KEY: 'sk-MARKED1122334455667788',
  ANTHROPIC_API_KEY: 'sk-ant-MARKED99887766',
  LEAN_SERVER_API_KEY: 'MARKEDlean5544332211',
  RAGEN_TEST_ENV_KEY: 'MARKEDenv0a1b2c3d4e5f',
};
let workspace: Workspace;
let server: Server;
const keys = new Set<unknown>();
/** Output of all processes. */
let words = '';

const configuration = (url: string): string => `defaults:
  - words
  - _self_
custom_envs:
  Far:
    env_type: remote
    max_actions_per_traj: 2
    env_config:
      url: ${url}
      api_key_env: RAGEN_TEST_ENV_KEY
      retries: 1
      backoff: 0
es_manager:
  train:
    env_configs: {tags: [Far], n_groups: [2]}
trainer:
  val_before_train: false
  test_freq: -1
  total_training_steps: 1
workbench:
  max_failed_episodes_share: 1
`;

beforeAll(async () => {
  workspace = makeWorkspace();
  // A careless environment server: every error repeats the key it was given.
  server = createServer((request, response) => {
    keys.add(request.headers['x-api-key']);
    if (request.url === '/health') return response.end('{}');
    response.writeHead(500).end(`no ${request.url} for ${String(request.headers['x-api-key'])}`);
  });
  new WebSocketServer({ server }).on('connection', (socket, request) => {
    const key = String(request.headers['x-api-key']);
    let steps = 0;
    socket.on('message', message => {
      const { type } = JSON.parse((message as Buffer).toString()) as { type: string };
      const failure = { type: 'error', data: { code: 'EXECUTION_ERROR', message: `it broke for Bearer ${key}` } };
      const repeated = `say a word, ${key}, ${Buffer.from(`Bearer ${key}`).toString('base64')}, ${encodeURIComponent(key)}`;
      const shown = {
        type: 'observation',
        data: { observation: { text: repeated }, reward: 1, done: false, info: { key } },
      };
      if (type === 'close') return;
      socket.send(JSON.stringify(type === 'step' && ++steps === 1 ? failure : shown));
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  workspace.write('config/far.yaml', configuration(url));
  Object.assign(process.env, marks);
});
afterAll(async () => {
  for (const name of Object.keys(marks)) delete process.env[name];
  await killAll(workspace.folder);
  server.closeAllConnections();
  server.close();
  workspace.remove();
});

const terminal = async (...args: string[]) => {
  const said = await ragen(workspace.folder, args);
  words += said.stdout + said.stderr;
  return said;
};
/** Every byte of the files below a folder, as text. */
const everything = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map(entry => join(entry.parentPath, entry.name))
    .filter(path => statSync(path).isFile())
    .map(path => `${path}\n${readFileSync(path, 'latin1')}`)
    .join('\n');

test('a run that uses keys stores none, whatever fails', { timeout: 60_000 }, async () => {
  const said = await document<{ folder: string }>(workspace.folder, ['train', '--config-name', 'far']);
  words += said.stdout + said.stderr;
  expect([...keys]).toEqual([marks.RAGEN_TEST_ENV_KEY]); // the key was sent
  const { events } = readRun(said.answer.folder);
  expect(everything(said.answer.folder)).toContain('say a word, [redacted RAGEN_TEST_ENV_KEY], '); // the model's input
  expect(events.map(({ message }) => message).join('\n')).toContain('it broke for Bearer ***'); // an error message
  await terminal('doctor');
  await terminal('runs');
  const disk = everything(workspace.folder);
  expect(disk).toContain('RAGEN_TEST_ENV_KEY'); // the name is stored
  for (const [name, mark] of Object.entries(marks)) {
    for (const form of [mark, Buffer.from(`Bearer ${mark}`).toString('base64').slice(10, -4)]) {
      expect(disk.includes(form), `${name} on the disk`).toBe(false);
      expect(words.includes(form), `${name} in what was said`).toBe(false);
    }
  }
});

const careless = `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
export default defineEnvironment({
  name: 'careless',
  config: z.object({}),
  instruction: 'Say a word.',
  create: () => ({
    reset() {
      const key = process.env.OPENAI_API_KEY;
      process.stdout.write('the key is ' + key.slice(0, 9));
      process.stdout.write(key.slice(9) + ' as it stands\\n');
      return { observation: 'the word is ' + key };
    },
    step() {
      throw new Error('no more of ' + process.env.HF_TOKEN);
    },
  }),
});
`;

test('a user’s environment that prints, returns and throws keys leaks none', { timeout: 60_000 }, async () => {
  workspace.write('envs/careless.ts', careless);
  workspace.write(
    'config/careless.yaml',
    configuration('http://127.0.0.1:9')
      .replace('env_type: remote', 'env_type: envs/careless.ts')
      .replace(/    env_config:\n(      .*\n)+/, ''),
  );
  const said = await document<{ folder: string }>(workspace.folder, ['train', '--config-name', 'careless']);
  expect(said.code, said.stderr).toBe(0);
  const disk = everything(said.answer.folder);
  expect(disk).toContain('the word is [redacted OPENAI_API_KEY]');
  expect(disk).toContain('no more of [redacted HF_TOKEN]');
  expect(disk).toContain('the key is ');
  for (const part of [marks.OPENAI_API_KEY.slice(9), marks.HF_TOKEN, marks.OPENAI_API_KEY])
    expect(disk.includes(part) || (said.stdout + said.stderr).includes(part)).toBe(false);
});

test.each([
  [
    'custom_envs.Far.env_config.env_config.api_key=MARKED',
    /env_config\.env_config\.api_key holds a secret, .* \(override [^ ]*api_key=…\)/,
  ],
  ['custom_envs.Far.env_config.url=http://me:MARKED@127.0.0.1/', /env_config\.url is a URL with a password, .*=…\)/],
  [
    'custom_envs.Far.env_config.api_key_env=sk-MARKED',
    /env_config\.api_key_env is not the name of an environment variable: .*not the API key itself \(override [^ ]*=…\)/,
  ],
  [
    'model_path=https://me:MARKED@hub.example/some-org/some-model',
    /model_path is a URL with a password, .* \(override [^ ]*=…\)/,
  ],
  [
    'model_info={chat: {provider_name: openai, model_name: m, generation_kwargs: {extra_headers: {Authorization: Bearer MARKED}}}}',
    /model_info\.chat\.generation_kwargs\.extra_headers\.Authorization holds a secret, .* \(override [^ ]*=…\)/,
  ],
  [
    'model_info={chat: {provider_name: openai, model_name: m, api_key_env: sk-MARKED}}',
    /model_info\.chat\.api_key_env is …: use .* \(override [^ ]*=…\)/,
  ],
  [
    'model_info={chat: {provider_name: openai, model_name: m, api_key: MARKED}}',
    /model_info\.chat\.api_key is not a known key: .* \(override [^ ]*=…\)/,
  ],
  ['trainer.wandb_api_key=MARKED', /trainer\.wandb_api_key is not a known key: .* \(override [^ ]*=…\)/],
])('a secret in the configuration is refused before anything is written: %s', async (override, sentence) => {
  const before = readdirSync(join(workspace.folder, '.ragen', 'runs')).length;
  const said = await terminal('train', '--config-name', 'far', override.replace(/^/, '++'));
  expect(said.code).toBe(1);
  expect(said.stderr).toMatch(sentence);
  expect(said.stderr + said.stdout).not.toContain('MARKED');
  expect(readdirSync(join(workspace.folder, '.ragen', 'runs'))).toHaveLength(before);
});

test('a hub address with a password is refused without showing it', async () => {
  process.env.HF_ENDPOINT = 'https://me:MARKEDhub@hub.example';
  try {
    const { code, stderr } = await terminal('train', '--config-name', 'words', 'model_path=some-org/some-model');
    expect(code).toBe(1);
    expect(stderr).toMatch(/hub: HF_ENDPOINT contains a user name or a password: set HF_ENDPOINT to the address alone/);
    expect(stderr).not.toContain('MARKEDhub');
  } finally {
    delete process.env.HF_ENDPOINT;
  }
});
