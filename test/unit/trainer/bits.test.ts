// One damage of each kind of file of a run folder: `npm run torture -- bits` does 300.
import { expect, test } from 'vitest';
import { damagedRuns } from '../../torture/bits';

test('a damaged run folder is refused by the name of its file, or gives the same run', async () => {
  const { refused, equal } = await damagedRuns({ cases: 12, seed: 3, say: () => undefined });
  const count = (of: Record<string, number>) => Object.values(of).reduce((sum, n) => sum + n, 0);
  expect(count(refused)).toBeGreaterThan(0);
  expect(count(refused) + count(equal)).toBe(12);
}, 180_000);
