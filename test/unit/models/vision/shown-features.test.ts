// Features and positions of the tokens of a conversation, without the models that golden files cover.
import { expect, it } from 'vitest';
import { showFeatures } from '../../../../extension/models/vision/shown-features';

it('counts positions along each axis of a picture, and continues after its longer side', () => {
  const { features, positions } = showFeatures(9, [{ start: 1, feature: 10, count: 6, columns: 3 }]);
  expect([...features]).toEqual([-1, 10, 11, 12, 13, 14, 15, -1, -1]);
  expect([...positions.subarray(0, 9)]).toEqual([0, 1, 1, 1, 1, 1, 1, 4, 5]);
  expect([...positions.subarray(9, 18)]).toEqual([0, 1, 1, 1, 2, 2, 2, 4, 5]);
  expect([...positions.subarray(18)]).toEqual([0, 1, 2, 3, 1, 2, 3, 4, 5]);
});

it('counts positions of models with one axis like those of text', () => {
  const { positions } = showFeatures(5, [{ start: 1, feature: 0, count: 3 }]);
  expect([...positions]).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
});

it.each([
  [[{ start: 3, feature: 0, count: 3 }], 'the tokens from 3 to 6 do not follow token 0 within 5 tokens'],
  [
    [
      { start: 1, feature: 0, count: 3 },
      { start: 3, feature: 0, count: 1 },
    ],
    'the tokens from 3 to 4 do not follow token 4 within 5 tokens',
  ],
])('rejects pictures %j', (pictures, message) => {
  expect(() => showFeatures(5, pictures)).toThrow(message);
});
