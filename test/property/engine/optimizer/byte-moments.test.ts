// 8-bit optimizer moments of arbitrary numbers. A rounded value lies within one level of the original and keeps its
// sign. It is zero only if the original was zero or, for first moments, close to zero. A value equal to a level is not
// changed by dithering. Over many steps the rounding is unbiased.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  blockSize,
  ditherFeeds,
  firstFromBytes,
  firstToBytes,
  secondFromBytes,
  secondToBytes,
} from '../../../../extension/engine/optimizer/byte-moments';
import { Graph } from '../../../../extension/engine/graph/graph';
import { Session, float32 } from '../../../../extension/engine/session/session';
import { partial } from '../../../support/partial';

interface Result {
  m: Float32Array;
  v: Float32Array;
  mBytes: Int8Array;
  vBytes: Uint8Array;
  mScale: Float32Array;
  vScale: Float32Array;
}

let session: Session;
beforeAll(async () => {
  const g = new Graph('there and back');
  const [m, v] = ['m', 'v'].map(name => g.input(name, 'float32', ['b', blockSize]));
  const dither = (name: string) => g.input(name, 'float32', [1, blockSize]);
  const first = firstToBytes(g, m, dither('first_dither'));
  const second = secondToBytes(g, v, dither('second_dither'));
  g.output('mBytes', first.bytes);
  g.output('mScale', first.scale);
  g.output('vBytes', second.bytes);
  g.output('vScale', second.scale);
  g.output('m', firstFromBytes(g, first));
  g.output('v', secondFromBytes(g, second));
  session = await Session.create(g, { threads: 1 });
});
afterAll(() => session.release());

/** Quantizes and dequantizes; `second` holds the values of the second moments. */
async function thereAndBack(first: Float32Array, second: Float32Array, step: number): Promise<Result> {
  const dims = [first.length / blockSize, blockSize];
  const result = await session.run({ m: float32(first, dims), v: float32(second, dims), ...ditherFeeds(step) });
  return partial<Result>(Object.fromEntries(Object.entries(result).map(([name, { data }]) => [name, data])));
}

// Numbers whose magnitudes differ widely within one block, as in real gradients.
const number = fc
  .tuple(fc.double({ min: 1, max: 10, noNaN: true }), fc.integer({ min: -12, max: 3 }), fc.constantFrom(1, -1, 0))
  .map(([digits, power, sign]) => Math.fround(sign * digits * 10 ** power));
const blocks = fc
  .integer({ min: 1, max: 3 })
  .chain(b => fc.array(number, { minLength: b * blockSize, maxLength: b * blockSize }))
  .map(xs => Float32Array.from(xs));
const step = fc.integer({ min: 1, max: 1_000_000 });

/** Width of the gap between levels that contains x, for `levels` levels up to `scale` spaced by `power`. */
function gapAt(x: number, scale: number, levels: number, power: number): number {
  const level = Math.min(levels - 1, Math.floor(levels * (x / scale) ** (1 / power) + 1e-3));
  return (scale * ((level + 1) ** power - level ** power)) / levels ** power;
}

describe('8-bit moments', () => {
  it('return within one level, by block, with their signs; zeros stay zeros', async () => {
    await fc.assert(
      fc.asyncProperty(blocks, step, async (numbers, t) => {
        const squares = numbers.map(x => x * x);
        const { m, v, mScale, vScale } = await thereAndBack(numbers, squares, t);
        for (let from = 0, b = 0; from < numbers.length; from += blockSize, b++) {
          const block = numbers.subarray(from, from + blockSize);
          const largest = Math.max(...block.map(Math.abs));
          expect(mScale[b]).toBe(largest);
          expect(vScale[b]).toBe(Math.fround(largest * largest));
          block.forEach((x, i) => {
            const [mBack, vBack, square] = [m[from + i], v[from + i], squares[from + i]];
            if (x === 0) {
              expect([Math.abs(mBack), vBack], `zero at ${i}`).toEqual([0, 0]);
              return;
            }
            expect(mBack * x, `sign at ${i}`).toBeGreaterThanOrEqual(0);
            expect(vBack, `second moment of ${x}`).toBeGreaterThan(0);
            expect(Math.abs(mBack - x)).toBeLessThanOrEqual(gapAt(Math.abs(x), largest, 127, 2) * 1.001);
            expect(Math.abs(vBack - square)).toBeLessThanOrEqual(gapAt(square, vScale[b], 255, 4) * 1.001);
          });
        }
      }),
      { seed: 1, numRuns: 30 },
    );
  });

  it('stay unchanged once they lie on levels, at every step', async () => {
    await fc.assert(
      fc.asyncProperty(blocks, step, step, async (numbers, t, later) => {
        const once = await thereAndBack(
          numbers,
          numbers.map(x => x * x),
          t,
        );
        expect(await thereAndBack(once.m, once.v, later)).toEqual(once);
      }),
      { seed: 2, numRuns: 40 },
    );
  });

  it('are unbiased over the steps of a run', async () => {
    // The maximum is 1; the other numbers lie between levels, some of them below the lowest level.
    const numbers = Float32Array.from({ length: blockSize }, (_, i) => (i === 0 ? 1 : (i / 300) ** 3));
    const squares = numbers.map(x => x * x);
    const steps = 1000;
    const means = { m: new Float64Array(blockSize), v: new Float64Array(blockSize) };
    for (let t = 1; t <= steps; t++) {
      const { m, v } = await thereAndBack(numbers, squares, t);
      m.forEach((x, i) => (means.m[i] += x / steps));
      v.forEach((x, i) => (means.v[i] += x / steps));
    }
    numbers.forEach((x, i) => {
      const gap = gapAt(x, 1, 127, 2);
      expect(Math.abs(means.m[i] - x) / gap, `first moment ${i}`).toBeLessThan(0.01);
      const square = squares[i];
      // The lowest level is never rounded to zero, so values below it are overestimated.
      const expected = Math.max(square, 255 ** -4);
      expect(Math.abs(means.v[i] - expected) / gapAt(expected, 1, 255, 4), `second moment ${i}`).toBeLessThan(0.01);
    });
  });

  it('dither evenly: over steps every number of a block is rounded up equally often', () => {
    const counts = new Float64Array(10);
    let [least, most] = [1, 0];
    for (let t = 1; t <= 500; t++)
      for (const { data } of Object.values(ditherFeeds(t)))
        for (const u of data as Float32Array) {
          [least, most] = [Math.min(least, u), Math.max(most, u)];
          counts[Math.floor(u * 10)]++;
        }
    expect(least).toBeGreaterThan(0.001);
    expect(most).toBeLessThan(0.999);
    const total = counts.reduce((a, b) => a + b);
    counts.forEach(count => expect(count / total).toBeCloseTo(0.1, 2));
  });
});
