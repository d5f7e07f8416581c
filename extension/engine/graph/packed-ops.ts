// Operations on packed tokens: the tokens of rows of different lengths are concatenated without padding, so matmuls
// compute no padding. Only attention copies the tokens into padded blocks and back. A gather of rows is undone by a
// second gather with the inverse index. The gradient of a gather is therefore a gather, too. A gather is deterministic;
// a scatter that adds is not.
import type { Dim, Graph, Value } from './graph';
import { converted } from './ops';
import { expectDims, expectFloat, expectType } from './shapes';

/**
 * Copies rows of x [n, width] into blocks, one block for each index array in `forward` (int32, any shape). Block i has
 * the shape of its index array, followed by an axis `width`. A slot is the place of one row in a block; slots are
 * numbered consecutively over all blocks. `backward` [n] contains the slot of each row. A slot that is not in
 * `backward` must not receive a gradient.
 */
export function arrange(g: Graph, x: Value, forward: readonly Value[], backward: Value): Value[] {
  const blocks = forward.map(index => gather(g, x, index));
  g.record([x], blocks, gradients => {
    const rows = gradients.map((dy, i) => (dy ? asRows(g, dy, i) : null));
    if (rows.some(dy => dy === null)) throw new Error('graph: arrange needs the gradient of every block');
    return [gather(g, joined(g, rows as Value[]), backward, x.dims)];
  });
  return blocks;
}

/** Inverse of `arrange`: returns rows [n, width] from blocks; `backward` [n] is the slot of each row. */
export function collect(g: Graph, blocks: readonly Value[], forward: readonly Value[], backward: Value): Value {
  const rows = joined(
    g,
    blocks.map((block, i) => asRows(g, block, i)),
  );
  const y = gather(g, rows, backward);
  g.record(blocks, [y], ([dy]) => forward.map(index => (dy ? gather(g, dy, index) : null)));
  return y;
}

/** Concatenates two values along their last axis, whose dimension becomes `dim`. */
export function concatLast(g: Graph, a: Value, b: Value, dim: Dim): Value {
  const axis = a.dims.length - 1;
  const y = g.emit('Concat', [a, b], a.type, [...a.dims.slice(0, -1), dim], { axis });
  g.record([a, b], [y], ([dy]) => (dy ? cut(g, dy, a, b) : [null, null]));
  return y;
}

/** Splits x along its last axis into two parts, which are as long as the last axes of `a` and `b`. */
export function splitLast(g: Graph, x: Value, a: Value, b: Value): [Value, Value] {
  const parts = cut(g, x, a, b);
  g.record([x], parts, ([da, db]) => {
    if (!da || !db) throw new Error('graph: splitLast needs the gradient of both parts');
    return [g.emit('Concat', [da, db], x.type, x.dims, { axis: x.dims.length - 1 })];
  });
  return parts;
}

/** Concatenates values along the second-to-last axis, whose dimension becomes `dim`. */
export function joinTimes(g: Graph, parts: readonly Value[], dim: Dim): Value {
  const axis = parts[0].dims.length - 2;
  const dims = (time: Dim): Dim[] => [...parts[0].dims.slice(0, axis), time, parts[0].dims[axis + 1]];
  const y = g.emit('Concat', parts, parts[0].type, dims(dim), { axis });
  g.record(parts, [y], ([dy]) =>
    dy
      ? cutTimes(
          g,
          dy,
          parts.map(part => part.dims[axis]),
        )
      : parts.map(() => null),
  );
  return y;
}

/** Splits x along the second-to-last axis into parts with the given lengths. */
export function splitTimes(g: Graph, x: Value, lengths: readonly Dim[]): Value[] {
  const parts = cutTimes(g, x, lengths);
  g.record([x], parts, gradients => {
    if (gradients.some(dy => dy === null)) throw new Error('graph: splitTimes needs the gradient of every part');
    return [g.emit('Concat', gradients, x.type, x.dims, { axis: x.dims.length - 2 })];
  });
  return parts;
}

