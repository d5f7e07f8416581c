// Forged leases: if a socket accepts connections but never responds, a command ends with an error message. Also:
// unreadable presets are listed with an error beside the valid ones.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { presets } from '../../../../extension/trainer/config/load-config';
import { RunFolder } from '../../../../extension/trainer/store/run-folder';
import { follow, joinTrainer } from '../../../../extension/cli/run-lifecycle/follow';

let workspace: string;
let server: Server;
const sockets: Socket[] = [];
beforeEach(() => (workspace = mkdtempSync(join(tmpdir(), 'ragen-forged-'))));
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
  rmSync(workspace, { recursive: true, force: true });
});

test.skipIf(process.platform === 'win32')('a socket that never answers is abandoned with a sentence', async () => {
  const folder = await RunFolder.create(
    workspace,
    {
      ...{ name: 'a', config_name: 'a', overrides: [], config: {}, config_hash: 'x', seeds: {}, versions: {} },
      ...{ hardware: {}, model: { path: 'm', sha256: 'x', parameters: 1 }, environments: [] },
    },
    new Date(0),
  );
  const endpoint = join(workspace, 's');
  server = createServer(socket => void sockets.push(socket));
  await new Promise<void>(resolve => server.listen(endpoint, resolve));
  const lease = { pid: process.pid, started: new Date().toISOString(), endpoint, token: 't' };
  writeFileSync(folder.file('lease'), JSON.stringify(lease));
  expect(await joinTrainer(folder, undefined, undefined, 50)).toBeUndefined();
  const stopped = follow(folder, null, AbortSignal.abort(), { answerMs: 50, reachMs: 200 });
  await expect(stopped).rejects.toThrow('did not answer within 0.2 s');
});

test('an unreadable preset is reported with its file, and the others are listed', () => {
  mkdirSync(join(workspace, 'config'));
  writeFileSync(join(workspace, 'config', 'good.yaml'), '# Good.\ndefaults: [base]\n');
  writeFileSync(join(workspace, 'config', 'large.yaml'), '#'.repeat(2 ** 20 + 1));
  const found = presets([join(workspace, 'config')]);
  expect(found.map(({ name, description }) => [name, description])).toEqual([
    ['good', 'Good.'],
    ['large', ''],
  ]);
  expect(found[1].error).toContain('large.yaml has 1048577 bytes');
});
