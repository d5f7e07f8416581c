import { expect, test } from 'vitest';
import { exceedsMemory, formatShortage, MemoryShortage } from '../../../extension/run-data/memory-shortage';

const gib = 2 ** 30;
const memory = { planned: 15.4 * gib, available: 12.3 * gib, phase: 'policy update' };

test('a plan exceeds the memory only if it is larger than what is available', () => {
  expect(exceedsMemory(memory)).toBe(true);
  expect(exceedsMemory({ planned: gib, available: gib })).toBe(false);
  expect(exceedsMemory({ planned: gib + 1, available: gib })).toBe(true);
});

test('the refusal states both sizes and the remedies', () => {
  expect(formatShortage(memory)).toBe('the run may need 15.4 GiB in its policy update, but 12.3 GiB is available');
  expect(new MemoryShortage(memory).message).toMatch(/15\.4 GiB.*12\.3 GiB.*group_size.*--yes$/);
});
