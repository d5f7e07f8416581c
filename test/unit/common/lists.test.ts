// Lists longer than the maximum number of call arguments; and maximum and minimum of empty lists and of NaN.
import { expect, test } from 'vitest';
import { appendAll, maximum, minimum, parted, replaceTail } from '../../../extension/common/lists';

const many = Array.from({ length: 2 ** 20 }, (_, i) => i);

test('lists of a million are appended, replace a tail, and have a maximum and minimum', () => {
  const list = [-1];
  appendAll(list, many);
  expect([list.length, list[1], list.at(-1)]).toEqual([2 ** 20 + 1, 0, 2 ** 20 - 1]);
  replaceTail(list, 1, many.slice(1));
  expect([list.length, list[1], list.at(-1)]).toEqual([2 ** 20, 1, 2 ** 20 - 1]);
  expect([minimum(many), maximum(many)]).toEqual([0, 2 ** 20 - 1]);
});

test('empty lists, bounds and NaN behave as with Math.max and Math.min', () => {
  expect([maximum([]), minimum([]), maximum([], 1), minimum([], 1)]).toEqual([-Infinity, Infinity, 1, 1]);
  expect([maximum([2, 3], 5), minimum([2, 3], 1)]).toEqual([5, 1]);
  expect([maximum([1, NaN, 2]), minimum([1, NaN, 2])]).toEqual([NaN, NaN]);
});

test('a list is split into parts of at most the given length, and stays one part without it', () => {
  expect(parted([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
  expect(parted([1, 2], 2)).toEqual([[1, 2]]);
  expect(parted([1, 2])).toEqual([[1, 2]]);
  expect(parted([], 2)).toEqual([[]]);
});
