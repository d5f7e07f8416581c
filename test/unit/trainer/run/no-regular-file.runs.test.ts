// Pipes, sockets, folders and links to endless devices in place of a run's input files. Each is refused immediately
// with an error that names the file. A command that opened such a file would wait until the test's timeout.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { BuildError, bundleEnvironment } from '../../../../extension/environments/runtime/build/build';
import { openDataSet } from '../../../../envs/api/data-set';
import { readShopFile } from '../../../../envs/webshop/catalogue';
import { document, killAll } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
const servers: Server[] = [];
beforeAll(() => (workspace = makeWorkspace()));
afterEach(() => servers.splice(0).forEach(server => server.close()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const kinds = ['pipe', 'socket', 'folder', 'device'] as const;

/** Creates a special file; a socket has a short path, because socket paths are limited in length. */
async function make(kind: (typeof kinds)[number], path: string): Promise<void> {
  if (kind === 'pipe') execFileSync('mkfifo', [path]);
  else if (kind === 'folder') mkdirSync(path);
  else if (kind === 'device') symlinkSync('/dev/zero', path);
  else {
    const server = createServer();
    servers.push(server);
    await new Promise<void>(resolve => server.listen(path, resolve));
  }
}

/** Output of a command while the file `name` of the workspace is replaced by a special file of that kind. */
async function saidOf(kind: (typeof kinds)[number], name: string, args: readonly string[]) {
  const path = join(workspace.folder, name);
  const text = readFileSync(path);
  rmSync(path);
  try {
    await make(kind, path);
    const { code, answer } = await document<{ error: { message: string } }>(workspace.folder, args);
    expect(code).toBe(1);
    return answer.error.message;
  } finally {
    servers.splice(0).forEach(server => server.close());
    rmSync(path, { recursive: true, force: true });
    writeFileSync(path, text);
  }
}

describe.skipIf(process.platform === 'win32').each(kinds)('a %s', kind => {
  test.each([
    'config.json',
    'model.safetensors',
    'tokenizer.json',
    'tokenizer_config.json',
    'chat_template.jinja',
    'generation_config.json',
  ])('as %s of a model is refused by name', { timeout: 60_000 }, async name => {
    const message = await saidOf(kind, `models/random/${name}`, ['train', '--config-name', 'words']);
    expect(message).toContain('models/random');
    expect(message).toContain(name);
    expect(message).not.toMatch(/\n|ENXIO|EOPNOTSUPP/);
  });

  test.each([
    ['a preset', 'config/words.yaml', ['--config-name', 'words']],
    ['--config', 'config/words.yaml', ['--config', 'config/words.yaml']],
    ['environment code', 'environments/words.ts', ['--config-name', 'words']],
  ])('as %s is refused by name', { timeout: 60_000 }, async (_, name, args) => {
    const message = await saidOf(kind, name, ['train', ...args]);
    expect(message).toContain(name);
    expect(message).not.toMatch(/\n|ENXIO|EOPNOTSUPP/);
  });

  test('as a data set is refused by name', async () => {
    for (const form of ['parquet', 'jsonl', 'json']) {
      const path = join(workspace.folder, `rows.${form}`);
      await make(kind, path);
      const opening = openDataSet(path, { remedy: 'give the folder of the data' });
      await expect(opening).rejects.toThrow(kind === 'folder' ? path : `cannot read the data of ${path} (`);
      expect(() => readShopFile(path)).toThrow(`cannot read ${path} (`);
      servers.splice(0).forEach(server => server.close());
      rmSync(path, { recursive: true, force: true });
    }
  });

  test('that environment code imports is refused by name', async () => {
    const path = join(workspace.folder, 'environments/part.ts');
    const source = workspace.write(
      'environments/whole.ts',
      `import { part } from './part.ts';\nexport default part;\n`,
    );
    await make(kind, path);
    try {
      const refused = await bundleEnvironment(source).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(refused).toBeInstanceOf(BuildError);
      expect((refused as Error).message).toContain(kind === 'device' ? '/dev/zero' : 'part.ts'); // esbuild names a link's target
    } finally {
      rmSync(path, { recursive: true, force: true });
    }
  });
});
