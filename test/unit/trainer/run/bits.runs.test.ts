// Damage to each kind of file that a resume reads; `npm run torture -- bits` makes 300 changes, in all files.
import { expect, test } from 'vitest';
import { damagedRuns } from '../../../torture/bits';

const files =
  /^(checkpoints\/step-N\/checkpoint\.json|checksums\.jsonl|episodes\/(step-N|index)\.jsonl|events\.jsonl|manifest\.json|metrics\.jsonl)$/;

test('a damaged run folder is refused with the name of the damaged file, or produces the same run', async () => {
  const { refused, equal } = await damagedRuns({ cases: 7, seed: 3, only: files, say: () => undefined });
  const count = (of: Record<string, number>) => Object.values(of).reduce((sum, n) => sum + n, 0);
  expect(count(refused)).toBeGreaterThan(0);
  expect(count(refused) + count(equal)).toBe(7);
}, 180_000);
