// Hub data sets against a peer that speaks the hub's protocol: which files are fetched and where they are stored, which
// requests are sent, the errors when nothing is found, and how a run's environments get their data sets.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataSetOf, withDataSets } from '../../../extension/hub/data-sets';
import { hubOptions } from '../../../extension/hub/hub-call';
import { HubClient } from '../../../extension/hub/hub-client';
import { fetchHubDataSet, hubDataSet } from '../../../extension/hub/hub-data-set';
import countdown from '../../../envs/countdown/index';
import { openPeer, type Peer } from './hub-peer';

const golden = (name: string) => readFileSync(join(__dirname, '../../golden/data-sets', name));
const commit = 'da7a'.padEnd(40, '0');
const train = 'data/train-00000-of-00002.parquet';
let peer: Peer;
let cache: string;
let before: string | undefined;
const client = (more = {}) =>
  new HubClient({ ...hubOptions({ HF_ENDPOINT: peer.endpoint }), retryMs: 10, silenceMs: 5000, ...more });

beforeEach(async () => {
  peer = await openPeer({
    'org/countdown': {
      commit,
      revisions: ['refs/convert/parquet'],
      files: {
        'README.md': '# Problems',
        'dataset_infos.json': '{}',
        'extra.json': '[{"target": 1}]',
        [train]: { content: golden(`countdown/${train}`), lfs: true },
        'data/train-00001-of-00002.parquet': golden('countdown/data/train-00001-of-00002.parquet'),
        'other/test-00000-of-00001.parquet': golden('countdown/data/test-00000-of-00001.parquet'),
      },
    },
    'org/plain': { commit, files: { 'rows.json': '[{"a": 1}]', 'state.json': '{}' } },
    'org/none': { commit, files: { 'README.md': '#' } },
  });
  cache = mkdtempSync(join(tmpdir(), 'ragen-hub-data-'));
  before = process.env.HF_HUB_CACHE;
  process.env.HF_HUB_CACHE = cache;
});
afterEach(async () => {
  if (before === undefined) delete process.env.HF_HUB_CACHE;
  else process.env.HF_HUB_CACHE = before;
  await peer.close();
  rmSync(cache, { recursive: true, force: true });
});

test.each([
  ['hf://datasets/a/b', { repo: 'a/b', revision: 'main', folder: '' }],
  ['hf://datasets/a/b@v1/x/y/', { repo: 'a/b', revision: 'v1', folder: 'x/y' }],
  ['hf://datasets/a/b@refs/convert/parquet/x', { repo: 'a/b', revision: 'refs/convert/parquet', folder: 'x' }],
  ['hf://a/b', undefined],
  ['data/train.parquet', undefined],
])('the address %s is parsed', (text, set) => {
  expect(hubDataSet(text)).toEqual(set);
});

test('plain names are data sets only for dataset_path, and only when no such path exists', () => {
  const set = { repo: 'meta-math/MetaMathQA', revision: 'main', folder: '' };
  expect(dataSetOf('dataset_path', 'meta-math/MetaMathQA', cache)).toEqual(set);
  expect(dataSetOf('train_path', 'meta-math/MetaMathQA', cache)).toBeUndefined();
  expect(dataSetOf('dataset_path', 'test/golden', join(__dirname, '../../..'))).toBeUndefined();
  expect(dataSetOf('dataset_path', null, cache)).toBeUndefined();
});

test('Parquet files are fetched into their folders, once', async () => {
  const folder = await fetchHubDataSet(hubDataSet('hf://datasets/org/countdown')!, { client: client() });
  expect(folder.startsWith(join(cache, 'datasets--org--countdown'))).toBe(true);
  expect(readdirSync(folder, { recursive: true }).map(String).sort()).toEqual([
    'data',
    join('data', 'train-00000-of-00002.parquet'),
    join('data', 'train-00001-of-00002.parquet'),
    'download.json',
    'other',
    join('other', 'test-00000-of-00001.parquet'),
  ]);
  expect(readFileSync(join(folder, train))).toEqual(golden(`countdown/${train}`));
  expect(peer.requests.some(({ path }) => path.startsWith('/datasets/org/countdown/resolve/'))).toBe(true);
  const asked = peer.requests.length;
  expect(await fetchHubDataSet(hubDataSet('hf://datasets/org/countdown')!, { client: client() })).toBe(folder);
  expect(peer.requests).toHaveLength(asked);
});

test('one folder of a data set is fetched, and JSON when there is nothing better', async () => {
  const part = await fetchHubDataSet(hubDataSet('hf://datasets/org/countdown@refs/convert/parquet/other')!, {
    client: client(),
  });
  expect(readdirSync(part).sort()).toEqual(['download.json', 'other']);
  const plain = await fetchHubDataSet(hubDataSet('hf://datasets/org/plain')!, { client: client() });
  expect(readdirSync(plain).sort()).toEqual(['download.json', 'rows.json']);
});

test('rows changed in the cache are fetched again, or refused by name without the hub', async () => {
  const set = hubDataSet('hf://datasets/org/countdown')!;
  const folder = await fetchHubDataSet(set, { client: client() });
  const damage = (): void => {
    const bytes = readFileSync(join(folder, train));
    bytes[bytes.length >> 1] ^= 1;
    writeFileSync(join(folder, train), bytes);
  };
  damage();
  await expect(fetchHubDataSet(set, { client: client({ offline: true }) })).rejects.toThrow(
    `hub: ${join(folder, train)} is damaged (its hash is not `,
  );
  expect(await fetchHubDataSet(set, { client: client() })).toBe(folder);
  expect(readFileSync(join(folder, train))).toEqual(golden(`countdown/${train}`));
});

test('what cannot be fetched is reported', async () => {
  const fetch = (text: string, more = {}) => fetchHubDataSet(hubDataSet(text)!, { client: client(more) });
  await expect(fetch('hf://datasets/org/none')).rejects.toThrow(
    'hub: the data set org/none has no .parquet, .jsonl, .json files at main: choose the revision refs/convert/parquet, or another data set',
  );
  await expect(fetch('hf://datasets/org/missing')).rejects.toThrow(
    /has no accessible data set org\/missing \(401\): check the name/,
  );
  await expect(fetch('hf://datasets/org/plain', { offline: true })).rejects.toThrow(
    /^hub: HF_HUB_OFFLINE is set, and \S+ does not contain the data set org\/plain at main: go online once to download it/,
  );
});

test('an environment uses the data set of its configuration', async () => {
  const reported: string[] = [];
  const spec = {
    tag: 'Countdown',
    env_type: 'countdown',
    source: 'x',
    config: { train_path: 'hf://datasets/org/countdown', max_instances: 30 },
  };
  const [{ config }] = await withDataSets([spec], cache, line => reported.push(line), { client: client() });
  expect(reported).toEqual(['fetching the data set org/countdown (1 MB) for Countdown']);
  expect(config.max_instances).toBe(30);
  const environment = countdown.create(countdown.config.parse(config));
  expect(await environment.reset({ seed: 23 })).toEqual({ observation: 'Target: 78, nums: [25, 26, 27]' });
  expect(spec.config.train_path).toBe('hf://datasets/org/countdown');
});
