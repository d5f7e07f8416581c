// The seeded stream against vectors of the C reference (prng.di.unimi.it, xoshiro128starstar.c), so that a seed means
// the same tokens in every version; and its state, which checkpoints store.
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';

const words = (stream: RandomStream, n: number): number[] =>
  Array.from({ length: n }, () => stream.uniform() * 2 ** 32);

describe('xoshiro128**', () => {
  it('equals the reference output', () => {
    const stream = new RandomStream(0);
    stream.state = [1, 2, 3, 4];
    expect(words(stream, 7)).toEqual([11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034]);
    stream.state = [0x964d4a0c, 0xd40ab895, 0xad7fdecb, 0x3006f0f0];
    expect(words(stream, 4)).toEqual([0xf1391922, 0x6fe53806, 0xa5be2840, 0xf510ee70]);
  });

  it.each([
    [0, [1789933344, 44971166, 2521387044]],
    [42, [660444221, 3652823732, 77672526]],
    [2 ** 40 + 7, [1814506324, 3221904288, 3467598780]],
  ])('is seeded by splitmix32 from %i', (seed, expected) => {
    expect(words(new RandomStream(seed), 3)).toEqual(expected);
  });

  it('distinguishes seeds that differ only above 32 bits', () => {
    const first = [0, 1, 2, 1000].map(high => new RandomStream(5 + high * 2 ** 32).uniform());
    expect(new Set(first).size).toBe(4);
  });
});

describe('a stream', () => {
  it('continues from a saved state', () => {
    const stream = new RandomStream(9);
    words(stream, 5);
    const { state } = stream;
    const expected = words(stream, 8);
    const resumed = new RandomStream(1);
    resumed.state = JSON.parse(JSON.stringify(state)) as typeof state;
    expect(words(resumed, 8)).toEqual(expected);
  });

  it('draws integers below n uniformly', () => {
    const stream = new RandomStream(4);
    const counts = new Array<number>(6).fill(0);
    for (let i = 0; i < 6000; i++) counts[stream.integer(6)]++;
    // chi-square with 5 degrees of freedom: exceeds 20.5 for one seed in a thousand
    expect(counts.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)).toBeLessThan(20.5);
  });

  it('draws standard normal numbers', () => {
    const stream = new RandomStream(4);
    const n = 20_000;
    const xs = Array.from({ length: n }, () => stream.normal());
    const moment = (k: number): number => xs.reduce((sum, x) => sum + x ** k, 0) / n;
    expect(moment(1)).toBeCloseTo(0, 1);
    expect(moment(2)).toBeCloseTo(1, 1);
    expect(Math.abs(moment(3))).toBeLessThan(0.1);
    expect(Math.abs(moment(4) - 3)).toBeLessThan(0.2);
    expect(xs.every(Number.isFinite)).toBe(true);
  });
});
