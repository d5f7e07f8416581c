// Every file-system call of a step and of its checkpoint fails once in every way (test/torture/disk.ts): here each fifth, in the torture all.
import { expect, test } from 'vitest';
import { diskFaults } from '../../torture/disk';

test('a disk that fails at any call leaves the state before a step or after it', { timeout: 240_000 }, async () => {
  const report = await diskFaults(5);
  expect(report.stepCalls).toBeGreaterThan(50);
  expect(report.backCalls).toBeGreaterThan(5);
  expect(report.before).toBeGreaterThan(0);
  expect(report.after).toBeGreaterThan(0);
});
