// Ragged rows as right-padded tensors, and the causal mask.
import { expect, it } from 'vitest';
import { causalMask, masked, padRows } from '../../../../extension/engine/session/padding';

it('pads rows on the right and counts positions from each row’s start', () => {
  const { ids, positions } = padRows([[7, 8, 9], Int32Array.of(5), []], 4, [0, 10, 3]);
  expect(ids).toEqual({
    type: 'int64',
    dims: [3, 4],
    data: BigInt64Array.of(7n, 8n, 9n, 0n, 5n, 0n, 0n, 0n, 0n, 0n, 0n, 0n),
  });
  expect(positions.dims).toEqual([3, 4]);
  expect([...(positions.data as BigInt64Array)]).toEqual([0n, 1n, 2n, 0n, 10n, 0n, 0n, 0n, 0n, 0n, 0n, 0n]);
});

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
