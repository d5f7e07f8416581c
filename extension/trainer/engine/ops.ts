// Elementwise, reduction and shape operations, each with its pullback beside it. Every function takes the graph first, checks
// shapes, emits ONNX nodes and records how gradients flow back (vector-Jacobian products, reverse mode).
// The products, attention and the decoder's own layers are in layer-ops.ts.
import type { Dim, Graph, Value } from './graph';
import { broadcast, expectDims, expectSameCount, expectType, sameDims, showDims, summedAxes } from './shapes';

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

export function div(g: Graph, a: Value, b: Value): Value {
  const y = binary(g, 'Div', a, b);
  g.record([a, b], [y], ([dy]) => {
    if (!dy) return [null, null];
    const da = binary(g, 'Div', dy, b);
    return [sumTo(g, da, a.dims), sumTo(g, neg(g, binary(g, 'Mul', da, y)), b.dims)];
  });
  return y;
}

export function neg(g: Graph, x: Value): Value {
  const y = unary(g, 'Neg', x);
  g.record([x], [y], ([dy]) => [dy && neg(g, dy)]);
  return y;
}

/** x · c for a constant c. */
export const scale = (g: Graph, x: Value, c: number): Value => (c === 1 ? x : mul(g, x, g.scalar(c)));

export function exp(g: Graph, x: Value): Value {
  const y = unary(g, 'Exp', x);
  g.record([x], [y], ([dy]) => [dy && binary(g, 'Mul', dy, y)]);
  return y;
}

export function log(g: Graph, x: Value): Value {
  const y = unary(g, 'Log', x);
  g.record([x], [y], ([dy]) => [dy && binary(g, 'Div', dy, x)]);
  return y;
}

export function sqrt(g: Graph, x: Value): Value {
  const y = unary(g, 'Sqrt', x);
  g.record([x], [y], ([dy]) => [dy && binary(g, 'Div', dy, binary(g, 'Mul', y, g.scalar(2)))]);
  return y;
}

export function sigmoid(g: Graph, x: Value): Value {
  const y = unary(g, 'Sigmoid', x);
  g.record([x], [y], ([dy]) => [dy && binary(g, 'Mul', dy, binary(g, 'Mul', y, binary(g, 'Sub', g.scalar(1), y)))]);
  return y;
}

export function abs(g: Graph, x: Value): Value {
  const y = unary(g, 'Abs', x);
  g.record([x], [y], ([dy]) => [dy && binary(g, 'Mul', dy, unary(g, 'Sign', x))]);
  return y;
}

/** Clamp to [lo, hi]; the gradient passes where lo ≤ x ≤ hi, as PyTorch's does. */
export function clip(g: Graph, x: Value, lo: Value, hi: Value): Value {
  for (const bound of [lo, hi]) {
    expectType('Clip', bound, x.type);
    expectDims('Clip', bound, []);
  }
  const y = g.emit('Clip', [x, lo, hi], x.type, x.dims);
  g.record([x], [y], ([dy]) => [dy && where(g, compare(g, 'Equal', x, y), dy, g.scalar(0))]);
  return y;
}

/** Elementwise maximum; on a tie the gradient goes to `a`. */
export function maximum(g: Graph, a: Value, b: Value): Value {
  const y = binary(g, 'Max', a, b);
  g.record([a, b], [y], ([dy]) => {
    if (!dy) return [null, null];
    const first = compare(g, 'GreaterOrEqual', a, b);
    return [sumTo(g, where(g, first, dy, g.scalar(0)), a.dims), sumTo(g, where(g, first, g.scalar(0), dy), b.dims)];
  });
  return y;
}

/** Elementwise minimum; on a tie the gradient goes to `a`. */
export const minimum = (g: Graph, a: Value, b: Value): Value => neg(g, maximum(g, neg(g, a), neg(g, b)));

/** condition ? a : b, with gradients to both. */
export function select(g: Graph, condition: Value, a: Value, b: Value): Value {
  const y = where(g, condition, a, b);
  g.record([a, b], [y], ([dy]) => [
    dy && sumTo(g, where(g, condition, dy, g.scalar(0)), a.dims),
    dy && sumTo(g, where(g, condition, g.scalar(0), dy), b.dims),
  ]);
  return y;
}

