// Tools of real MCP servers, over standard input and output and over HTTP, in a real environment process. A server that
// dies, hangs or floods ends the episode that called it with one sentence; later episodes start it again.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callAction } from '../../../../../envs/api/tools/call-action';
import type { EnvironmentProcess } from '../../../../../extension/environments/client/environment-process';
import { defaultToolLimits, type ToolServer } from '../../../../../extension/protocol/tool-link';
import { buildEntry, startProcess, workspace } from '../../../../support/bundles';
import { isAlive } from '../../../../support/terminal';

const script = resolve('test/support/mcp-server.mjs');
const files = workspace();
const source = files.write(
  'plain.ts',
  `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
export default defineEnvironment({
  name: 'plain', config: z.object({}), instruction: '',
  create: () => ({
    reset: () => ({ observation: 'begin' }),
    step: action => ({ observation: 'end ' + action, reward: 1, terminated: true, truncated: false, info: {} }),
  }),
});
`,
);
let entry: string;
let web: ChildProcess;
let url: string;
const running: EnvironmentProcess[] = [];

beforeAll(async () => {
  entry = await buildEntry();
  web = spawn(process.execPath, [script, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(web.stdout!, 'data')) as [Buffer];
  url = `http://127.0.0.1:${String(port).trim()}/mcp`;
});
afterAll(async () => {
  await Promise.all(running.map(process => process.stop()));
  web.kill();
  [dirname(entry), files.folder].forEach(folder => rmSync(folder, { recursive: true, force: true }));
});

const program = (changes: Partial<ToolServer> = {}): ToolServer =>
  ({
    per: 'run',
    start_timeout_ms: 30_000,
    command: process.execPath,
    args: [script, 'stdio'],
    env: {},
    pass_env: [],
    ...changes,
  }) as ToolServer;
const site = (changes: Partial<ToolServer> = {}): ToolServer =>
  ({ per: 'run', start_timeout_ms: 30_000, url, headers: {}, headers_env: {}, ...changes }) as ToolServer;

/** Loads an environment with servers; returns functions that play its episodes. */
async function load(servers: Record<string, ToolServer>, timeout_ms = 5000, variables: NodeJS.ProcessEnv = {}) {
  const { running: started, notices } = await startProcess(entry, { variables: { ...process.env, ...variables } });
  running.push(started);
  const tools = { ...defaultToolLimits, timeout_ms, servers };
  const { environments, error } = await started.load([{ tag: 'P', env_type: 'plain.ts', source, config: {}, tools }]);
  let opened = 0;
  const open = async () => {
    const episode = `e${opened++}`;
    const [state] = await started.reset([{ episode, tag: 'P', seed: 1, member: 0, mode: 'train' }]);
    expect(state.error).toBeUndefined();
    return {
      call: async (name: string, args: Record<string, unknown> = {}) => {
        const [step] = await started.step([{ episode, actions: [callAction([{ name, arguments: args }])] }]);
        return step.error?.message ?? step.outcomes[0].calls![0].result;
      },
      close: () => started.closeEpisodes([episode]),
    };
  };
  return { tools: environments[0]?.tools, error, open, notices };
}

describe.each([
  ['standard input and output', () => program()],
  ['HTTP', () => site()],
])('over %s', (_, server) => {
  test('tools are listed and called', async () => {
    const { tools, error, open } = await load({ s: server() });
    expect(error).toBeUndefined();
    expect(tools?.find(({ name }) => name === 'add')).toMatchObject({
      description: 'Does add.',
      parameters: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
      },
    });
    const { call } = await open();
    expect(await call('add', { a: 2, b: 3 })).toBe('5');
    expect(await call('picture')).toBe('[image]\nseen');
    expect(await call('dotted_name')).toBe('named');
  });

  test('failures that the server reports are results', async () => {
    const { call } = await (await load({ s: server() })).open();
    expect(await call('refuse')).toBe('Error: not today');
    expect(await call('add', { a: 'two', b: 3 })).toMatch(/^Error: .*expected number/s);
    expect(await call('add', { a: 1, b: 1 })).toBe('2');
  });

  test('a call that hangs ends its episode with one sentence, and later episodes play', async () => {
    const { open } = await load({ s: server() }, 1500);
    const [broken, other] = [await open(), await open()];
    expect(await broken.call('hang')).toMatch(
      /^environment P .* has the tool server s \(.*\), which did not answer a call of hang within 1500 ms in step\(.*: check custom_envs\.P\.mcp_servers\.s and the server's output$/s,
    );
    expect(await other.call('add', { a: 2, b: 3 })).toBe('5');
  });
});

test.each([
  ['die', /which has ended or closed the connection/],
  ['junk', /which wrote 100 messages that are not of the Model Context Protocol/],
  ['flood', /which (has ended or closed the connection|could not call flood)/],
])('a server that does %s ends its episodes, and is started again for the next', async (name, sentence) => {
  const { open } = await load({ s: program() });
  const [broken, other] = [await open(), await open()];
  const before = await other.call('pid');
  expect(await broken.call(name)).toMatch(sentence);
  expect(await other.call('pid')).toMatch(/which has ended or closed the connection|not of the Model Context Protocol/);
  const after = await (await open()).call('pid');
  expect(after).toMatch(/^\d+$/);
  expect(after).not.toBe(before);
});

test('a response without end over HTTP ends its episode only', async () => {
  const { open } = await load({ s: site() });
  expect(await (await open()).call('huge')).toMatch(/which (could not call huge|has ended|did not answer)/);
  expect(await (await open()).call('add', { a: 2, b: 3 })).toBe('5');
});

test('a server per run is shared, and a server per episode is not', async () => {
  const { open } = await load({ s: program({ per: 'episode' }) });
  const [first, second] = [await open(), await open()];
  expect([await first.call('count'), await first.call('count'), await second.call('count')]).toEqual(['1', '2', '1']);
  const pid = Number(await first.call('pid'));
  await first.close();
  await expect.poll(() => isAlive(pid)).toBe(false);
  const shared = await load({ s: program() });
  const [third, fourth] = [await shared.open(), await shared.open()];
  expect([await third.call('count'), await fourth.call('count')]).toEqual(['1', '2']);
});

test('servers receive only the variables that the configuration names', async () => {
  const variables = { GIVEN_KEY: 'Bearer abc', HIDDEN_KEY: 'no' };
  const { call } = await (
    await load({ s: program({ pass_env: ['GIVEN_KEY'], env: { OWN: '1' } }) }, 5000, variables)
  ).open();
  expect(await call('variable', { name: 'GIVEN_KEY' })).toBe('Bearer abc');
  expect(await call('variable', { name: 'HIDDEN_KEY' })).toBe('unset');
  expect(await call('variable', { name: 'OWN' })).toBe('1');
  const http = await (await load({ s: site({ headers_env: { Authorization: 'GIVEN_KEY' } }) }, 5000, variables)).open();
  expect(await http.call('header')).toBe('Bearer abc');
});

test.each([
  [
    'a program that does not exist',
    () => program({ command: 'no-such-program' }),
    /tool server s \(no-such-program\), which could not be reached \(.*ENOENT/,
  ],
  [
    'a program that is no server',
    () => program({ args: ['-e', 'setTimeout(() => {}, 1e6)'], start_timeout_ms: 1000 }),
    /could not be reached \(.*timed out/,
  ],
  ['a program that ends', () => program({ args: ['-e', ''] }), /could not be reached \(.*Connection closed/],
  ['an address without a server', () => site({ url: 'http://127.0.0.1:9/mcp' }), /could not be reached \(/],
])('%s is refused when the environment is loaded', async (_, server, message) => {
  const { error } = await load({ s: server() }, 1500);
  expect(error?.message).toMatch(message);
});

test('two tools of the same name are refused', async () => {
  const { error } = await load({ s: program(), t: program() });
  expect(error?.message).toMatch(
    /has two tools named add: rename one of them, or remove a server from custom_envs\.P\.mcp_servers/,
  );
});
