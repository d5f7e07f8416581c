// Elementwise, reduction and shape operations with their pullbacks. Every function takes the graph as its first
// argument, checks shapes, emits ONNX nodes and records its pullback, the vector-Jacobian product of reverse-mode
// differentiation. Operands are float32 or float16, and results have the type of the operands. Long sums are computed
// in float32. If onnxruntime's WebGPU provider lacks a kernel, an equivalent form is emitted for the lowering `webgpu`.
// Matmuls, attention and the decoder's layers are in layer-ops.ts.
import type { Dim, FloatType, Graph, Value } from './graph';
import {
  broadcast,
  expectDims,
  expectFloat,
  expectSameCount,
  expectType,
  sameDims,
  showDims,
  summedAxes,
} from './shapes';

/** Converts x to another float type; the gradient is converted back to the type of x. */
export function cast(g: Graph, x: Value, type: FloatType): Value {
  if (x.type === type) return x;
  const y = converted(g, x, type);
  g.record([x], [y], ([dy]) => [dy && converted(g, dy, expectFloat('cast', x))]);
  return y;
}

export function add(g: Graph, a: Value, b: Value): Value {
  const y = binary(g, 'Add', a, b);
  g.record([a, b], [y], ([dy]) => [dy && sumTo(g, dy, a.dims), dy && sumTo(g, dy, b.dims)]);
  return y;
}

export function sub(g: Graph, a: Value, b: Value): Value {
  const y = binary(g, 'Sub', a, b);
  g.record([a, b], [y], ([dy]) => [dy && sumTo(g, dy, a.dims), dy && sumTo(g, neg(g, dy), b.dims)]);
  return y;
}

export function mul(g: Graph, a: Value, b: Value): Value {
  const y = binary(g, 'Mul', a, b);
  g.record([a, b], [y], ([dy]) => [
    dy && sumTo(g, binary(g, 'Mul', dy, b), a.dims),
    dy && sumTo(g, binary(g, 'Mul', dy, a), b.dims),
  ]);
  return y;
}

export function neg(g: Graph, x: Value): Value {
  const y = unary(g, 'Neg', x);
  g.record([x], [y], ([dy]) => [dy && neg(g, dy)]);
  return y;
}

/** x · c for a constant c. */
export const scale = (g: Graph, x: Value, c: number): Value => (c === 1 ? x : mul(g, x, numberLike(g, c, x)));

export function exp(g: Graph, x: Value): Value {
  const y = unary(g, 'Exp', x);
  g.record([x], [y], ([dy]) => [dy && binary(g, 'Mul', dy, y)]);
  return y;
}

export function abs(g: Graph, x: Value): Value {
  const y = unary(g, 'Abs', x);
  g.record([x], [y], ([dy]) => [dy && binary(g, 'Mul', dy, sign(g, x))]);
  return y;
}

/**
 * Clamps to [lo, hi]. The gradient passes unchanged inside the interval and at its bounds, and is 0 outside, as in
 * PyTorch.
 */
export function clip(g: Graph, x: Value, lo: Value, hi: Value): Value {
  for (const bound of [lo, hi]) {
    expectType('Clip', bound, x.type);
    expectDims('Clip', bound, []);
  }
  // WebGPU's Clip operator reads its bounds on the host, so bounds computed on the device would have to be copied to
  // the host.
  const y =
    g.lowering === 'webgpu'
      ? binary(g, 'Min', binary(g, 'Max', x, lo), hi)
      : g.emit('Clip', [x, lo, hi], x.type, x.dims);
  g.record([x], [y], ([dy]) => {
    if (!dy) return [null];
    const above = where(g, compare(g, 'GreaterOrEqual', x, lo), dy, numberLike(g, 0, dy));
    return [where(g, compare(g, 'LessOrEqual', x, hi), above, numberLike(g, 0, dy))];
  });
  return y;
}

/** Elementwise maximum of a and b; where a equals b, a receives the gradient. */
export function maximum(g: Graph, a: Value, b: Value): Value {
  const y = binary(g, 'Max', a, b);
  g.record([a, b], [y], ([dy]) => {
    if (!dy) return [null, null];
    const first = compare(g, 'GreaterOrEqual', a, b);
    const none = numberLike(g, 0, dy);
    return [sumTo(g, where(g, first, dy, none), a.dims), sumTo(g, where(g, first, none, dy), b.dims)];
  });
  return y;
}

