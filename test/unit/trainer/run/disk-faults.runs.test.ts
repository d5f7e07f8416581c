// Every fifth file-system call of a step and of its checkpoint fails once in every way (test/torture/disk.ts); the
// torture tests include all calls.
import { expect, test } from 'vitest';
import { diskFaults } from '../../../torture/disk';

test('a disk that fails at any call leaves the state before or after a step', { timeout: 240_000 }, async () => {
  const report = await diskFaults(5);
  expect(report.stepCalls).toBeGreaterThan(50);
  expect(report.backCalls).toBeGreaterThan(5);
  expect(report.before).toBeGreaterThan(0);
  expect(report.after).toBeGreaterThan(0);
});
