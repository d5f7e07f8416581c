// An ended process is not alive, whether or not its parent has reaped it.
import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { isAlive, startTimeOf } from '../../../extension/node/process-identity';

test('this process is alive and started before now', () => {
  expect(isAlive(process.pid)).toBe(true);
  expect(startTimeOf(process.pid)).toBeLessThanOrEqual(Date.now() + 1000);
});

test.skipIf(process.platform !== 'linux')('a process that ended but was not reaped is not alive', async () => {
  // The shell becomes a sleep that never reaps the child it started before.
  const parent = spawn('/bin/sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 30'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const pid = Number(await new Promise<string>(resolve => parent.stdout.once('data', data => resolve(String(data)))));
    expect(isAlive(pid)).toBe(true);
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
    expect(() => process.kill(pid, 0)).not.toThrow(); // it still exists for its parent
  } finally {
    parent.kill('SIGKILL');
  }
});
