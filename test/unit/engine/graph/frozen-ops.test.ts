// Int8 products against integer arithmetic: each row is quantised separately, its product is exact up to one rounding,
// and the float32 form of a weight is byte times scale. Gradients of frozen layers are in the table of
// gradients.test.ts.
import { describe, expect, it } from 'vitest';
import { dequantized, frozenLinear, int8Linear, quantizeRows } from '../../../../extension/engine/graph/frozen-ops';
import { gradients } from '../../../../extension/engine/graph/autodiff';
import { Graph } from '../../../../extension/engine/graph/graph';
import type { Value } from '../../../../extension/engine/graph/graph';
import { sumAll } from '../../../../extension/engine/graph/ops';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Session, float32 } from '../../../../extension/engine/session/session';
import { runGraph } from './run-graph';

const stream = new RandomStream(8);
const [n, from, out] = [5, 96, 24];
const x = Float32Array.from({ length: n * from }, () => stream.normal());
x.fill(0, from, 2 * from); // a row of zeros
x[2 * from] = 900; // a row with one large value
const weight = (range: number): Int8Array =>
  Int8Array.from({ length: from * out }, () => stream.integer(2 * range + 1) - range);
const scale = Float32Array.from({ length: out }, () => 0.001 + 0.01 * stream.uniform());
const bias = Float32Array.from({ length: out }, () => stream.normal());

interface Held {
  weight: Value;
  scale: Value;
}
const held = (g: Graph, bytes: Int8Array): Held => ({
  weight: g.constant('int8', [from, out], bytes),
  scale: g.constant('float32', [out], scale),
});

const quantizedRows = (rows: Float32Array) =>
  runGraph((g, feed) => {
    const { bytes, scale } = quantizeRows(g, feed('x', float32(rows, [rows.length / from, from]), ['n', from]));
    return { bytes, scale };
  });

const product = (rows: Float32Array, bytes: Int8Array, biased = false): Promise<Record<string, number[]>> =>
  runGraph((g, feed) => {
    const x = feed('x', float32(rows, [rows.length / from, from]), ['n', from]);
    return { y: int8Linear(g, quantizeRows(g, x), held(g, bytes), biased ? g.constant('float32', [out], bias) : null) };
  });

describe('a quantised row', () => {
  it('scales its bytes by its largest magnitude, symmetrically around 128', async () => {
    const { bytes, scale: units } = await quantizedRows(x);
    for (let row = 0; row < n; row++) {
      const own = x.subarray(row * from, (row + 1) * from);
      const largest = Math.max(...own.map(Math.abs));
      expect(units[row] / (Math.max(largest, 1e-12) / 127)).toBeCloseTo(1, 6);
      const found = bytes.slice(row * from, (row + 1) * from);
      own.forEach((v, i) =>
        expect(Math.abs((found[i] - 128) * units[row] - v)).toBeLessThanOrEqual(0.5001 * units[row]),
      );
      if (largest > 0) expect(Math.max(...found.map(b => Math.abs(b - 128)))).toBe(127);
    }
  });

  it('does not depend on neighbouring rows', async () => {
    const { bytes, scale: units } = await quantizedRows(x);
    for (let row = 0; row < n; row++) {
      const alone = await quantizedRows(x.slice(row * from, (row + 1) * from));
      expect(alone.scale[0]).toBe(units[row]);
      expect(alone.bytes).toEqual(bytes.slice(row * from, (row + 1) * from));
    }
  });
});

