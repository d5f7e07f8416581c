// Linear layers with frozen weights. A weight is passed as a function that is called once per use. If the weight is
// stored in half precision or 8 bits, each call creates a float32 copy, which exists only during one matmul. The 8-bit
// matmul quantises each row of activations separately, so a row's result does not depend on other rows.
import { contrib } from './graph';
import type { Dim, Graph, Value } from './graph';
import { binary, reshape, unary } from './ops';
import { expectDim, expectDims, expectType } from './shapes';

/**
 * Returns x [n, in] · Wᵀ (+ b [out]) → [n, out] with W [out, in]. If `transposed` is false, returns x · W (+ b) with W
 * [in, out].
 */
export function frozenLinear(
  g: Graph,
  x: Value,
  weight: () => Value,
  bias: Value | null = null,
  transposed = true,
): Value {
  const product = (a: Value, transB: boolean): Value => {
    const w = weight();
    const [out, from] = transB ? [w.dims[0], w.dims[1]] : [w.dims[1], w.dims[0]];
    expectDim('frozenLinear', a.dims[1], from);
    const inputs = bias && a === x ? [a, w, bias] : [a, w];
    return g.emit('Gemm', inputs, x.type, [a.dims[0], out], { transB: Number(transB) });
  };
  const y = product(x, transposed);
  if (bias) expectDims('frozenLinear', bias, [y.dims[1]]);
  g.record([x], [y], ([dy]) => [dy && product(dy, !transposed)]);
  return y;
}

export interface Int8Weight {
  /** int8 [in, out] */
  weight: Value;
  /** float32 [out]: the dequantisation scale of each column. */
  scale: Value;
}

/**
 * Quantised activation rows: unsigned bytes with zero point 128 (signed bytes on CUDA), and the scale [n, 1] of each
 * row.
 */
export interface QuantizedRows {
  bytes: Value;
  scale: Value;
}

/** Quantises each row of x [n, in] symmetrically; the row's largest absolute value determines its scale. */
export function quantizeRows(g: Graph, x: Value): QuantizedRows {
  expectType('quantizeRows', x, 'float32');
  const column = [x.dims[0], 1];
  const largest = g.emit('ReduceMax', [unary(g, 'Abs', x), g.integers([1])], 'float32', column, { keepdims: 1 });
  const scale = binary(g, 'Mul', binary(g, 'Max', largest, g.scalar(1e-12)), g.scalar(1 / 127));
  // The CPU's 8-bit matmul is fastest with unsigned activations; CUDA's 8-bit matmul accepts signed activations only.
  if (g.lowering === 'cuda') {
    const rounded = unary(g, 'Round', binary(g, 'Div', x, scale));
    return { bytes: g.emit('Cast', [rounded], 'int8', x.dims, { to: 3 }), scale };
  }
  const units = reshape(g, scale, [x.dims[0]]);
  const count = g.emit('Shape', [units], 'int64', [1]);
  const zeros = g.emit('Expand', [g.bytes(128), count], 'uint8', units.dims);
  return { bytes: g.emit('QuantizeLinear', [x, units, zeros], 'uint8', x.dims, { axis: 0 }), scale };
}

/** Returns the product of quantised rows and an 8-bit weight, as float32 [n, out]; not differentiable. */
export function int8Linear(g: Graph, x: QuantizedRows, { weight, scale }: Int8Weight, bias: Value | null): Value {
  const dims = [x.bytes.dims[0], weight.dims[1]];
  const scaled = binary(g, 'Mul', inUnitsOfRows(g, x.bytes, weight, scale, dims), x.scale);
  return bias ? binary(g, 'Add', scaled, bias) : scaled;
}

/**
 * Returns the product of quantised rows and an 8-bit weight, multiplied by the scales of the weight's columns. The
 * caller multiplies the result by the scales of the rows. On the CPU, the matmul kernel applies the column scales,
 * which saves passes over memory.
 */
function inUnitsOfRows(g: Graph, bytes: Value, weight: Value, scale: Value, dims: readonly Dim[]): Value {
  if (bytes.type === 'uint8') {
    const inputs = [bytes, weight, g.scalar(1), scale, g.bytes(128)];
    return g.emit('MatMulIntegerToFloat', inputs, 'float32', dims, {}, contrib);
  }
  const sums = g.emit('MatMulInteger', [bytes, weight], 'int32', dims);
  return binary(g, 'Mul', g.emit('Cast', [sums], 'float32', dims, { to: 1 }), scale);
}

/** Returns the float32 form of an 8-bit weight, [in, out]. */
export function dequantized(g: Graph, { weight, scale }: Int8Weight): Value {
  return g.emit('DequantizeLinear', [weight, scale], 'float32', weight.dims, { axis: 1 });
}
