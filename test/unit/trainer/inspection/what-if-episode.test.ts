// The comparison of a replayed turn's observation with the stored one.
import { expect, test } from 'vitest';
import { observationDifference } from '../../../../extension/trainer/inspection/what-if-episode';

test('a replayed observation must have the same text and the same pictures', () => {
  const state = '<image>';
  const shown = (...names: string[]) => ({ state, pictures: names.map(name => ({ name })) });
  expect(observationDifference({ state, pictures: ['a.png'] }, shown('a.png'))).toBeUndefined();
  expect(observationDifference({ state }, shown())).toBeUndefined();
  expect(observationDifference({ state: 'x' }, shown())).toBe('another state');
  expect(observationDifference({ state, pictures: ['a.png'] }, shown('b.png'))).toBe('other pictures');
  expect(observationDifference({ state, pictures: ['a.png'] }, shown())).toBe('other pictures');
  expect(observationDifference({ state }, shown('a.png'))).toBe('other pictures');
});
