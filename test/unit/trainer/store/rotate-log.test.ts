// A log that other processes have open stays within its size limits, and later output of these processes is appended to
// the same log.
import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rotateLog } from '../../../../extension/trainer/store/rotate-log';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const file = () => join(folder(), 'trainer.log');
const limits = { mostBytes: 1000, kept: 3 };

test('a log that is too long is rotated, and the oldest part is deleted', () => {
  const fd = openSync(file(), 'a');
  for (let part = 1; part <= 6; part++) {
    writeSync(fd, `${part}`.repeat(600));
    rotateLog(file(), limits);
    writeSync(fd, `${part}`.repeat(600));
    rotateLog(file(), limits);
  }
  writeSync(fd, 'end');
  closeSync(fd);
  expect(readFileSync(file(), 'utf8')).toBe('end');
  expect(readdirSync(folder()).sort()).toEqual(['trainer.log', 'trainer.log.1', 'trainer.log.2', 'trainer.log.3']);
  expect([1, 2, 3].map(part => readFileSync(`${file()}.${part}`, 'utf8')[0])).toEqual(['6', '5', '4']);
});

test('a log that is short enough, or missing, is left unchanged', () => {
  rotateLog(file(), limits);
  writeFileSync(file(), 'short');
  rotateLog(file(), limits);
  expect([readFileSync(file(), 'utf8'), existsSync(`${file()}.1`)]).toEqual(['short', false]);
});

test('a process that uses the log as standard error continues at its new end', async () => {
  const fd = openSync(file(), 'a');
  // Writes 20 lines of 100 bytes for each message, and reports their completion.
  const code = `let line = 0; process.on('message', () => { for (let i = 0; i < 20; i++) writeSync(2, ('line ' + line++ + ' ').padEnd(99, 'x') + '\\n'); process.send(line); });`;
  const child = spawn(process.execPath, ['-e', `const { writeSync } = require('node:fs'); ${code}`], {
    stdio: ['ignore', 'ignore', fd, 'ipc'],
  });
  closeSync(fd);
  for (let written = 0; written < 200; written += 20) {
    const reported = new Promise(resolve => child.once('message', resolve));
    child.send('write');
    expect(await reported).toBe(written + 20);
    rotateLog(file(), { mostBytes: 5000, kept: 9 });
  }
  child.disconnect();
  await new Promise(resolve => child.once('exit', resolve));
  const parts = readdirSync(folder()).sort((a, b) => Number(b.split('.')[2] ?? 0) - Number(a.split('.')[2] ?? 0));
  const texts = parts.map(part => readFileSync(join(folder(), part), 'utf8'));
  expect(texts.map(text => text.length)).toEqual([6000, 6000, 6000, 2000]);
  // The log has no zeros, which the writer's old offset would cause, and no line is lost.
  const lines = texts.join('').split('\n').slice(0, -1);
  expect(lines).toEqual(Array.from({ length: 200 }, (_, i) => `line ${i} `.padEnd(99, 'x')));
});

test('a log that cannot be copied stays, and is truncated if it far exceeds the limit', () => {
  const cannotCopy = () => mkdirSync(`${file()}.0`);
  cannotCopy();
  writeFileSync(file(), 'x'.repeat(1500));
  rotateLog(file(), limits);
  expect([statSync(file()).size, existsSync(`${file()}.1`)]).toEqual([1500, false]);
  cannotCopy();
  writeFileSync(file(), 'x'.repeat(3500));
  rotateLog(file(), limits);
  expect([statSync(file()).size, existsSync(`${file()}.1`)]).toEqual([0, false]);
});
