// A process that has ended does not run, whether or not its parent has waited for it.
import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { isAlive, startTimeOf } from '../../../extension/protocol/process-identity';

test('this process runs, since before now', () => {
  expect(isAlive(process.pid)).toBe(true);
  expect(startTimeOf(process.pid)).toBeLessThanOrEqual(Date.now() + 1000);
});

test.skipIf(process.platform !== 'linux')('a process that ended without being waited for does not run', async () => {
  // The shell becomes a sleep that never waits for the child it started before.
  const parent = spawn('/bin/sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 30'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const pid = Number(await new Promise<string>(resolve => parent.stdout.once('data', data => resolve(String(data)))));
    expect(isAlive(pid)).toBe(true);
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
    expect(() => process.kill(pid, 0)).not.toThrow(); // it is still there for its parent
  } finally {
    parent.kill('SIGKILL');
  }
});
