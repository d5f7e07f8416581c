// Runs of several containers in one folder, and clock jumps (test/torture/namespaces.ts): one round here, several
// rounds in the torture tests.
import { expect, test } from 'vitest';
import { jumpingClocks, namespaceCommand, sharedFolder } from '../../../torture/namespaces';

test(
  'two PID namespaces share a folder, and neither takes over or kills the other’s run',
  { timeout: 240_000 },
  async context => {
    const command = namespaceCommand();
    if (!command) return context.skip('PID namespaces are not permitted here');
    await expect(sharedFolder(command)).resolves.toBeUndefined();
  },
);

test('a run can be stopped and resumed after clock jumps', { timeout: 240_000 }, async () => {
  await expect(jumpingClocks()).resolves.toBeUndefined();
});
