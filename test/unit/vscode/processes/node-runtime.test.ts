import { expect, test } from 'vitest';
import {
  findNode,
  nodeSearch,
  trainerEnvironment,
  type NodeSearch,
} from '../../../../extension/vscode/processes/node-runtime';

/** A search on a simulated machine: Node versions by path. */
const search = (over: Partial<NodeSearch>, versions: Record<string, string> = {}): NodeSearch => ({
  setting: '',
  env: { PATH: '/usr/local/bin:relative:/usr/bin' },
  platform: 'linux',
  own: { path: '/editor/electron', electron: true },
  versionOf: async path => {
    if (versions[path] === undefined) throw Object.assign(new Error(`spawn ${path}`), { code: 'ENOENT' });
    return versions[path];
  },
  executable: async path => versions[path] !== undefined,
  ...over,
});

test('the setting comes first, and is never skipped', async () => {
  const versions = { '/opt/node': '22.1.0', '/usr/bin/node': '24.0.0' };
  expect(await findNode(search({ setting: ' /opt/node ' }, versions))).toEqual({
    path: '/opt/node',
    version: '22.1.0',
    electron: false,
  });
  await expect(findNode(search({ setting: '/opt/none' }, versions))).rejects.toThrow(
    /^ragen\.nodePath is \/opt\/none, which does not exist: /,
  );
  await expect(findNode(search({ setting: 'node' }, versions))).rejects.toThrow(
    /^ragen\.nodePath is node, which is not an absolute path: set an absolute path/,
  );
  await expect(findNode(search({ setting: '/opt/node' }, { '/opt/node': '18.20.0' }))).rejects.toThrow(
    /which is Node 18\.20\.0: set the path of Node 20 or newer/,
  );
});

test('PATH comes next, in its order, without versions that are too old', async () => {
  const versions = { '/usr/local/bin/node': '18.0.0', '/usr/bin/node': '20.0.0', '/editor/electron': '24.0.0' };
  expect(await findNode(search({}, versions))).toMatchObject({ path: '/usr/bin/node', electron: false });
});

test('the editor’s own runtime comes last', async () => {
  const versions = { '/usr/bin/node': '16.0.0', '/editor/electron': '22.0.0' };
  expect(await findNode(search({}, versions))).toEqual({ path: '/editor/electron', version: '22.0.0', electron: true });
});

test('without any Node, the error names what was found and the setting', async () => {
  const versions = { '/usr/bin/node': '16.0.0' };
  await expect(findNode(search({}, versions))).rejects.toThrow(
    'no Node 20 or newer was found (/usr/bin/node is 16.0.0, /editor/electron does not start): install Node 20 or newer, or set ragen.nodePath to the path of Node',
  );
});

test('a search on this machine finds Node', async () => {
  const found = await findNode(nodeSearch(process.execPath));
  expect(found).toEqual({ path: process.execPath, version: process.versions.node, electron: false });
});

test('the trainer gets none of the editor’s internal variables, and a silent ONNX Runtime', () => {
  const env = { PATH: '/bin', ELECTRON_RUN_AS_NODE: '1', VSCODE_IPC_HOOK: 'x', HOME: '/home' };
  expect(trainerEnvironment(env, { electron: false })).toEqual({
    PATH: '/bin',
    HOME: '/home',
    ORT_DISABLE_TELEMETRY: '1',
  });
  const secrets = () => ({ HF_TOKEN: 'hf_x' });
  expect(trainerEnvironment(env, { electron: false, secrets })).toMatchObject({
    HF_TOKEN: 'hf_x',
    PATH: '/bin',
    RAGEN_SECRET_NAMES: 'HF_TOKEN', // names only: their values are redacted
  });
  expect(JSON.stringify({ electron: false, secrets })).not.toContain('hf_x');
  expect(trainerEnvironment(env, { electron: true })).toEqual({
    PATH: '/bin',
    HOME: '/home',
    ORT_DISABLE_TELEMETRY: '1',
    ELECTRON_RUN_AS_NODE: '1',
  });
});