function cutTimes(g: Graph, x: Value, lengths: readonly Dim[]): Value[] {
  const axis = x.dims.length - 2;
  const sizes = lengths.map(size => (typeof size === 'number' ? g.integers([size]) : g.symbolSize(size)));
  const parts = lengths.map(time => ({
    type: x.type,
    dims: [...x.dims.slice(0, axis), time, x.dims[axis + 1]],
  }));
  return g.emitMany('Split', [x, g.emit('Concat', sizes, 'int64', [sizes.length], { axis: 0 })], parts, { axis });
}

/**
 * Copies blocks of x [p, …] along the first axis: block i of the result is block `index[i]` of x. `index` is int32 [b].
 * `memberships` [p, b] is 1 where result i is a copy of block p, else 0. The gradient of a block is the sum over its
 * copies, computed as a matmul with `memberships`, so that its order is fixed.
 */
export function repeatBlocks(g: Graph, x: Value, index: Value, memberships: Value): Value {
  expectType('repeatBlocks', index, 'int32');
  const [p, ...rest] = x.dims;
  const [b] = index.dims;
  expectDims('repeatBlocks', memberships, [p, b]);
  const y = g.emit('Gather', [x, index], x.type, [b, ...rest], { axis: 0 });
  g.record([x], [y], ([dy]) => {
    if (!dy) return [null];
    const size = rest.join('*');
    const copies = g.emit('Reshape', [dy, g.integers([0, -1])], x.type, [b, size]);
    const sums = g.emit('MatMul', [converted(g, memberships, expectFloat('repeatBlocks', x)), copies], x.type, [
      p,
      size,
    ]);
    return [g.emit('Reshape', [sums, g.shapeVector(x.dims, [p])], x.type, x.dims)];
  });
  return y;
}

/**
 * Splits x along its first axis into parts of lengths `sizes` (int64 [parts]). The length of part i is the symbol
 * `${stem}${i}`.
 */
export function splitRows(g: Graph, x: Value, sizes: Value, stem: string): Value[] {
  const count = Number(sizes.dims[0]);
  const dims = (i: number): Dim[] => [`${stem}${i}`, ...x.dims.slice(1)];
  const parts = g.emitMany(
    'Split',
    [x, sizes],
    Array.from({ length: count }, (_, i) => ({ type: x.type, dims: dims(i) })),
    { axis: 0 },
  );
  g.record([x], parts, gradients => {
    if (gradients.some(dy => dy === null)) throw new Error('graph: splitRows needs the gradient of every part');
    return [g.emit('Concat', gradients, x.type, x.dims, { axis: 0 })];
  });
  return parts;
}

function cut(g: Graph, x: Value, a: Value, b: Value): [Value, Value] {
  const axis = x.dims.length - 1;
  const size = (dim: Dim): Value => (typeof dim === 'number' ? g.integers([dim]) : g.symbolSize(dim));
  const [da, db] = [a.dims.at(-1)!, b.dims.at(-1)!];
  const sizes = g.emit('Concat', [size(da), size(db)], 'int64', [2], { axis: 0 });
  const dims = (last: Dim): Dim[] => [...x.dims.slice(0, -1), last];
  const [first, second] = g.emitMany(
    'Split',
    [x, sizes],
    [
      { type: x.type, dims: dims(da) },
      { type: x.type, dims: dims(db) },
    ],
    { axis },
  );
  return [first, second];
}

function gather(g: Graph, x: Value, index: Value, dims?: readonly Dim[]): Value {
  expectType('gather', index, 'int32');
  return g.emit('Gather', [x, index], x.type, dims ?? [...index.dims, x.dims.at(-1)!], { axis: 0 });
}

/** Flattens all axes before the last. */
function asRows(g: Graph, x: Value, block: number): Value {
  const width = x.dims.at(-1)!;
  if (typeof width !== 'number') throw new Error(`graph: rows need a fixed width, got ${width} for ${x.name}`);
  return g.emit('Reshape', [x, g.integers([-1, width])], x.type, [`places of block ${block}`, width]);
}

const joined = (g: Graph, rows: readonly Value[]): Value =>
  rows.length === 1 ? rows[0] : g.emit('Concat', rows, rows[0].type, ['places', rows[0].dims[1]], { axis: 0 });