/** A comparison; not differentiable. */
export function compare(g: Graph, op: 'Equal' | 'Greater' | 'GreaterOrEqual' | 'Less', a: Value, b: Value): Value {
  expectType(op, a, b.type);
  return g.emit(op, [a, b], 'bool', broadcast(a.dims, b.dims));
}

/** A condition as 0/1 floats; not differentiable. */
export function toFloat(g: Graph, condition: Value): Value {
  expectType('toFloat', condition, 'bool');
  return g.emit('Cast', [condition], 'float32', condition.dims, { to: 1 });
}

/** Sum over all elements: a scalar. */
export function sumAll(g: Graph, x: Value): Value {
  expectType('sumAll', x, 'float32');
  const y = g.emit('ReduceSum', [x], 'float32', [], { keepdims: 0 });
  g.record([x], [y], ([dy]) => [dy && expandLike(g, dy, x)]);
  return y;
}

/** Mean over the last axis, kept as length 1. */
export function meanLast(g: Graph, x: Value): Value {
  const last = x.dims.length - 1;
  const size = x.dims[last];
  if (typeof size !== 'number') throw new Error(`graph: meanLast needs a fixed last dimension, got ${size}`);
  const y = g.emit('ReduceMean', [x, g.integers([last])], 'float32', [...x.dims.slice(0, last), 1], { keepdims: 1 });
  g.record([x], [y], ([dy]) => [dy && expandLike(g, scale(g, dy, 1 / size), x)]);
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
 * Rows of `table` [n, width] at int64 `indices` […]; the pullback adds each row's gradient where it was read. It scatters element by
 * element, in order: onnxruntime's ScatterND adds from several threads without a lock and loses some of what meets in one row.
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
    const rows = reshape(g, dy, [count, width]);
    const column = reshape(g, indices, [count, 1]);
    const at = g.emit('Expand', [column, g.emit('Shape', [rows], 'int64', [2])], 'int64', rows.dims);
    const zeros = g.emit('ConstantOfShape', [g.emit('Shape', [table], 'int64', [2])], 'float32', table.dims);
    return [g.emit('ScatterElements', [zeros, at, rows], 'float32', table.dims, { axis: 0, reduction: 'add' })];
  });
  return y;
}

/** Size of all axes together: a number, or a symbol where one of them is. */
function productOf(dims: readonly Dim[]): Dim {
  if (dims.length === 1) return dims[0];
  return dims.every(dim => typeof dim === 'number') ? dims.reduce((n, dim) => n * dim, 1) : dims.join('*');
}

/** Sums a broadcast gradient back to `dims`. */
export function sumTo(g: Graph, x: Value, dims: readonly Dim[]): Value {
  const axes = summedAxes(x.dims, dims);
  if (axes.length === 0) return x;
  const kept = x.dims.map((dim, i) => (axes.includes(i) ? 1 : dim));
  const summed = g.emit('ReduceSum', [x, g.integers(axes)], 'float32', kept, { keepdims: 1 });
  return sameDims(kept, dims) ? summed : g.emit('Reshape', [summed, g.shapeVector(dims, kept)], 'float32', dims);
}

/** Emits a broadcasting binary node without recording it: for use inside pullbacks. */
export function binary(g: Graph, op: string, a: Value, b: Value): Value {
  expectType(op, a, b.type);
  return g.emit(op, [a, b], a.type, broadcast(a.dims, b.dims));
}

/** Emits an elementwise node without recording it. */
export function unary(g: Graph, op: string, x: Value): Value {
  expectType(op, x, 'float32');
  return g.emit(op, [x], 'float32', x.dims);
}

function where(g: Graph, condition: Value, a: Value, b: Value): Value {
  expectType('Where', condition, 'bool');
  expectType('Where', a, b.type);
  return g.emit('Where', [condition, a, b], a.type, broadcast(condition.dims, broadcast(a.dims, b.dims)));
}

function expandLike(g: Graph, x: Value, like: Value): Value {
  return g.emit('Expand', [x, g.emit('Shape', [like], 'int64', [like.dims.length])], 'float32', like.dims);
}
