// Which code of a run folder may be executed: what this user's trainer signed for this run, and what the user accepted,
// byte for byte.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  environmentSignature,
  manifestSignature,
  readKeptCode,
  readManifestCode,
  sha256Of,
  untrusted,
} from '../../../extension/node/run-trust';
import {
  acceptFiles,
  acceptedFiles,
  signingKey,
  signingKeyOrNew,
  userStorage,
} from '../../../extension/node/user-storage';

let folder: string;
let storage: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-trust-'));
  storage = join(folder, 'user');
  vi.stubEnv('RAGEN_USER_STORAGE', storage);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

describe('the key', () => {
  test.runIf(process.platform !== 'win32')('is readable by the owner only', () => {
    expect(signingKey()).toBeUndefined();
    expect(signingKeyOrNew()).toHaveLength(32);
    expect(statSync(storage).mode & 0o777).toBe(0o700);
    expect(statSync(join(storage, 'signing-key')).mode & 0o777).toBe(0o600);
    expect(readdirSync(storage)).toEqual(['signing-key']);
    expect(signingKeyOrNew()).toEqual(signingKey());
  });

  test('is created once, even by concurrent processes', async () => {
    const script = join(folder, 'key.cjs');
    const contents = `import { signingKeyOrNew } from ${JSON.stringify(resolve('extension/node/user-storage.ts'))};
      process.stdin.once('data', () => { process.stdout.write(signingKeyOrNew().toString('hex')); process.exit(); });
      process.stdout.write('ready\\n');`;
    await build({ stdin: { contents, resolveDir: process.cwd() }, bundle: true, platform: 'node', outfile: script });
    const children = Array.from({ length: 4 }, () => {
      const child = spawn(process.execPath, [script]);
      let said = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
      const isReady = new Promise<void>(done => child.stdout.once('data', () => done()));
      const key = new Promise<string>(done => child.once('close', () => done(said.replace('ready\n', ''))));
      return { child, isReady, key };
    });
    await Promise.all(children.map(({ isReady }) => isReady));
    for (const { child } of children) child.stdin.write('\n');
    const keys = await Promise.all(children.map(({ key }) => key));
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(keys).size).toBe(1);
    expect(readdirSync(storage)).toEqual(['signing-key']);
  });

  test('is not replaced when it is damaged', () => {
    mkdirSync(storage);
    writeFileSync(join(storage, 'signing-key'), 'short');
    expect(signingKey()).toBeUndefined();
    expect(() => signingKeyOrNew()).toThrow(/signing-key does not contain a key of 32 bytes: remove the file/);
    expect(readFileSync(join(storage, 'signing-key'), 'utf8')).toBe('short');
  });

  test("is stored in the system's folder for user data", () => {
    expect(userStorage({ XDG_CONFIG_HOME: '/c' }, 'linux')).toBe(join('/c', 'ragen-workbench'));
    expect(userStorage({ RAGEN_USER_STORAGE: '/own' }, 'darwin')).toBe('/own');
    expect(userStorage({ LOCALAPPDATA: '/local' }, 'win32')).toBe(join('/local', 'ragen-workbench'));
  });
});

/** A run folder with a manifest and a stored environment, both signed. */
function makeRun(id = 'own'): string {
  const run = join(folder, 'runs', id);
  const kept = join(run, 'environments', 'v1');
  mkdirSync(kept, { recursive: true });
  writeFileSync(join(run, 'manifest.json'), '{"a":1}');
  writeFileSync(join(run, 'signature.json'), manifestSignature(id, sha256Of(Buffer.from('{"a":1}'))));
  writeFileSync(join(kept, 'environment.js'), 'code');
  writeFileSync(join(kept, 'version.json'), '{}');
  const sums = { bundle: sha256Of(Buffer.from('code')), about: sha256Of(Buffer.from('{}')) };
  writeFileSync(join(kept, 'signature.json'), environmentSignature(id, { version: 'v1', tags: ['Lake'], ...sums }));
  return run;
}

/** Whether manifest, code and its description are signed, in this order. */
const signed = (run: string, id: string, version = 'v1', tag = 'Lake') => {
  const kept = readKeptCode(run, id, { version, tag });
  return [readManifestCode(run, id)?.signed, kept?.bundle.signed, kept?.about.signed];
};

