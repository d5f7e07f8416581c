// Rewards that programs write: what is read, and what is refused with a sentence. Files that are no regular files, or that
// never end, are not read.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { fileReward } from '../../../../envs/program/reward';

const folder = mkdtempSync(join(tmpdir(), 'ragen-rewards-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, 'reward');
const exit = (code: number) => ({ code, signal: null, output: '', errors: '' });

const read = (text: string) => {
  writeFileSync(file, text);
  return fileReward(file, exit(0));
};

test('a number and an object are rewards', () => {
  expect(read(' 0.5\n')).toEqual({ reward: 0.5 });
  expect(read('{"reward": -1, "success": true}')).toEqual({ reward: -1, success: true });
});

test.each([
  ['', /^The content of the reward file is "": write a number, or a JSON object with the number reward$/],
  ['great', /^The content of the reward file is "great": write a number/],
  ['NaN', /^The content of the reward file is "NaN": write a number/],
  ['1e999', /^The content of the reward file is 1e999: write a number/],
  ['[1]', /^The content of the reward file is \[1\]: write a number/],
  ['{"reward": "1"}', /^The content of the reward file is .*: write a number/],
  ['{"reward": 1, "success": 1}', /^The content of the reward file is .*: write a number/],
  [
    '1'.repeat(70_000),
    /^RAGEN_REWARD_FILE cannot be read \(the file has 70000 bytes, more than the maximum of 65536\)/,
  ],
])('the text %# is refused', (text, message) => {
  expect(() => read(text)).toThrow(message);
});

test('a missing file is an error only if the program succeeded', () => {
  const missing = join(folder, 'missing');
  expect(fileReward(missing, exit(3))).toEqual({ reward: 0, success: false });
  expect(() => fileReward(missing, exit(0))).toThrow('RAGEN_REWARD_FILE was not written');
});

test.skipIf(process.platform === 'win32')('a folder, a pipe and a device are refused without being read', () => {
  const paths = ['folder', 'pipe', 'device'].map(name => join(folder, name));
  mkdirSync(paths[0]);
  execFileSync('mkfifo', [paths[1]]);
  symlinkSync('/dev/zero', paths[2]);
  for (const path of paths)
    expect(() => fileReward(path, exit(3)), path).toThrow(
      /^RAGEN_REWARD_FILE cannot be read \(the path is a folder, a pipe or a device instead of a regular file\): write a number/,
    );
});