/** Elementwise minimum of a and b; where a equals b, a receives the gradient. */
export const minimum = (g: Graph, a: Value, b: Value): Value => neg(g, maximum(g, neg(g, a), neg(g, b)));

/** condition ? a : b, elementwise, with gradients to a and b. */
export function select(g: Graph, condition: Value, a: Value, b: Value): Value {
  const y = where(g, condition, a, b);
  g.record([a, b], [y], ([dy]) => [
    dy && sumTo(g, where(g, condition, dy, numberLike(g, 0, dy)), a.dims),
    dy && sumTo(g, where(g, condition, numberLike(g, 0, dy), dy), b.dims),
  ]);
  return y;
}

type Comparison = 'Equal' | 'Greater' | 'GreaterOrEqual' | 'Less' | 'LessOrEqual';

/** Elementwise comparison of a and b; not differentiable. */
export function compare(g: Graph, op: Comparison, a: Value, b: Value): Value {
  expectType(op, a, b.type);
  return g.emit(op, [a, b], 'bool', broadcast(a.dims, b.dims));
}

/** Converts a condition to 0/1 floats; not differentiable. */
export function toFloat(g: Graph, condition: Value): Value {
  expectType('toFloat', condition, 'bool');
  return g.emit('Cast', [condition], 'float32', condition.dims, { to: 1 });
}

/** Sum of all elements, as a float32 scalar. */
export function sumAll(g: Graph, x: Value): Value {
  const type = expectFloat('sumAll', x);
  const y = g.emit('ReduceSum', [converted(g, x, 'float32')], 'float32', [], { keepdims: 0 });
  g.record([x], [y], ([dy]) => [dy && expandLike(g, converted(g, dy, type), x)]);
  return y;
}

export function reshape(g: Graph, x: Value, dims: readonly Dim[]): Value {
  if (sameDims(x.dims, dims)) return x;
  expectSameCount('reshape', x.dims, dims);
  const y = g.emit('Reshape', [x, g.shapeVector(dims, x.dims)], x.type, dims);
  g.record([x], [y], ([dy]) => [dy && reshape(g, dy, x.dims)]);
  return y;
}

export function transpose(g: Graph, x: Value, perm: readonly number[]): Value {
  if ([...perm].sort((a, b) => a - b).join() !== [...x.dims.keys()].join())
    throw new Error(`graph: transpose needs an order of the axes of ${showDims(x.dims)}, got ${perm.join(', ')}`);
  const y = g.emit(
    'Transpose',
    [x],
    x.type,
    perm.map(i => x.dims[i]),
    { perm },
  );
  const inverse = perm.map((_, i) => perm.indexOf(i));
  g.record([x], [y], ([dy]) => [dy && transpose(g, dy, inverse)]);
  return y;
}

/**
 * Returns the rows of `table` [n, width] at int64 `indices` […]. The pullback adds the gradient of each result row, in
 * float32, to the gradient of the table row from which the result row was copied. On the CPU, the pullback adds element
 * by element in order. ScatterND is not used on the CPU: its CPU kernel adds from several threads without a lock, so
 * updates of the same row can be lost. On WebGPU, ScatterND adds atomically, but in no fixed order.
 */
export function gatherRows(g: Graph, table: Value, indices: Value): Value {
  expectType('gatherRows', indices, 'int64');
  if (table.dims.length !== 2)
    throw new Error(`graph: gatherRows needs a table of rank 2, got ${showDims(table.dims)}`);
  const width = table.dims[1];
  const y = g.emit('Gather', [table, indices], table.type, [...indices.dims, width], { axis: 0 });
  g.record([table], [y], ([dy]) => {
    if (!dy) return [null];
    const count = productOf(indices.dims);
    const rows = converted(g, reshape(g, dy, [count, width]), 'float32');
    const column = reshape(g, indices, [count, 1]);
    const sums =
      g.lowering === 'webgpu' ? scatterRows(g, table, column, rows) : scatterElements(g, table, column, rows);
    return [converted(g, sums, expectFloat('gatherRows', table))];
  });
  return y;
}

