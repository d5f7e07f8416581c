// Hub models against a peer that speaks the hub's protocol: what is fetched, kept and requested again, and the message
// of each failure. Nothing is visible before it is complete.
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UserError } from '../../../extension/common/user-error';
import { HubCache } from '../../../extension/hub/hub-cache';
import { hubOptions } from '../../../extension/hub/hub-call';
import { HubClient } from '../../../extension/hub/hub-client';
import { fetchHubModel, fetchHubTexts, findHubModel, withSmallFiles } from '../../../extension/hub/hub-model';
import type { FetchOptions, HubProgress } from '../../../extension/hub/hub-model';
import { failingFiles } from '../../support/failing-files';
import { fileOf, gitSha1, openPeer, sha256, token } from './hub-peer';
import type { Peer, PeerFile, PeerModel } from './hub-peer';
import { thisHost } from '../../../extension/hub/partial-downloads';

const commit = 'c0ffee'.padEnd(40, '0');
const repo = 'org/small-1.5';
const noise = (bytes: number, seed = 1): Buffer => {
  const content = Buffer.alloc(bytes);
  for (let i = 0, x = seed; i < bytes; i++) content[i] = x = (x * 75 + 74) % 65537;
  return content;
};
const weights = noise(3_000_000);
/** A repository with a sharded model and many files that the trainer does not need. */
const sharded = (): PeerModel => ({
  commit,
  revisions: ['v1.0', 'refs/pr/7'],
  files: {
    '.gitattributes': '*.safetensors filter=lfs',
    'README.md': '# A model',
    'config.json': '{"model_type":"qwen2"}',
    'generation_config.json': '{"eos_token_id":1}',
    'tokenizer.json': noise(50_000, 2),
    'tokenizer_config.json': '{}',
    'chat_template.jinja': '{{ messages }}',
    'model.safetensors.index.json': JSON.stringify({
      weight_map: { a: 'model-00001-of-00002.safetensors', b: 'model-00002-of-00002.safetensors' },
    }),
    'model-00001-of-00002.safetensors': weights,
    'model-00002-of-00002.safetensors': { content: noise(700_000, 3) },
    'consolidated.safetensors': noise(1000, 4),
    'pytorch_model.bin': noise(1000, 5),
    'vocab.json': '{}',
  },
});
const single = (file: Partial<PeerFile> = {}): PeerModel => ({
  commit,
  files: { 'config.json': '{}', 'tokenizer.json': '{}', 'model.safetensors': { content: weights, ...file } },
});

let peer: Peer;
let cache: string;
const others: Peer[] = [];

beforeEach(async () => {
  cache = mkdtempSync(join(tmpdir(), 'ragen-hub-'));
  process.env.HF_HUB_CACHE = cache;
  peer = await open({ [repo]: sharded() });
});
afterEach(async () => {
  await Promise.all(others.splice(0).map(other => other.close()));
  rmSync(cache, { recursive: true, force: true });
  delete process.env.HF_HUB_CACHE;
});

async function open(models: Record<string, PeerModel>): Promise<Peer> {
  const opened = await openPeer(models);
  others.push(opened);
  return opened;
}
const clientFor = (env: Record<string, string> = {}, more: { silenceMs?: number } = {}): HubClient =>
  new HubClient({ ...hubOptions({ HF_ENDPOINT: peer.endpoint, ...env }), retryMs: 1, silenceMs: 5000, ...more });
const fetchModel = (revision = 'main', options: FetchOptions = {}) =>
  fetchHubModel({ repo, revision }, { client: clientFor(), ...options });
