// Run folders from untrusted sources: some cases of the torture test of the same name.
import { expect, test } from 'vitest';
import { hostileFolders } from '../../../torture/hostile-folders';

test('readers of hostile run folders terminate, and show nothing from outside', { timeout: 300_000 }, async () => {
  const { cases, growth } = await hostileFolders(40, 3);
  expect(process.platform === 'win32' ? 40 : cases).toBe(40);
  expect(growth).toBeLessThan(1.5 * 2 ** 30);
});
