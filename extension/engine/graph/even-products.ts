// Linear layers whose result for a row has the same bits whatever the other rows and the number of threads. The matmul of
// onnxruntime's CPU provider (MLAS, sgemm.cpp) adds up the products of `piece` inputs at a time, but more at a time for a
// thread that computes at most 64 columns. With several threads the number of rows determines the columns of a thread,
// and therefore the rounding. Packed constants always have the same pieces. Without gradient.
import type { Graph, Value } from './graph';
import { expectDim, expectType } from './shapes';

/** Number of products that MLAS adds up at a time if a thread computes more than 64 columns. */
const piece = 128;

/** Number of columns per thread at which every thread computes more than 64, because threads get multiples of 16. */
const columnsPerThread = 80;

/**
 * Returns x [n, in] · W [out, in]ᵀ (+ b [out] or [n, out]) → [n, out] in float32. The bits equal those of `linear` on one
 * thread if `out` exceeds 64.
 * @param threads number of threads of the session, at least 1
 */
export function evenLinear(g: Graph, x: Value, weight: Value, bias: Value | null, threads: number): Value {
  expectType('evenLinear', x, 'float32');
  expectDim('evenLinear', x.dims[1], weight.dims[1]);
  const [out, inputs] = weight.dims.map(Number);
  const dims = [x.dims[0], out];
  const add = (a: Value, b: Value, sum: Value | null): Value =>
    g.emit('Gemm', sum ? [a, b, sum] : [a, b], 'float32', dims, { transB: 1 });
  if (threads === 1 || inputs <= piece || out >= columnsPerThread * threads) return add(x, weight, bias);
  let sum = bias;
  for (let from = 0; from < inputs; from += piece) {
    const count = Math.min(piece, inputs - from);
    const part = (value: Value): Value =>
      g.emit('Slice', [value, g.integers([from]), g.integers([from + count]), g.integers([1])], 'float32', [
        value.dims[0],
        count,
      ]);
    sum = add(part(x), part(weight), sum);
  }
  return sum!;
}