/** The error message of a failed fetch. */
const sentence = async (failing: Promise<unknown>): Promise<string> => {
  const error = await failing.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(UserError);
  const { message } = error as Error;
  expect(message).toMatch(/^(hub|store): [^\n]+: [^\n]+[^.\n]$/);
  return message;
};
const root = (): string => join(cache, 'models--org--small-1.5');
const own = (): string => join(root(), 'ragen');
const partials = (): string[] => readdirSync(join(own(), 'partial'));
/** Start offset of a range request. */
const startOf = (text: string): number => Number(/ (\d+)-$/.exec(text)?.[1]);
/** Node may discard bytes that arrived right before a broken connection. */
const isNearly = (bytes: number, sent: number): void => {
  expect(bytes).toBeLessThanOrEqual(sent);
  expect(bytes).toBeGreaterThan(sent - 300_000);
};
/** Compares checksums: comparing megabytes by element would take seconds. */
const holds = (file: string, content: Buffer): void => expect(sha256(readFileSync(file))).toBe(sha256(content));
/** Names that could be taken for a model; empty until a model is complete. */
const visible = (): string[] =>
  existsSync(own()) ? readdirSync(own()).filter(name => !['partial', 'refs'].includes(name)) : [];

/** Changes a byte in the middle of a file and keeps its size. */
const damage = (file: string): void => {
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(file, bytes);
};
const firstShard = 'model-00001-of-00002.safetensors';

describe('a file that changed in the cache', () => {
  test.each([firstShard, 'config.json', 'tokenizer.json'])('%s is fetched again, and nothing else', async name => {
    const { folder } = await fetchModel();
    const [before, whole] = [peer.contents().length, readFileSync(join(folder, name))];
    damage(join(folder, name));
    expect(await fetchModel()).toMatchObject({ folder, commit });
    expect(readFileSync(join(folder, name)).equals(whole)).toBe(true);
    expect(peer.contents().slice(before)).toEqual([name]);
    const asked = peer.requests.length;
    expect(await fetchModel()).toMatchObject({ folder, commit });
    expect(peer.requests).toHaveLength(asked);
  });

  test('ends with the reason of an aborted signal', async () => {
    await fetchModel();
    const [signal, reason] = [new AbortController(), new Error('stopped')];
    const found = findHubModel({ repo, revision: 'main' }, { client: clientFor(), signal: signal.signal });
    signal.abort(reason);
    await expect(found).rejects.toBe(reason);
  });

  test('is detected beside another changed file, before either is used', async () => {
    const { folder } = await fetchModel();
    const names = ['config.json', 'tokenizer.json'];
    const whole = names.map(name => readFileSync(join(folder, name)));
    for (const name of names) damage(join(folder, name));
    await fetchModel();
    expect(names.map((name, i) => readFileSync(join(folder, name)).equals(whole[i]))).toEqual([true, true]);
  });

  test('is refused by name when the hub cannot be reached, and repaired when it can', async () => {
    const { folder } = await fetchModel();
    damage(join(folder, firstShard));
    const offline = { client: clientFor({ HF_HUB_OFFLINE: '1' }) };
    const said = await sentence(fetchModel('main', offline));
    expect(said).toContain(`hub: ${join(folder, firstShard)} is damaged (its hash is not ${sha256(weights)})`);
    expect(said).toMatch(/HF_HUB_OFFLINE is set\): go online once, or replace .*$/);
    await fetchModel();
    expect((await fetchModel('main', offline)).folder).toBe(folder);
    holds(join(folder, firstShard), weights);
  });
});

