// The causal mask.
import { expect, it } from 'vitest';
import { causalMask, masked } from '../../../../extension/engine/session/padding';

it.each([1, 3, 70])('lets token i of %i see tokens 0…i', t => {
  const { data, dims } = causalMask(t);
  expect(dims).toEqual([t, t]);
  for (let i = 0; i < t; i++)
    for (let k = 0; k < t; k++) expect(data[i * t + k]).toBe(k <= i ? 0 : Math.fround(masked));
});

it('remembers masks, and survives more sizes than it remembers', () => {
  expect(causalMask(9)).toBe(causalMask(9));
  for (let t = 1; t < 80; t++) causalMask(t);
  expect(causalMask(9).dims).toEqual([9, 9]);
});