describe('an int8 product', () => {
  // 63 is the range on machines without VNNI, where pairs of larger bytes saturate.
  it.each([63])('of range %i is exact on every machine', async range => {
    const w = weight(range);
    w.fill(range, 0, 4 * out); // the extreme values meet
    const extreme = Float32Array.from(x);
    extreme.fill(1, 3 * from, 4 * from); // every byte is 255
    const { bytes, scale: units } = await quantizedRows(extreme);
    const { y } = await product(extreme, w, true);
    for (let row = 0; row < n; row++)
      for (let o = 0; o < out; o++) {
        let sum = 0;
        for (let i = 0; i < from; i++) sum += (bytes[row * from + i] - 128) * w[i * out + o];
        const expected = Math.fround(Math.fround(Math.fround(Math.fround(sum) * scale[o]) * units[row]) + bias[o]);
        expect(y[row * out + o], `[${row}, ${o}]`).toBe(expected);
      }
  });

  it("has the same bits in signed bytes, which CUDA's kernel uses", async () => {
    const w = Int8Array.from({ length: from * out }, (_, i) => ((37 * i) % 127) - 63);
    const signed = await runGraph((g, feed) => {
      const rows = quantizeRows(g, feed('x', float32(x, [n, from]), ['n', from]));
      expect(rows.bytes.type).toBe('int8');
      return { y: int8Linear(g, rows, held(g, w), null) };
    }, 'cuda');
    expect(signed).toEqual(await product(x, w));
  });

  it('gives a row the same bits whatever rows are beside it', async () => {
    const w = weight(63);
    const { y } = await product(x, w);
    for (let row = 0; row < n; row++)
      expect((await product(x.slice(row * from, (row + 1) * from), w)).y).toEqual(y.slice(row * out, (row + 1) * out));
  });

  it('is close to the float product', async () => {
    const w = weight(63);
    const { y } = await product(x, w);
    let [error, norm] = [0, 0];
    for (let row = 0; row < n; row++)
      for (let o = 0; o < out; o++) {
        let sum = 0;
        for (let i = 0; i < from; i++) sum += x[row * from + i] * w[i * out + o] * scale[o];
        error += (y[row * out + o] - sum) ** 2;
        norm += sum ** 2;
      }
    expect(Math.sqrt(error / norm)).toBeLessThan(0.01);
  });
});

describe('a frozen weight', () => {
  it('dequantizes to byte times scale', async () => {
    const w = weight(127);
    const { y } = await runGraph((g, feed) => {
      feed('unused', float32(new Float32Array(1), [1]));
      return { y: dequantized(g, held(g, w)) };
    });
    y.forEach((v, i) => expect(v).toBe(Math.fround(w[i] * scale[i % out])));
  });

  it('is requested once for each product that reads it', () => {
    const g = new Graph('asked');
    const input = g.input('x', 'float32', ['n', 3]);
    let asked = 0;
    const y = frozenLinear(g, input, () => (asked++, g.constant('float32', [2, 3], new Float32Array(6))));
    expect(asked).toBe(1);
    gradients(g, sumAll(g, y), [input]);
    expect(asked).toBe(2);
  });

  it('must have matching dimensions', () => {
    const g = new Graph('unfit');
    const input = g.input('x', 'float32', ['n', 3]);
    const w = g.constant('float32', [2, 4], new Float32Array(8));
    expect(() => frozenLinear(g, input, () => w)).toThrow('graph: frozenLinear needs equal dimensions, got 3 and 4');
    expect(() => frozenLinear(g, input, () => w, null, false)).toThrow('needs equal dimensions, got 3 and 2');
  });

  it('adds its bias once, in the forward pass only', async () => {
    const g = new Graph('biased');
    const input = g.input('x', 'float32', ['n', 2]);
    const w = g.constant('float32', [2, 2], Float32Array.of(1, 2, 3, 4));
    const y = frozenLinear(g, input, () => w, g.constant('float32', [2], Float32Array.of(10, 20)));
    g.output('y', y);
    g.output('dx', gradients(g, sumAll(g, y), [input])[0]);
    const session = await Session.create(g, { threads: 1 });
    const result = await session.run({ x: float32(Float32Array.of(1, 1), [1, 2]) });
    expect([...result.y.data]).toEqual([13, 27]);
    expect([...result.dx.data]).toEqual([4, 6]);
  });
});