describe('a model', () => {
  test('is fetched with the files that the trainer reads, and nothing else', async () => {
    const { folder, commit: at } = await fetchModel();
    expect(at).toBe(commit);
    const wanted = [
      'chat_template.jinja',
      'config.json',
      'generation_config.json',
      'model-00001-of-00002.safetensors',
      'model-00002-of-00002.safetensors',
      'model.safetensors.index.json',
      'tokenizer.json',
      'tokenizer_config.json',
    ];
    expect(readdirSync(folder).sort()).toEqual([...wanted, 'download.json'].sort());
    for (const name of wanted) holds(join(folder, name), fileOf(sharded(), name)!.content);
    expect(peer.contents().sort()).toEqual(wanted);
    expect(visible()).toEqual([commit]);
    expect(partials()).toEqual([]);
    for (const name of wanted) expect(statSync(join(folder, name)).nlink).toBe(2); // the blob and the folder: no second copy
    holds(join(root(), 'blobs', sha256(weights)), weights);
    const config = Buffer.from('{"model_type":"qwen2"}');
    holds(join(root(), 'blobs', gitSha1(config)), config);
    expect(peer.requests.every(({ encoding }) => encoding === 'identity')).toBe(true);
  });

  test('in the cache is used without network access, by revision, by tag and by commit', async () => {
    const first = await fetchModel();
    await fetchModel('v1.0');
    const asked = peer.requests.length;
    for (const revision of ['main', 'v1.0', commit]) expect((await fetchModel(revision)).folder).toBe(first.folder);
    await peer.close();
    expect((await fetchModel()).folder).toBe(first.folder);
    expect(await findHubModel({ repo, revision: 'main' }, { client: clientFor() })).toMatchObject(first);
    expect(peer.requests.length).toBe(asked);
  });

  test('at another revision shares equal files, and both stay', async () => {
    const first = await fetchModel();
    const later = sharded();
    later.commit = 'beef'.padEnd(40, '1');
    later.files['config.json'] = '{"model_type":"qwen3"}';
    peer.models[repo] = later;
    expect((await fetchModel()).folder).toBe(first.folder); // once fetched, main stays at its commit
    peer.requests.length = 0;
    const second = await fetchModel(later.commit);
    expect(peer.contents()).toEqual(['config.json']);
    expect(readFileSync(join(second.folder, 'config.json'), 'utf8')).toContain('qwen3');
    expect(readFileSync(join(first.folder, 'config.json'), 'utf8')).toContain('qwen2');
  });

  test('whose weights are on a server is fetched without them, once, and is there without network access', async () => {
    const texts = () => fetchHubTexts({ repo, revision: 'main' }, { client: clientFor() });
    const first = await texts();
    expect(first.commit).toBe(commit);
    expect(readdirSync(first.folder).filter(name => name.endsWith('.safetensors'))).toEqual([]);
    holds(join(first.folder, 'tokenizer.json'), noise(50_000, 2));
    const asked = peer.requests.length;
    await peer.close();
    expect(await texts()).toEqual(first);
    expect(peer.requests.length).toBe(asked);
    damage(join(first.folder, 'tokenizer.json'));
    await expect(texts()).rejects.toThrow(UserError);
    peer = await open({ [repo]: sharded() });
    expect(await texts()).toEqual(first);
    holds(join(first.folder, 'tokenizer.json'), noise(50_000, 2));
    const { folder } = await fetchModel();
    expect(folder).not.toBe(first.folder);
  });

  test('at a revision with slashes is fetched', async () => {
    expect((await fetchModel('refs/pr/7')).commit).toBe(commit);
    await peer.close();
    expect((await fetchModel('refs/pr/7')).commit).toBe(commit);
  });

  test('reports its progress: all bytes, never decreasing', async () => {
    const received: HubProgress[] = [];
    const { files } = await fetchModel('main', { onProgress: progress => received.push(progress) });
    const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    expect(received.every(progress => progress.total === total)).toBe(true);
    expect(received.every(({ bytes }, i) => i === 0 || bytes >= received[i - 1].bytes)).toBe(true);
    expect(received.at(-1)!.bytes).toBe(total);
    expect(new Set(received.map(({ file }) => file)).size).toBe(files.length);
    expect(received.length).toBeGreaterThan(10);
  });

  test('is described before its weights are downloaded', async () => {
    const facts = await findHubModel({ repo, revision: 'main' }, { client: clientFor() });
    expect(facts).toMatchObject({ commit, folder: null });
    expect(peer.contents().some(name => name.includes('-of-'))).toBe(false);
    expect(facts.files.find(({ name }) => name.startsWith('model-00001'))).toMatchObject({
      bytes: weights.length,
      etag: sha256(weights),
    });
    let seen = '';
    await withSmallFiles(facts, async folder => {
      seen = folder;
      expect(readFileSync(join(folder, 'config.json'), 'utf8')).toContain('qwen2');
      expect(readdirSync(folder).some(name => name.endsWith('.safetensors'))).toBe(false);
    });
    expect(existsSync(seen)).toBe(false);
    expect(visible()).toEqual([]);
  });

  test('in a single file is fetched, and an additional index is ignored', async () => {
    peer.models[repo] = sharded();
    peer.models[repo].files['model.safetensors'] = noise(10, 9);
    const { files } = await fetchModel();
    expect(files.map(({ name }) => name).filter(name => name.includes('safetensors'))).toEqual(['model.safetensors']);
  });

  test('that is an adapter is fetched', async () => {
    peer.models[repo] = {
      commit,
      files: {
        'adapter_config.json': '{}',
        'adapter_model.safetensors': noise(99),
        'README.md': '',
        'optimizer.pt': '',
      },
    };
    const { folder } = await fetchModel();
    expect(readdirSync(folder).sort()).toEqual(['adapter_config.json', 'adapter_model.safetensors', 'download.json']);
  });

  test('with a damaged folder is restored from the cached files', async () => {
    const { folder } = await fetchModel();
    rmSync(join(folder, 'config.json'));
    peer.requests.length = 0;
    expect((await fetchModel()).folder).toBe(folder);
    holds(join(folder, 'config.json'), Buffer.from('{"model_type":"qwen2"}'));
    expect(peer.contents()).toEqual([]);
    truncateSync(join(folder, 'model-00001-of-00002.safetensors'), 1000); // the blob as well: they are one file
    await fetchModel();
    holds(join(folder, 'model-00001-of-00002.safetensors'), weights);
    expect(visible()).toEqual([commit]);
  });

  test('with an empty file is fetched', async () => {
    peer.models[repo].files['generation_config.json'] = '';
    const { folder } = await fetchModel();
    expect(readFileSync(join(folder, 'generation_config.json'), 'utf8')).toBe('');
  });
});

