// Servers of the Tinker API from the terminal: `ragen engine probe` and `ragen doctor` over HTTP and HTTPS, and the way of
// an API key, which is in the environment of the processes and nowhere else.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { EngineReport } from '../../../../extension/protocol/engine-report';
import { selfSigned } from '../../../support/self-signed';
import { document, killAll, leaseOf, ragen, readRun, until } from '../../../support/terminal';
import { TinkerPeer, type PeerOptions } from '../../../support/tinker-peer';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

const key = 'tml-7Hq2ZxW9cVbN4kLs8dQp';
let workspace: Workspace;
let vocabSize: number;
let peer: TinkerPeer;
beforeAll(() => {
  workspace = makeWorkspace();
  const config = readFileSync(join(workspace.folder, 'models/random/config.json'), 'utf8');
  ({ vocab_size: vocabSize } = JSON.parse(config) as { vocab_size: number });
});
afterEach(() => peer.stop());
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});
const start = async (options: Partial<PeerOptions> = {}): Promise<string> =>
  (peer = await TinkerPeer.start({ vocabSize, ...options })).url;

/** Runs `ragen engine probe` with variables of the environment. */
const probe = (url: string, args: readonly string[], variables: Record<string, string> = {}) =>
  document<EngineReport & { error?: { message: string } }>(
    workspace.folder,
    ['engine', 'probe', url, ...args],
    ['true', ...Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`)].join('; '),
  );

describe('the probe', () => {
  test('reports what a server is and can, and unloads what it has created', async () => {
    const url = await start({ key, live: true, critic: true });
    const { code, answer, stderr } = await probe(url, ['--key-env', 'GPU_KEY', '--critic'], { GPU_KEY: key });
    expect(code, stderr).toBe(0);
    expect(answer).toMatchObject({
      ...{ url, encrypted: false, server: { name: 'Tinker peer', version: '1.0.0' }, key: 'accepted' },
      models: [{ name: 'peer/bigram', max_context_length: null }],
      measured: {
        ...{ model: 'peer/bigram', lora: { rank: 8, alpha: 32 }, keeps_versions: false },
        reduction: { samples: 'sum', tokens: 'sum' },
        critic: { offered: true, reason: null },
        sampling: { rows: 8, tokens: 256 },
      },
    });
    expect(answer.limits.map(limit => limit.key)).toContain('actor_rollout_ref.rollout.temperature');
    expect(answer.limits).toContainEqual({
      ...{ key: 'workbench.max_staleness', supported: 'only 0' },
      reason: 'The server samples each published version with the newest weights',
    });
    expect([peer.models.size, peer.critics.size]).toEqual([0, 0]);
  });

  test('prints facts, limits and ignored settings as a table', async () => {
    const { code, stdout } = await ragen(workspace.folder, ['engine', 'probe', await start()]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Address +http:\S+, not encrypted\nServer +Tinker peer 1\.0\.0\nAPI key +no key is needed to connect$/m,
    );
    expect(stdout).toMatch(/^Sampling +[\d.]+( k)? tokens\/s \(256 tokens of 8 concurrent rows in .*\)$/m);
    expect(stdout).toMatch(/^ {2}lora\.rank +above 0 \(the server trains only adapters\)$/m);
    expect(stdout).toMatch(/^ {2}workbench\.device +the server has its own devices$/m);
  });

  test('over HTTPS needs a certificate that this machine trusts', async () => {
    const tls = selfSigned();
    workspace.write('authority.pem', tls.cert);
    const url = await start({ tls });
    const refused = await probe(url, ['--quick']);
    expect(refused.code).toBe(1);
    expect(refused.answer.error!.message).toMatch(/does not trust \(\w+\): set NODE_EXTRA_CA_CERTS to a file/);
    const trusted = await probe(url, [], { NODE_EXTRA_CA_CERTS: join(workspace.folder, 'authority.pem') });
    expect(trusted.code, trusted.stderr).toBe(0);
    expect(trusted.answer.encrypted).toBe(true);
    expect(trusted.answer.measured!.keeps_versions).toBe(true);
  });

  test('of a server with several models measures the chosen one', async () => {
    const url = await start({ offers: ['a/b', 'c/d'] });
    const open = await probe(url, []);
    expect([open.answer.measured, open.answer.not_measured]).toEqual([
      null,
      'the server offers several models: choose one',
    ]);
    expect(peer.sent('create_model')).toBe(0);
    expect((await probe(url, ['--model', 'c/d'])).answer.measured!.model).toBe('c/d');
    const { answer } = await probe(url, ['--model', 'e/f']);
    expect(answer.error!.message).toBe(`engine: ${url} does not offer the model e/f: choose one of a/b, c/d`);
  });

  test.each([
    ['not-a-url', [], 'the URL is not the address of a server: give an http or https URL'],
    ['http://user:secret-word@host', [], 'the URL is not the address of a server'],
    ['', ['--key-env', key], '--key-env is not the name of an environment variable'],
    ['', ['--key-env', 'UNSET_KEY'], 'the environment variable UNSET_KEY is not set: set it to the server’s key'],
  ])('is refused in one sentence: %s %j', async (url, args, sentence) => {
    const there = await start();
    const { code, answer, stdout, stderr } = await probe(url || there, args);
    expect(code).toBe(1);
    expect(answer.error!.message).toContain(sentence);
    for (const secret of [key, 'secret-word']) expect(stdout + stderr).not.toContain(secret);
  });
});

test('the doctor checks a server: that of an option, and that of the configuration', async () => {
  const url = await start({ key });
  const found = await document<{ engine: EngineReport }>(
    workspace.folder,
    ['doctor', '--engine', url, '--engine-key-env', 'GPU_KEY'],
    `export GPU_KEY=${key}`,
  );
  expect(found.code, found.stderr).toBe(0);
  expect(found.answer.engine).toMatchObject({ key: 'accepted', measured: null });
  const overrides = ['workbench.engine=tinker', `workbench.engine_url=${url}`, 'lora.rank=8'];
  const { code, stdout, stderr } = await ragen(workspace.folder, ['doctor', '--config-name', 'words', ...overrides]);
  expect(code).toBe(1);
  expect(stderr).toBe(`engine: ${url} requires an API key: set the variable TINKER_API_KEY to the key\n`);
  expect(stdout).toMatch(/^Engine +http:\S+ requires an API key/m);
  expect(peer.sent('create_session')).toBe(0);
});

describe('the API key of a run', () => {
  /** All files below a folder. */
  const filesOf = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map(name => join(folder, name))
      .filter(file => statSync(file).isFile());

  test('is in the environment of the trainer, and in no file, argument or message', async () => {
    const tls = selfSigned();
    workspace.write('authority.pem', tls.cert);
    const url = await start({ key, tls });
    let release = (): void => undefined;
    const released = new Promise<void>(resolve => (release = resolve));
    peer.fault = path => (path === 'asample' ? { after: released } : undefined);
    const overrides = ['workbench.engine=tinker', `workbench.engine_url=${url}`, 'lora.rank=8'];
    const started = await document<{ folder: string }>(
      workspace.folder,
      ['train', '--config-name', 'words', '--detach', ...overrides, 'workbench.engine_api_key_env=GPU_KEY'],
      `export GPU_KEY=${key} NODE_EXTRA_CA_CERTS='${join(workspace.folder, 'authority.pem')}'`,
    );
    expect(started.code, started.stderr).toBe(0);
    const { folder } = started.answer;
    await until('a sampling request', () => peer.sent('asample') > 0);
    const { pid } = leaseOf(folder)!;
    const process = (name: string): string => readFileSync(`/proc/${pid}/${name}`, 'utf8');
    expect(process('environ')).toContain(`GPU_KEY=${key}`);
    expect(process('cmdline')).not.toContain(key);
    release();
    await until('the end', () => readRun(folder).status?.state === 'finished');
    const files = filesOf(folder);
    expect(files.some(file => file.endsWith('manifest.json'))).toBe(true);
    expect(files.filter(file => readFileSync(file).includes(key))).toEqual([]);
    expect(started.stdout + started.stderr).not.toContain(key);
  });

  test('is redacted where a server repeats it', async () => {
    const url = await start();
    peer.fault = path =>
      path === 'create_session' ? { status: 400, body: { detail: `no session for ${key}` } } : undefined;
    const { code, answer, stderr } = await probe(url, ['--key-env', 'GPU_KEY'], { GPU_KEY: key });
    expect(code).toBe(1);
    expect(answer.error!.message).toContain('no session for [redacted GPU_KEY]');
    expect(JSON.stringify(answer) + stderr).not.toContain(key);
  });
});
