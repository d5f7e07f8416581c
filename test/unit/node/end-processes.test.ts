// Ending a process also ends everything it started, including processes that left its group or whose parents were
// killed.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  killAbandoned,
  killTree,
  isAbandoned,
  ownerTagVariable,
  newOwnerTag,
} from '../../../extension/node/end-processes';

const runs = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

/** A process in its own group and a daemon that it started outside the group; both report their pids. */
async function family(mark: string): Promise<{ parent: number; daemon: number }> {
  const daemon = `require('node:child_process').spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })`;
  const code = `console.log(${daemon}.pid); setInterval(() => {}, 1000)`;
  const child = spawn(process.execPath, ['-e', code], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, [ownerTagVariable]: mark },
  });
  const output = await new Promise<string>(resolve => child.stdout.once('data', text => resolve(String(text))));
  return { parent: child.pid!, daemon: Number(output) };
}

describe.skipIf(process.platform === 'win32')('a process tree', () => {
  test('ends completely, including a daemon in another group; trees of other owner tags continue', async () => {
    const [mark, otherMark] = [newOwnerTag(), newOwnerTag()];
    const [own, other] = await Promise.all([family(mark), family(otherMark)]);
    try {
      killTree(own.parent, mark);
      await expect.poll(() => [own.parent, own.daemon].map(runs)).toEqual([false, false]);
      expect([other.parent, other.daemon].map(runs)).toEqual([true, true]);
      killAbandoned(); // the owner of the other tag is this process
      expect([other.parent, other.daemon].map(runs)).toEqual([true, true]);
    } finally {
      killTree(other.parent, otherMark);
    }
    await expect.poll(() => [other.parent, other.daemon].map(runs)).toEqual([false, false]);
  });

  test('ends later when the owner of its tag was killed; trees of other tags continue', async () => {
    const owner = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    const mark = newOwnerTag(owner.pid);
    expect(isAbandoned(mark)).toBe(false);
    const of = (part: number, value: string) => mark.replace(/[^.+]+/g, old => (part-- === 0 ? value : old));
    owner.kill('SIGKILL');
    await new Promise(resolve => owner.once('exit', resolve));
    const earlier = `${owner.pid}-0123456789abcdef`;
    const elsewhere = process.platform === 'linux' ? [of(2, '1'), of(3, 'another-boot')] : [];
    const families = await Promise.all([mark, earlier, ...elsewhere].map(family));
    try {
      killAbandoned();
      const [own, ...others] = families;
      await expect.poll(() => [own.parent, own.daemon].map(runs)).toEqual([false, false]);
      expect(others.flatMap(({ parent, daemon }) => [parent, daemon]).every(runs)).toBe(true);
    } finally {
      for (const [i, value] of [mark, earlier, ...elsewhere].entries()) killTree(families[i].parent, value);
    }
  });

  test("is abandoned when its owner has ended, even if the owner's pid was reused", () => {
    const mark = newOwnerTag();
    expect(isAbandoned(mark)).toBe(false);
    const start = mark.split('.')[1];
    expect(isAbandoned(mark.replace(`.${start}.`, `.${Number(start) + 1}.`))).toBe(true);
    for (const odd of [
      '',
      '0',
      '-1',
      '1',
      mark.replace(/^\d+/, '0'),
      mark.replace(/^\d+/, '-1'),
      mark.replace(`.${start}.`, '..'),
    ])
      expect([odd, isAbandoned(odd)]).toEqual([odd, false]);
  });
});