describe('the token', () => {
  test('is sent to the hub only', async () => {
    peer.models[repo].private = true;
    await fetchModel('main', { client: clientFor({ HF_TOKEN: token }) });
    const [hub, store] = ['hub', 'store'].map(host => peer.requests.filter(request => request.host === host));
    expect(hub.every(({ authorization }) => authorization === `Bearer ${token}`)).toBe(true);
    expect(store.length).toBeGreaterThan(0);
    expect(store.every(({ authorization }) => authorization === undefined)).toBe(true);
  });

  test('of any form is sent unchanged; without a token none is sent', async () => {
    expect(await sentence(fetchModel('main', { client: clientFor({ HF_TOKEN: 'mirror-secret' }) }))).toBe(
      `hub: ${peer.endpoint} does not accept the token in HF_TOKEN: set HF_TOKEN to a valid token, or unset it`,
    );
    peer.requests.length = 0;
    await fetchModel('main', { client: clientFor({ HF_TOKEN: '' }) });
    expect(peer.requests.every(({ authorization }) => authorization === undefined)).toBe(true);
  });
});

describe('a broken connection', () => {
  test('is resumed: only the rest is requested', async () => {
    peer.models[repo] = single({ cuts: [1_000_000, 500_000, 0] });
    const { folder } = await fetchModel();
    holds(join(folder, 'model.safetensors'), weights);
    const [first, ...rests] = peer.contents().filter(text => text.startsWith('model.safetensors'));
    expect(first).toBe('model.safetensors');
    expect(rests.length).toBe(3);
    const [afterOne, afterTwo, afterThree] = rests.map(startOf);
    isNearly(afterOne, 1_000_000);
    isNearly(afterTwo, afterOne + 500_000);
    expect(afterThree).toBe(afterTwo);
  });

  test('in a small file is retried', async () => {
    peer.models[repo] = single();
    peer.models[repo].files['tokenizer.json'] = { content: noise(5000), lfs: false, cuts: [10, 20] };
    const { folder } = await fetchModel();
    holds(join(folder, 'tokenizer.json'), noise(5000));
    const last = peer
      .contents()
      .filter(text => text.startsWith('tokenizer.json'))
      .at(-1)!;
    expect(/ /.test(last) ? startOf(last) : 0).toBeLessThanOrEqual(30);
  });

  test('that repeats without progress ends in a sentence, and received bytes are kept for the next time', async () => {
    peer.models[repo] = single({ cuts: [1_200_000, 0, 0, 0, 0, 0, 0, 0, 0] });
    expect(await sentence(fetchModel())).toMatch(/^hub: http:.* disconnected.*: check the network/);
    expect(visible()).toEqual([]);
    expect(partials()).toEqual([sha256(weights)]);
    const kept = statSync(join(own(), 'partial', sha256(weights))).size;
    isNearly(kept, 1_200_000);
    peer.models[repo] = single();
    peer.requests.length = 0;
    const received: number[] = [];
    const { folder } = await fetchModel('main', { onProgress: ({ bytes }) => received.push(bytes) });
    expect(peer.contents()).toEqual([`model.safetensors ${kept}-`]);
    expect(received.find(bytes => bytes > 1000)).toBe(kept + 4); // from the previous offset
    holds(join(folder, 'model.safetensors'), weights);
    expect(partials()).toEqual([]);
  });

  test('that stalls is aborted', async () => {
    peer.models[repo] = single({ standsStill: [100_000, 200_000, 0, 0, 0, 0, 0, 0] });
    const message = await sentence(fetchModel('main', { client: clientFor({}, { silenceMs: 250 }) }));
    expect(message).toMatch(/^hub: http:.* has sent nothing for 0\.25 s: check the network/);
    const kept = statSync(join(own(), 'partial', sha256(weights))).size;
    isNearly(kept, 300_000);
    peer.requests.length = 0;
    peer.models[repo] = single({ standsStill: [100_000] }); // a connection that was lost and restored
    const { folder } = await fetchModel('main', { client: clientFor({}, { silenceMs: 250 }) });
    // A slow machine may abort further connections, so only the first two requests are determined.
    const [first, second] = peer.contents().map(startOf);
    expect(first).toBe(kept);
    isNearly(second, kept + 100_000);
    holds(join(folder, 'model.safetensors'), weights);
  });

  test('that is slow but alive is waited for', async () => {
    peer.models[repo] = single({ slowly: { bytes: 500_000, ms: 40 } }); // longer in total than the allowed silence
    const client = clientFor({}, { silenceMs: 200 });
    holds(join((await fetchModel('main', { client })).folder, 'model.safetensors'), weights);
  });

  test('in the list, or a briefly overloaded hub, is retried', async () => {
    peer.fails = [503, 429, 500];
    expect((await fetchModel()).commit).toBe(commit);
    peer.models[repo] = { ...single({ fails: [502, 403] }), commit: 'd'.repeat(40) }; // 403: an expired store link
    expect((await fetchModel('d'.repeat(40))).commit).toBe('d'.repeat(40));
  });

  test('to a hub that stays overloaded ends in a sentence', async () => {
    peer.fails = Array<number>(100).fill(503);
    expect(await sentence(fetchModel())).toMatch(
      /^hub: .* answers 503 .*, and .* does not contain org\/small-1\.5 at main: /,
    );
    peer.fails = [];
    peer.models[repo] = single({ fails: Array<number>(100).fill(504) });
    expect(await sentence(fetchModel())).toMatch(/answers 504 to the request for org\/small-1\.5: try again later$/);
  });

  test('to a server without or with refused ranges is retried with the whole file', async () => {
    for (const range of ['ignored', 'refused'] as const) {
      const at = (range === 'ignored' ? 'a' : 'b').repeat(40);
      const content = noise(2_000_000, at.charCodeAt(0));
      peer.models[repo] = { ...single({ content, cuts: [1_500_000], range }), commit: at };
      const { folder } = await fetchModel(at);
      holds(join(folder, 'model.safetensors'), content);
    }
  });
});

