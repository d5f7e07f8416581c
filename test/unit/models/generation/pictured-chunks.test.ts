// Slices of tokens that show pictures: parts of a chunk, and a token before it.
import { expect, it } from 'vitest';
import { afterToken, endOf, picturedPart } from '../../../../extension/models/generation/pictured-chunks';
import { showFeatures } from '../../../../extension/models/vision/shown-features';

const values = new Float32Array(6);
const whole = { ...showFeatures(9, [{ start: 1, feature: 0, count: 6, columns: 3 }]), values };
const axisOf = (positions: Int32Array, axis: number): number[] => {
  const n = positions.length / 3;
  return [...positions.subarray(axis * n, (axis + 1) * n)];
};

it('keeps features and the positions of all axes of a part', () => {
  const part = picturedPart(whole, 2, 8);
  expect([...part.features]).toEqual([1, 2, 3, 4, 5, -1]);
  for (const axis of [0, 1, 2]) expect(axisOf(part.positions, axis)).toEqual(axisOf(whole.positions, axis).slice(2, 8));
  expect(picturedPart(whole, 6, 100).features).toEqual(Int32Array.of(5, -1, -1));
});

it('puts a text token before a chunk', () => {
  const longer = afterToken(whole, 40);
  expect([...longer.features]).toEqual([-1, ...whole.features]);
  for (const axis of [0, 1, 2]) expect(axisOf(longer.positions, axis)).toEqual([40, ...axisOf(whole.positions, axis)]);
});

it('continues after the longer side of a picture', () => {
  expect(endOf(picturedPart(whole, 0, 7))).toBe(4);
  expect(endOf(whole)).toBe(6);
});
