// docs/environments/tool-calling.md: its environments are type-checked, keep the contract and are played with their tools
// in the environment process as shipped, in a folder without node_modules. Its configurations load.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callAction } from '../../../envs/api/tools/call-action';
import { TypeCheckService } from '../../../extension/environments/runtime/build/type-check';
import type { EnvironmentProcess } from '../../../extension/environments/client/environment-process';
import { environmentSpecs } from '../../../extension/environments/client/environment-specs';
import { loadConfig } from '../../../extension/trainer/config/load-config';
import { presetFolder } from '../trainer/config/presets';
import { root, startProcess } from '../../support/bundles';

const text = readFileSync(join(root, 'docs/environments/tool-calling.md'), 'utf8');
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(([, code]) => code);
const [parcels, sums] = blocks('ts');
const [configuration, servers] = blocks('yaml');

const presetFolders = (): string[] => [join(folder, 'config'), presetFolder];
let running: EnvironmentProcess;
let folder: string;
const write = (name: string, content: string): string => {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-tools-'));
  write('envs/parcels.ts', parcels);
  ({ running } = await startProcess(join(root, 'dist/environment-host.cjs'), { stepTimeoutMs: 20_000 }));
});
afterAll(async () => {
  await running.stop();
  rmSync(folder, { recursive: true });
});

test('the code blocks have no type errors', () => {
  expect(blocks('ts').length).toBe(2);
  const service = new TypeCheckService(ts, root);
  const files = [parcels, sums].map((code, i) => write(`checked-${i}.ts`, code));
  expect(files.flatMap(file => service.check(file).problems)).toEqual([]);
});

test('the example keeps the contract', () => {
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(root, 'dist/cli.cjs'), 'env', 'check', 'envs/parcels.ts'],
    { cwd: folder, encoding: 'utf8' },
  );
  expect([status, stdout]).toEqual([0, expect.not.stringContaining('✗') as string]);
  expect(stdout).toContain('The solver solves 8 of 8 seeds.');
});

test('the example is played with its tools, by its configuration', async () => {
  write('config/parcels.yaml', configuration);
  const { config } = loadConfig({
    configName: 'parcels',
    overrides: [],
    presetFolders: presetFolders(),
    workspace: folder,
  });
  expect(config.workbench.tools).toMatchObject({ format: 'auto', max_calls_per_turn: 4, max_calls: 8 });
  const specs = environmentSpecs(['Parcels'], config.custom_envs, join(root, 'envs'), folder, config.workbench.tools);
  const { error, environments } = await running.load(specs);
  expect([error, environments[0].tools?.map(({ name }) => name)]).toEqual([undefined, ['weigh']]);
  await running.reset([{ episode: 'e', tag: 'Parcels', seed: 7, member: 0, mode: 'train' }]);
  const weigh = (parcel: number) => ({ name: 'weigh', arguments: { parcel } });
  const [weighed] = await running.step([{ episode: 'e', actions: [callAction([1, 2, 3, 4].map(weigh))] }]);
  const results = weighed.outcomes[0].calls!.map(({ result }) => result);
  expect(results[3]).toBe('Error: there is no parcel 4');
  const weights = results.slice(0, 3).map(result => Number(/^(\d+) kg$/.exec(result)![1]));
  const [answered] = await running.step([
    { episode: 'e', actions: [String(weights.indexOf(Math.max(...weights)) + 1)] },
  ]);
  expect(answered.outcomes[0]).toMatchObject({ reward: 1, terminated: true, info: { success: true } });
});

test('the servers of the guide are accepted, with their defaults', () => {
  const inTag = servers.split('\n').slice(2).join('\n'); // below custom_envs.Parcels
  write('config/servers.yaml', configuration.replace('\nagent_proxy', `\n${inTag}agent_proxy`));
  const { config } = loadConfig({
    configName: 'servers',
    overrides: [],
    presetFolders: presetFolders(),
    workspace: folder,
  });
  expect(config.custom_envs.Parcels.mcp_servers).toMatchObject({
    notes: { command: 'npx', per: 'episode', pass_env: ['NOTES_KEY'], env: {} },
    web: { url: 'https://tools.example.org/mcp', per: 'run', headers_env: { Authorization: 'WEB_AUTHORIZATION' } },
  });
});

test('programs of the model run in the sandbox', async () => {
  const source = write('envs/sums.ts', sums);
  const { error } = await running.load([{ tag: 'Sums', env_type: source, source, config: {} }]);
  expect(error).toBeUndefined();
  await running.reset([{ episode: 's', tag: 'Sums', seed: 0, member: 0, mode: 'train' }]);
  const code = 'print(sum(i * i for i in range(1, 101)))';
  const [ran] = await running.step([
    { episode: 's', actions: [callAction([{ name: 'python', arguments: { code } }])] },
  ]);
  expect(ran.outcomes[0].calls![0]).toMatchObject({ result: '338350\n', error: false });
  const [answered] = await running.step([{ episode: 's', actions: ['338350'] }]);
  expect(answered.outcomes[0].reward).toBe(1);
});
