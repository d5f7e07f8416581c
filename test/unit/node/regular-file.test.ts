// Files of untrusted folders: regular ones are read, also through links; pipes, devices and endless files are refused
// at once.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../../extension/common/user-error';
import { readTokenizer } from '../../../extension/models/weights/model-folder';
import { openRegular, openToAppendSync, readRegular, readRegularSync } from '../../../extension/node/regular-file';
import { SafetensorsFile } from '../../../extension/models/weights/safetensors';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder();
const path = (name: string): string => join(folder(), name);

/** The error of each way to read a file. */
async function refusals(file: string): Promise<Error[]> {
  const ways = [() => readRegular(file), () => Promise.resolve().then(() => readRegularSync(file))];
  return Promise.all(
    ways.map(read =>
      read().then(
        () => new Error(`${file} was read`),
        (error: Error) => error,
      ),
    ),
  );
}

test('a regular file is read, also through a link', async () => {
  writeFileSync(path('a'), 'content');
  symlinkSync(path('a'), path('link'));
  for (const name of ['a', 'link']) {
    expect((await readRegular(path(name))).toString()).toBe('content');
    expect(readRegularSync(path(name)).toString()).toBe('content');
    await (await openRegular(path(name))).close();
  }
});

test('a missing file or a folder gives the system’s error', async () => {
  mkdirSync(path('folder'));
  for (const error of await refusals(path('none'))) expect(error).toMatchObject({ code: 'ENOENT' });
  for (const error of await refusals(path('folder'))) expect(error).toMatchObject({ code: 'EISDIR' });
});

test.skipIf(process.platform === 'win32')('a log is opened without waiting for the reader of a pipe', () => {
  spawnSync('mkfifo', [path('log')]);
  expect(() => openToAppendSync(path('log'))).toThrow(
    /^store: cannot write .*log: it is not a regular file: remove it$/,
  );
  expect(() => openToAppendSync('/dev/null')).toThrow('it is not a regular file');
  for (const text of ['a', 'b']) {
    const descriptor = openToAppendSync(path('new'));
    writeFileSync(descriptor, text);
    closeSync(descriptor);
  }
  expect(readRegularSync(path('new')).toString()).toBe('ab');
});

test('an endless file is refused by its size', async () => {
  writeFileSync(path('endless'), '');
  truncateSync(path('endless'), 2 ** 36);
  for (const error of await refusals(path('endless'))) {
    expect(error).toBeInstanceOf(UserError);
    expect(error.message).toMatch(
      /endless: it has 68719476736 bytes, more than the limit of 268435456: restore or download the file again$/,
    );
  }
});

describe.skipIf(process.platform === 'win32')('special files', () => {
  test('pipes are refused without waiting for a writer, and so are links to devices', async () => {
    expect(spawnSync('mkfifo', [path('pipe')]).status).toBe(0);
    symlinkSync('/dev/zero', path('zero'));
    for (const name of ['pipe', 'zero']) {
      const sentence = `store: cannot read ${path(name)}: it is a pipe, a socket or a device: put a regular file there`;
      for (const error of await refusals(path(name))) expect(error).toEqual(new UserError(sentence));
      await expect(SafetensorsFile.open(path(name))).rejects.toThrow(new UserError(sentence));
    }
  });

  test('pipes in a model folder are refused', () => {
    for (const name of ['tokenizer.json', 'chat_template.jinja']) writeFileSync(path(name), '{}');
    expect(spawnSync('mkfifo', [path('tokenizer_config.json')]).status).toBe(0);
    expect(() => readTokenizer(folder())).toThrow(/tokenizer_config\.json: it is a pipe, a socket or a device/);
  });
});