describe('another process', () => {
  const partial = (name: string, bytes: number): string => {
    mkdirSync(join(own(), 'partial'), { recursive: true });
    const file = join(own(), 'partial', `${sha256(weights)}${name}`);
    writeFileSync(file, weights.subarray(0, bytes));
    return file;
  };

  test('that was killed left a partial file: it is continued', async () => {
    peer.models[repo] = single();
    const child = spawn(process.execPath, ['-e', '0']);
    await new Promise(done => child.once('exit', done));
    partial(`.${thisHost}.${child.pid}.abcd`, 2_000_000);
    partial('', 1_000_000);
    await fetchModel();
    expect(peer.contents()).toContain('model.safetensors 2000000-'); // the longer one
  });

  test('that is downloading is waited for, and its partial file continued when it dies', async () => {
    peer.models[repo] = single();
    const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)']);
    try {
      partial(`.${thisHost}.${child.pid}.abcd`, 2_500_000);
      const received: number[] = [];
      const fetching = fetchModel('main', { onProgress: ({ bytes }) => received.push(bytes) });
      await expect.poll(() => received.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(20);
      expect(received.at(-1)).toBe(2_500_000 + 4);
      expect(peer.contents()).not.toContain('model.safetensors');
      child.kill('SIGKILL');
      await fetching;
      expect(peer.contents()).toContain('model.safetensors 2500000-');
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('that is downloading and finishes: nothing is fetched twice', async () => {
    peer.models[repo] = single({ slowly: { bytes: 300_000, ms: 10 } });
    let begun = (): void => undefined;
    const underWay = new Promise<void>(resolve => (begun = resolve));
    const [first, second] = await Promise.all([
      fetchModel('main', { onProgress: ({ bytes }) => bytes > 300_000 && begun() }),
      underWay.then(() => fetchModel()),
    ]);
    expect(second.folder).toBe(first.folder);
    expect(peer.contents().filter(name => name.startsWith('model.safetensors'))).toEqual(['model.safetensors']);
  });

  test('of Hugging Face’s own tools: their blobs are shared, and their complete models need no network', async () => {
    const blobs = join(root(), 'blobs');
    const snapshot = join(root(), 'snapshots', commit);
    mkdirSync(blobs, { recursive: true });
    mkdirSync(snapshot, { recursive: true });
    mkdirSync(join(root(), 'refs'), { recursive: true });
    writeFileSync(join(root(), 'refs/main'), commit);
    writeFileSync(join(blobs, sha256(weights)), weights);
    peer.models[repo] = single();
    symlinkSync(join('../../blobs', sha256(weights)), join(snapshot, 'model.safetensors'));
    const offline = { client: clientFor({ HF_HUB_OFFLINE: '1' }) };
    expect(await sentence(fetchModel('main', offline))).toMatch(
      /^hub: HF_HUB_OFFLINE is set, and .*models--org--small-1\.5 does not contain org\/small-1\.5 at main: go online once/,
    ); // no config.json, no tokenizer
    for (const name of ['config.json', 'tokenizer.json']) {
      writeFileSync(join(blobs, gitSha1(Buffer.from('{}'))), '{}');
      symlinkSync(join('../../blobs', gitSha1(Buffer.from('{}'))), join(snapshot, name));
    }
    const { folder } = await fetchModel('main', offline);
    expect(peer.requests).toEqual([]);
    expect(readdirSync(folder).sort()).toEqual(['config.json', 'download.json', 'model.safetensors', 'tokenizer.json']);
    holds(join(folder, 'model.safetensors'), weights);
    rmSync(own(), { recursive: true });
    await fetchModel();
    expect(peer.contents()).toEqual(['tokenizer.json']); // large there and small here: another name for the same bytes
  });
});

describe('content that does not match the list', () => {
  test('is downloaded again from the start when it is wrong once', async () => {
    peer.models[repo] = single();
    mkdirSync(join(own(), 'partial'), { recursive: true });
    writeFileSync(join(own(), 'partial', sha256(weights)), noise(1_000_000, 77)); // a bad partial file from before
    holds(join((await fetchModel()).folder, 'model.safetensors'), weights);
    expect(peer.contents().slice(-2)).toEqual(['model.safetensors 1000000-', 'model.safetensors']);
  });

  test('is refused in a sentence when it is wrong each time, and nothing of it is kept', async () => {
    const sent = Buffer.from(weights);
    sent[1_234_567] ^= 1;
    peer.models[repo] = single({ sent });
    expect(await sentence(fetchModel())).toMatch(
      /^hub: model\.safetensors of org\/small-1\.5 arrived damaged twice \(its hash is not [0-9a-f]{64}\): try again later/,
    );
    expect(visible()).toEqual([]);
    expect(partials()).toEqual([]);
    expect(existsSync(join(root(), 'blobs', sha256(weights)))).toBe(false);
  });

  test('is detected in a small file too, by git’s checksum', async () => {
    peer.models[repo].files['config.json'] = { content: Buffer.from('{"a":1}'), sent: Buffer.from('{"a":2}') };
    expect(await sentence(fetchModel())).toMatch(/config\.json of org\/small-1\.5 arrived damaged twice/);
  });

  test('is refused when its size differs', async () => {
    peer.models[repo] = single({ sent: weights.subarray(1) });
    expect(await sentence(fetchModel())).toBe(
      "hub: model.safetensors of org/small-1.5 has 2999999 bytes, but 3000000 according to the hub's file list: try again later, or choose another revision",
    );
    expect(visible()).toEqual([]);
  });

  test('is downloaded again when the partial file is too long', async () => {
    peer.models[repo] = single();
    mkdirSync(join(own(), 'partial'), { recursive: true });
    writeFileSync(join(own(), 'partial', sha256(weights)), noise(3_000_001));
    holds(join((await fetchModel()).folder, 'model.safetensors'), weights);
  });

  test('needs no request when the partial file is complete', async () => {
    peer.models[repo] = single();
    mkdirSync(join(own(), 'partial'), { recursive: true });
    writeFileSync(join(own(), 'partial', sha256(weights)), weights);
    await fetchModel();
    expect(peer.contents()).not.toContain('model.safetensors');
  });
});

describe('refusals', () => {
  test('cover a missing or private model', async () => {
    const ask = (env: Record<string, string>) =>
      sentence(fetchHubModel({ repo: 'org/none', revision: 'main' }, { client: clientFor(env) }));
    expect(await ask({})).toBe(
      `hub: ${peer.endpoint} has no accessible model org/none (401): check the name, and set HF_TOKEN if the repository is private`,
    );
    expect(await ask({ HF_TOKEN: token })).toBe(
      `hub: ${peer.endpoint} has no accessible model org/none (404): check the name, and check that the token in HF_TOKEN may read it`,
    );
  });

  test('cover a gated model', async () => {
    peer.models[repo].gated = true;
    expect(await sentence(fetchModel())).toBe(
      `hub: org/small-1.5 requires that you accept its terms: accept them at ${peer.endpoint}/org/small-1.5 and set HF_TOKEN to your token`,
    );
    expect(await sentence(fetchModel('main', { client: clientFor({ HF_TOKEN: token }) }))).toMatch(
      /and set HF_TOKEN to a token of the same account$/,
    );
  });

  test('cover a missing revision', async () => {
    expect(await sentence(fetchModel('v9'))).toBe(
      'hub: org/small-1.5 has no revision v9: give one of its branches, tags or commits after the @',
    );
  });

  test('cover a repository without a model', async () => {
    const without = async (...names: string[]): Promise<string> => {
      peer.models[repo] = sharded();
      for (const name of names) delete peer.models[repo].files[name];
      return sentence(fetchModel());
    };
    expect(await without('config.json')).toMatch(/has no config\.json, so it is not a model.*: choose another/);
    expect(await without('model.safetensors.index.json')).toMatch(/no weights in safetensors format.*: choose/);
    expect(await without('model-00002-of-00002.safetensors')).toMatch(
      /index\.json of org\/small-1\.5 names model-00002-of-00002\.safetensors, which is missing/,
    );
    peer.models[repo] = sharded();
    peer.models[repo].files['model.safetensors.index.json'] = '{"weight_map": 3}';
    expect(await sentence(fetchModel())).toMatch(/is not an index of shards/);
  });

  test('cover an unreachable hub', async () => {
    await peer.close();
    expect(await sentence(fetchModel())).toBe(
      `hub: ${peer.endpoint} cannot be reached (ECONNREFUSED), and ${root()} does not contain org/small-1.5 at main: go online once to download it, or give the path of a model folder`,
    );
  });

  test('cover a host name that does not resolve', async () => {
    const client = clientFor({ HF_ENDPOINT: 'https://hub.invalid' });
    expect(await sentence(fetchModel('main', { client }))).toMatch(
      /^hub: https:\/\/hub\.invalid cannot be reached \((ENOTFOUND|EAI_AGAIN)\), and/,
    );
  });

  test('cover an invalid address', () => {
    expect(() => hubOptions({ HF_ENDPOINT: 'huggingface.co' })).toThrow(
      'hub: HF_ENDPOINT is "huggingface.co": set it to an address such as https://huggingface.co',
    );
  });

  test('cover a server that is not a hub', async () => {
    const { createServer } = await import('node:http');
    const page = createServer((_, response) => response.end('<html>Please log in</html>'));
    await new Promise<void>(done => page.listen(0, '127.0.0.1', done));
    const { port } = page.address() as { port: number };
    const client = clientFor({ HF_ENDPOINT: `http://127.0.0.1:${port}/` });
    expect(await sentence(fetchModel('main', { client }))).toBe(
      `hub: http://127.0.0.1:${port} is not a Hugging Face hub: check HF_ENDPOINT, and whether the network requires a login`,
    );
    page.close();
  });
});

describe('the disk', () => {
  test('that is full in the middle gives a sentence; written bytes are kept, and the next time continues', async () => {
    peer.models[repo] = single();
    for (const at of [1, 3, 6, 9]) {
      const failure = { calls: 0, at, after: 'dead' as const };
      const message = await sentence(fetchModel('main', { fs: failingFiles(failure) }));
      expect(message).toMatch(/^store: cannot write .*partial.* \(ENOSPC\): the disk is full: free space/);
      expect(visible()).toEqual([]);
    }
    const { folder } = await fetchModel();
    holds(join(folder, 'model.safetensors'), weights);
    expect(partials()).toEqual([]);
  });

  test('that is too small from the start is reported before anything large is fetched', async () => {
    peer.models[repo] = single({ listedBytes: 2 ** 52 });
    expect(await sentence(fetchModel())).toMatch(
      /^hub: org\/small-1\.5 needs 4503599\.6 GB more on the disk of .*, which has [\d.]+ [GM]B free: free space, or set HF_HOME/,
    );
    expect(peer.contents()).not.toContain('model.safetensors');
  });

  test.skipIf(process.platform === 'win32')('with a file in place of the cache is refused', async () => {
    writeFileSync(join(cache, 'file'), '');
    process.env.HF_HUB_CACHE = join(cache, 'file');
    expect(await sentence(fetchModel())).toMatch(/^store: cannot make .* \(ENOTDIR\)/);
  });
});

test('an abort in the middle takes effect at once, and received bytes are kept', async () => {
  peer.models[repo] = single({ slowly: { bytes: 400_000, ms: 20 } });
  const giving = new AbortController();
  const fetching = fetchModel('main', {
    signal: giving.signal,
    onProgress: ({ bytes }) => bytes > 1_000_000 && giving.abort(new Error('stopped')),
  });
  await expect(fetching).rejects.toThrow('stopped');
  expect(statSync(join(own(), 'partial', sha256(weights))).size).toBeGreaterThan(1_000_000);
  expect(visible()).toEqual([]);
  peer.models[repo] = single();
  await fetchModel();
  expect(visible()).toEqual([commit]);
});

test('the cache location follows HF_HUB_CACHE, HF_HOME and XDG_CACHE_HOME', async () => {
  delete process.env.HF_HUB_CACHE;
  process.env.HF_HOME = join(cache, 'home');
  expect(new HubCache(repo).root).toBe(join(cache, 'home/hub/models--org--small-1.5'));
  delete process.env.HF_HOME;
  process.env.XDG_CACHE_HOME = cache;
  expect(new HubCache(repo).root).toBe(join(cache, 'huggingface/hub/models--org--small-1.5'));
  delete process.env.XDG_CACHE_HOME;
});

const otherDisk = '/dev/shm';
const isOther = existsSync(otherDisk) && statSync(otherDisk).dev !== statSync(tmpdir()).dev;
test.skipIf(!isOther)('without hard links, a symbolic link leads to the content', async () => {
  const source = mkdtempSync(join(otherDisk, 'ragen-hub-'));
  try {
    writeFileSync(join(source, 'content'), weights);
    const files = [{ name: 'model.safetensors', bytes: weights.length, etag: sha256(weights) }];
    const made = await new HubCache(repo).assemble(commit, files, [join(source, 'content')]);
    holds(join(made.folder, 'model.safetensors'), weights);
    expect(await new HubCache(repo).complete(commit)).toEqual(made);
  } finally {
    rmSync(source, { recursive: true });
  }
});
