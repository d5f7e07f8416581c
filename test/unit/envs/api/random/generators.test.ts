// The three generators against numbers drawn by CPython and numpy (test/golden/make/envs_random.py), bit for bit.
import { describe, expect, test } from 'vitest';
import golden from '../../../../golden/envs/random.json';
import { NumpyLegacy } from '../../../../../envs/api/random/numpy-legacy';
import { Pcg64 } from '../../../../../envs/api/random/pcg64';
import { PythonRandom } from '../../../../../envs/api/random/python-random';

const times = <T>(count: number, draw: () => T): T[] => Array.from({ length: count }, draw);

describe('PythonRandom', () => {
  test.each(golden.python)('draws as CPython with seed $seed', row => {
    const random = new PythonRandom(row.seed);
    expect(times(4, () => random.random())).toEqual(row.random);
    expect([1, 7, 31, 32, 33, 53].map(bits => random.getrandbits(bits))).toEqual(row.bits);
    expect([1, 2, 3, 4, 5, 100, 2 ** 31, 2 ** 32, 2 ** 40].map(n => random.randbelow(n))).toEqual(row.below);
    expect(times(8, () => random.randint(1, 5))).toEqual(row.randint);
    expect(times(8, () => random.choice([...'abcd']))).toEqual(row.choice);
    expect(times(4, () => random.choice([...'abcde']))).toEqual(row.sample1);
    const items = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    random.shuffle(items);
    expect(items).toEqual(row.shuffle);
    for (let i = 0; i < 1300; i++) random.random();
    expect(random.random()).toBe(row.later);
  });
});

describe('NumpyLegacy', () => {
  test.each(golden.legacy)('draws as RandomState with seed $seed', row => {
    const random = new NumpyLegacy(row.seed);
    expect(times(4, () => random.random())).toEqual(row.random);
    expect([1, 2, 3, 5, 16, 17, 1000, 2 ** 31 + 3, 2 ** 32].map(high => random.randint(0, high))).toEqual(row.randint);
    expect(times(6, () => random.choice(7))).toEqual(row.choice);
    expect(times(12, () => random.choice(3, [0.2, 0.5, 0.3]))).toEqual(row.weighted);
  });
});

describe('Pcg64', () => {
  test.each(golden.pcg64)('draws as Generator(PCG64) with seed $seed and key $key', row => {
    const random = new Pcg64(row.seed, row.key);
    expect(times(3, () => random.random())).toEqual(row.random);
    const bounds = [1, 2, 3, 4, 5, 100, 3 * 2 ** 30, 2 ** 32 - 1, 2 ** 32];
    expect(bounds.map(high => random.integers(0, high))).toEqual(row.integers);
    expect(Math.floor(random.random())).toBe(row.between);
    expect(times(3, () => times(2, () => random.integers(0, 4)))).toEqual(row.pairs);
    expect(times(12, () => random.choice(2, [0.8, 1 - 0.8]))).toEqual(row.holes);
    expect(times(8, () => random.choice(4, [0.1, 0.2, 0.3, 0.4]))).toEqual(row.weighted);
    expect(random.random()).toBe(row.last);
  });
});

test.each([-1, 0.5, NaN, 2 ** 53])('a seed of %d is refused by name', seed => {
  for (const make of [() => new PythonRandom(seed), () => new Pcg64(seed), () => new NumpyLegacy(seed)])
    expect(make).toThrow(/seed is .*: give an integer from 0 to/);
});
