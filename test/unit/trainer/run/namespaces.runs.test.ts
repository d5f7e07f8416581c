// Runs of several containers on one folder, and clocks that jump (test/torture/namespaces.ts): once here, several times
// in the torture tests.
import { expect, test } from 'vitest';
import { jumpingClocks, namespaceCommand, sharedFolder } from '../../../torture/namespaces';

test(
  'two PID namespaces share a folder: neither takes over nor ends the other’s run',
  { timeout: 240_000 },
  async context => {
    const command = namespaceCommand();
    if (!command) return context.skip('PID namespaces are not permitted here');
    await expect(sharedFolder(command)).resolves.toBeUndefined();
  },
);

test('a clock that jumps prevents no stop and no resume', { timeout: 240_000 }, async () => {
  await expect(jumpingClocks()).resolves.toBeUndefined();
});
