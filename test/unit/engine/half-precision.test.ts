// Conversion to half precision: round to nearest, ties to even.
import { describe, expect, test } from 'vitest';
import { fromBrain, fromHalf, toBrain, toHalf } from '../../../extension/engine/half-precision';

const types = [
  { name: 'F16', widen: fromHalf, narrow: toHalf, infinity: 0x7c00 },
  { name: 'BF16', widen: fromBrain, narrow: toBrain, infinity: 0x7f80 },
];
const bits = (x: Uint32Array): Float32Array => new Float32Array(x.buffer);

describe.each(types)('$name', ({ widen, narrow, infinity }) => {
  const all = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
  const values = new Float32Array(1 << 16);
  widen(all, values, 0);

  test('every value converts back, NaN as NaN', () => {
    const back = narrow(values);
    const wrong = all.filter(i => (Number.isNaN(values[i]) ? (back[i] & 0x7fff) <= infinity : back[i] !== i));
    expect([...wrong]).toEqual([]);
  });

  test('values between two neighbours round to the nearest, ties to even', () => {
    // For all finite neighbours, both signs: the midpoint, and the F32 numbers directly below and above it. F32
    // represents them exactly.
    const below = all.subarray(0, infinity - 1);
    const middle = Float32Array.from(below, i => values[i] / 2 + values[i + 1] / 2);
    const from = new Uint32Array(middle.buffer);
    for (const sign of [0, 0x8000]) {
      const wrong = (n: number, expected: (i: number) => number): number[] => {
        const narrowed = narrow(bits(from.map(x => x + n + (sign << 16))));
        return [...below.filter(i => narrowed[i] !== (expected(i) | sign))];
      };
      expect(wrong(-1, i => i)).toEqual([]);
      expect(wrong(1, i => i + 1)).toEqual([]);
      expect(wrong(0, i => i + (i & 1))).toEqual([]);
    }
  });

  test('values beyond the largest become infinity', () => {
    const largest = values[infinity - 1];
    const step = largest - values[infinity - 2];
    const limit = Math.fround(largest + step / 2);
    const under = new Float32Array(1);
    new Uint32Array(under.buffer)[0] = new Uint32Array(Float32Array.of(limit).buffer)[0] - 1;
    const narrowed = narrow(Float32Array.of(under[0], limit, -limit, 3.4e38, Infinity, -Infinity));
    expect([...narrowed]).toEqual([infinity - 1, infinity, infinity | 0x8000, infinity, infinity, infinity | 0x8000]);
  });

  test('a NaN stays NaN when its payload is rounded away, and a view of an array converts', () => {
    const nan = bits(Uint32Array.of(0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff));
    for (const half of narrow(nan)) expect((half & 0x7fff) > infinity).toBe(true);
    expect([...narrow(values.subarray(5, 8))]).toEqual([5, 6, 7]);
  });
});