function scatterElements(g: Graph, table: Value, column: Value, rows: Value): Value {
  const at = g.emit('Expand', [column, shapeOf(g, rows)], 'int64', rows.dims);
  const zeros = g.emit('ConstantOfShape', [shapeOf(g, table)], 'float32', table.dims);
  return g.emit('ScatterElements', [zeros, at, rows], 'float32', table.dims, { axis: 0, reduction: 'add' });
}

function scatterRows(g: Graph, table: Value, column: Value, rows: Value): Value {
  const zeros = g.emit('Expand', [g.scalar(0), shapeOf(g, table)], 'float32', table.dims);
  return g.emit('ScatterND', [zeros, column, rows], 'float32', table.dims, { reduction: 'add' });
}

/** Returns the product of all dimensions: a number, or a symbol if at least one dimension is a symbol. */
function productOf(dims: readonly Dim[]): Dim {
  if (dims.length === 1) return dims[0];
  return dims.every(dim => typeof dim === 'number') ? dims.reduce((n, dim) => n * dim, 1) : dims.join('*');
}

/** Sums the gradient of a broadcast value over the broadcast axes, so that the result has the dimensions `dims`. */
export function sumTo(g: Graph, x: Value, dims: readonly Dim[]): Value {
  const axes = summedAxes(x.dims, dims);
  if (axes.length === 0) return x;
  const summed = reduced(g, 'ReduceSum', x, axes);
  if (sameDims(summed.dims, dims)) return summed;
  return g.emit('Reshape', [summed, g.shapeVector(dims, summed.dims)], x.type, dims);
}

/**
 * Reduces over axes and keeps them with length 1. Computes in float32 and returns the type of x. Records no gradient;
 * used inside pullbacks.
 */
export function reduced(
  g: Graph,
  op: 'ReduceSum' | 'ReduceMean' | 'ReduceMax',
  x: Value,
  axes: readonly number[],
): Value {
  const dims = x.dims.map((dim, i) => (axes.includes(i) ? 1 : dim));
  const y = g.emit(op, [converted(g, x, 'float32'), g.integers(axes)], 'float32', dims, { keepdims: 1 });
  return converted(g, y, expectFloat(op, x));
}

/** Converts x to another float type. Does not record the conversion on the tape. */
export function converted(g: Graph, x: Value, type: FloatType): Value {
  if (expectFloat('cast', x) === type) return x;
  return g.emit('Cast', [x], type, x.dims, { to: type === 'float32' ? 1 : 10 });
}

/** Emits a broadcasting binary node that is not recorded on the tape; used inside pullbacks. */
export function binary(g: Graph, op: string, a: Value, b: Value): Value {
  expectType(op, a, b.type);
  return g.emit(op, [a, b], a.type, broadcast(a.dims, b.dims));
}

/** Emits an elementwise node that is not recorded on the tape. */
export function unary(g: Graph, op: string, x: Value): Value {
  return g.emit(op, [x], expectFloat(op, x), x.dims);
}

/** Sign of x: −1, 0 or 1. */
function sign(g: Graph, x: Value): Value {
  if (g.hasFusedKernels) return unary(g, 'Sign', x);
  const number = (c: number): Value => numberLike(g, c, x);
  const notAbove = where(g, compare(g, 'Less', x, number(0)), number(-1), number(0));
  return where(g, compare(g, 'Greater', x, number(0)), number(1), notAbove);
}

/** Returns the constant c in the type of `like`. */
function numberLike(g: Graph, c: number, like: Value): Value {
  return g.scalar(c, expectFloat('scalar', like));
}

function where(g: Graph, condition: Value, a: Value, b: Value): Value {
  expectType('Where', condition, 'bool');
  expectType('Where', a, b.type);
  return g.emit('Where', [condition, a, b], a.type, broadcast(condition.dims, broadcast(a.dims, b.dims)));
}

function expandLike(g: Graph, x: Value, like: Value): Value {
  return g.emit('Expand', [x, shapeOf(g, like)], x.type, like.dims);
}

function shapeOf(g: Graph, x: Value): Value {
  return g.emit('Shape', [x], 'int64', [x.dims.length]);
}
