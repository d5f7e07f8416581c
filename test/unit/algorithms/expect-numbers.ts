// Compares numbers with hand-computed values, to `digits` decimals.
import { expect } from 'vitest';

export function expectNumbers(actual: ArrayLike<number>, expected: readonly number[], digits = 5): void {
  expect(actual.length).toBe(expected.length);
  expected.forEach((value, index) => expect(actual[index], `entry ${index}`).toBeCloseTo(value, digits));
}