describe('a signature', () => {
  test('is valid for the signed files', () => {
    expect(signed(makeRun(), 'own')).toEqual([true, true, true]);
  });

  test('is invalid in the folder of another run, under another version or for another tag', () => {
    const run = makeRun();
    const copy = join(folder, 'runs', 'copy');
    cpSync(run, copy, { recursive: true });
    expect(signed(copy, 'copy')).toEqual([false, false, false]);
    expect(signed(run, 'own', 'v1', 'Bandit')).toEqual([true, false, false]);
    renameSync(join(run, 'environments/v1'), join(run, 'environments/v2'));
    expect(signed(run, 'own', 'v2')).toEqual([true, false, false]);
  });

  test.each(['environment.js', 'version.json'])('is invalid when one byte of %s changes', name => {
    const run = makeRun();
    const file = join(run, 'environments/v1', name);
    const bytes = readFileSync(file);
    bytes[1] ^= 1;
    writeFileSync(file, bytes);
    expect(signed(run, 'own')).toEqual([true, false, false]);
  });

  test("is invalid for another manifest, and for the user's own run under another user’s key", () => {
    const run = makeRun();
    vi.stubEnv('RAGEN_USER_STORAGE', join(folder, 'somebody else'));
    expect(signed(run, 'own')).toEqual([false, false, false]); // no key exists
    signingKeyOrNew();
    expect(signed(run, 'own')).toEqual([false, false, false]);
    vi.stubEnv('RAGEN_USER_STORAGE', storage);
    expect(signed(run, 'own')).toEqual([true, true, true]);
    writeFileSync(join(run, 'manifest.json'), '{"a":2}');
    expect(signed(run, 'own')).toEqual([false, true, true]);
  });

  test.each(['', '{', '{"schema":1,"hmac":"00"}', '{"schema":1,"hmac":7}', `{"schema":1,"hmac":"${'0'.repeat(64)}"}`])(
    'with the content %j is invalid',
    text => {
      const run = makeRun();
      writeFileSync(join(run, 'signature.json'), text);
      writeFileSync(join(run, 'environments/v1/signature.json'), text);
      expect(signed(run, 'own')).toEqual([false, false, false]);
    },
  );

  test('of a manifest is invalid for an environment', () => {
    const run = makeRun();
    cpSync(join(run, 'signature.json'), join(run, 'environments/v1/signature.json'));
    expect(signed(run, 'own')).toEqual([true, false, false]);
  });

  test.runIf(process.platform !== 'win32')(
    'covers regular files in the folder only: links and sockets are not read',
    async () => {
      const run = makeRun();
      renameSync(join(run, 'manifest.json'), join(folder, 'elsewhere.json'));
      symlinkSync(join(folder, 'elsewhere.json'), join(run, 'manifest.json'));
      expect(readManifestCode(run, 'own')).toBeUndefined();
      const bundle = join(run, 'environments/v1/environment.js');
      rmSync(bundle);
      const server = createServer().listen(bundle);
      await new Promise(done => server.once('listening', done));
      expect(readKeptCode(run, 'own', { version: 'v1', tag: 'Lake' })).toBeUndefined();
      await new Promise(done => server.close(done));
    },
  );
});

describe('an acceptance by the user', () => {
  test('covers these bytes of this file of this run, once or permanently', () => {
    const run = makeRun();
    rmSync(join(run, 'signature.json'));
    const code = () => [readManifestCode(run, 'own')!];
    expect(untrusted('own', code())).toHaveLength(1);
    expect(untrusted('own', code(), [code()[0].sha256])).toEqual([]);
    acceptFiles([{ run: 'own', file: 'manifest.json', sha256: code()[0].sha256 }]);
    expect(untrusted('own', code())).toEqual([]);
    expect(untrusted('other', code())).toHaveLength(1);
    expect(untrusted('own', [{ ...code()[0], file: 'environments/v1/environment.js' }])).toHaveLength(1);
    writeFileSync(join(run, 'manifest.json'), '{"a":2}');
    expect(untrusted('own', code())).toHaveLength(1);
  });

  test('survives a damaged line', () => {
    const accepted = { run: 'r', file: 'manifest.json', sha256: '00' };
    acceptFiles([accepted]);
    writeFileSync(join(storage, 'accepted-code.jsonl'), '{"run":\n{"run":1}\n', { flag: 'a' });
    acceptFiles([{ ...accepted, run: 's' }]);
    expect(acceptedFiles().map(({ run }) => run)).toEqual(['r', 's']);
  });

  test.runIf(process.platform !== 'win32' && process.getuid?.() !== 0)(
    'is refused with a remedy when the storage is not writable',
    () => {
      mkdirSync(storage);
      chmodSync(storage, 0o500);
      expect(() => signingKeyOrNew()).toThrow(/RAGEN_USER_STORAGE to a writable folder/);
      expect(() => acceptFiles([])).toThrow(/RAGEN_USER_STORAGE to a writable folder/);
    },
  );
});
