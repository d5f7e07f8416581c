import { expect, test } from 'vitest';
import { OutputBudget } from '../../../extension/node/output-budget';

test('a limited number of characters passes per second, followed by one notice about omitted output', () => {
  const budget = new OutputBudget(10);
  expect([budget.take('12345', 0), budget.take('6789', 400)]).toEqual(['12345', '6789']);
  expect(budget.take('abcdef', 500)).toBe('a… (further output in this second was dropped)\n');
  expect([budget.take('more', 600), budget.take('more', 999)]).toEqual(['', '']);
  expect(budget.take('next', 1000)).toBe('next');
  expect(budget.take('0123456', 1001).startsWith('012345…')).toBe(true);
});
