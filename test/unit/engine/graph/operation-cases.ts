// One row per case of each differentiable operation: the graph of the loss Σ c·y with random c, and of its gradients.
// Inputs stay away from kinks, so that a small step never crosses one. Dimensions may be symbols, as in real graphs.
import { gradients } from '../../../../extension/engine/graph/autodiff';
import { Graph } from '../../../../extension/engine/graph/graph';
import type { Dim, FloatType, Lowering, Value } from '../../../../extension/engine/graph/graph';
import * as layerOps from '../../../../extension/engine/graph/layer-ops';
import * as ops from '../../../../extension/engine/graph/ops';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { float32, int64 } from '../../../../extension/engine/session/session';
import type { Tensor } from '../../../../extension/engine/session/session';

type Draw = (stream: RandomStream) => number;
const normal: Draw = stream => stream.normal();
const positive: Draw = stream => 0.5 + stream.uniform();
/** Numbers on one of two interleaved grids, at least 0.1 away from the other grid. */
const grid =
  (offset: number): Draw =>
  stream =>
    offset + 0.2 * (stream.integer(14) - 7);

interface Input {
  dims: Dim[];
  draw?: Draw;
}

export interface OperationCase {
  /** Exported name of the operation. */
  op: string;
  what?: string;
  /** Differentiated inputs. */
  inputs: Input[];
  /** Sizes of the symbols. */
  sizes?: Record<string, number>;
  /** Integer inputs: dimensions and the bound of their values. */
  indices?: { dims: Dim[]; below: number }[];
  build(g: Graph, inputs: Value[], indices: Value[]): Value | Value[];
}

const of = (...dims: Dim[]): Input => ({ dims });
const drawn = (draw: Draw, ...dims: Dim[]): Input => ({ dims, draw });
const { add, sub, mul, maximum, minimum, select, clip, reshape, transpose, gatherRows } = ops;
const { linear, matmul, softmax, softmaxProduct, rmsNorm, swiglu, rotary, tokenLogProbs } = layerOps;

/** A constant of the operand's type. */
const like = (g: Graph, x: Value, c: number): Value => g.scalar(c, x.type === 'float16' ? 'float16' : 'float32');

const binaryCases = (['add', 'sub', 'mul'] as const).flatMap(op => {
  const build = (g: Graph, [a, b]: Value[]): Value => ({ add, sub, mul })[op](g, a, b);
  return [
    { op, what: 'equal shapes', inputs: [of(2, 3), drawn(normal, 2, 3)], build },
    { op, what: 'row', inputs: [of(2, 3), drawn(normal, 3)], build },
    { op, what: 'column against row', inputs: [of(2, 1), drawn(normal, 1, 3)], build },
    { op, what: 'scalar', inputs: [of(), drawn(normal, 2, 2)], build },
    { op, what: 'symbols', inputs: [of('b', 1, 't'), drawn(normal, 2, 't')], sizes: { b: 2, t: 3 }, build },
    { op, what: 'one value twice', inputs: [drawn(positive, 3)], build: (g: Graph, [x]: Value[]) => build(g, [x, x]) },
  ];
});

const unaryCases = (['neg', 'exp', 'abs'] as const).map(op => ({
  op,
  inputs: [drawn(op === 'abs' ? grid(0.1) : normal, 2, 'n')],
  sizes: { n: 3 },
  build: (g: Graph, [x]: Value[]): Value => ops[op](g, x),
}));

const extremeCases = (['maximum', 'minimum'] as const).flatMap(op => {
  const build = (g: Graph, [a, b]: Value[]): Value => ({ maximum, minimum })[op](g, a, b);
  return [
    { op, inputs: [drawn(grid(0), 4, 3), drawn(grid(0.1), 4, 3)], build },
    { op, what: 'broadcast', inputs: [drawn(grid(0), 3), drawn(grid(0.1), 'n', 1)], sizes: { n: 4 }, build },
  ];
});

const productCases = [false, true].flatMap(transA =>
  [false, true].flatMap(transB => {
    const side = (rows: Dim, columns: Dim, swap: boolean): Dim[] => (swap ? [columns, rows] : [rows, columns]);
    const what = `${transA ? 'aᵀ' : 'a'}·${transB ? 'bᵀ' : 'b'}`;
    const build = (g: Graph, [a, b]: Value[]): Value => matmul(g, a, b, { transA, transB, alpha: 0.7 });
    return [
      { op: 'matmul', what, inputs: [of(...side(2, 3, transA)), of(...side(3, 4, transB))], build },
      {
        op: 'matmul',
        what: `${what}, batches`,
        inputs: [of('b', 2, ...side('t', 3, transA)), of('b', 2, ...side(3, 4, transB))],
        sizes: { b: 2, t: 3 },
        build,
      },
      {
        op: 'matmul',
        what: `${what}, broadcast batches`,
        inputs: [of(2, 1, ...side(2, 3, transA)), of(3, ...side(3, 2, transB))],
        build,
      },
    ];
  }),
);

export const operationCases: OperationCase[] = [
  ...binaryCases,
  ...unaryCases,
  ...extremeCases,
  ...productCases,
  { op: 'scale', inputs: [of(3)], build: (g, [x]) => ops.scale(g, x, -1.7) },
  { op: 'scale', what: 'by one', inputs: [of(3)], build: (g, [x]) => ops.scale(g, x, 1) },
  {
    op: 'clip',
    inputs: [drawn(grid(0), 20)],
    build: (g, [x]) => clip(g, x, like(g, x, -0.5), like(g, x, 0.7)),
  },
  {
    op: 'select',
    what: 'broadcast',
    inputs: [drawn(grid(0), 2, 4), of(4)],
    build: (g, [a, b]) => select(g, ops.compare(g, 'Greater', a, like(g, a, 0.1)), a, b),
  },
  { op: 'sumAll', inputs: [of(2, 'n')], sizes: { n: 3 }, build: (g, [x]) => ops.sumAll(g, mul(g, x, x)) },
  {
    op: 'reshape',
    inputs: [of('b', 't', 6)],
    sizes: { b: 2, t: 3 },
    build: (g, [x]) => reshape(g, reshape(g, mul(g, x, x), ['b*t', 6]), ['b', 't', 2, 3]),
  },
  { op: 'reshape', what: 'same shape', inputs: [of(2, 3)], build: (g, [x]) => reshape(g, x, [2, 3]) },
  {
    op: 'transpose',
    inputs: [of('b', 3, 2, 4)],
    sizes: { b: 2 },
    build: (g, [x]) => transpose(g, mul(g, x, x), [2, 0, 3, 1]),
  },
  {
    op: 'gatherRows',
    what: 'rows read never, once and often',
    inputs: [of(5, 3)],
    indices: [{ dims: ['b', 't'], below: 4 }],
    sizes: { b: 3, t: 4 },
    build: (g, [table], [at]) => gatherRows(g, table, at),
  },
  {
    op: 'gatherRows',
    what: 'flat indices',
    inputs: [of('m', 2)],
    indices: [{ dims: ['n'], below: 6 }],
    sizes: { m: 6, n: 4 },
    build: (g, [table], [at]) => gatherRows(g, mul(g, table, table), at),
  },
  { op: 'linear', inputs: [of('n', 3), of(4, 3)], sizes: { n: 2 }, build: (g, [x, w]) => linear(g, x, w) },
  {
    op: 'linear',
    what: 'with bias',
    inputs: [of('n', 3), of(4, 3), of(4)],
    sizes: { n: 5 },
    build: (g, [x, w, b]) => linear(g, x, w, b),
  },
  {
    op: 'matmul',
    what: 'a square, a value times itself',
    inputs: [of(3, 3)],
    build: (g, [a]) => matmul(g, a, a, { transB: true }),
  },
  { op: 'matmul', what: 'no alpha', inputs: [of(2, 3), of(3, 2)], build: (g, [a, b]) => matmul(g, a, b) },
  { op: 'softmax', inputs: [of('b', 2, 4)], sizes: { b: 2 }, build: (g, [x]) => softmax(g, x) },
  {
    op: 'softmaxProduct',
    inputs: [of('b', 2, 3, 4), of('b', 2, 4, 5)],
    sizes: { b: 2 },
    build: (g, [scores, values]) => softmaxProduct(g, scores, values),
  },
  {
    op: 'softmaxProduct',
    what: 'values of all rows',
    inputs: [of(3, 2, 4), of(4, 5)],
    build: (g, [scores, values]) => softmaxProduct(g, scores, values),
  },
  { op: 'rmsNorm', inputs: [of('n', 6), of(6)], sizes: { n: 4 }, build: (g, [x, w]) => rmsNorm(g, x, w, 1e-6) },
  {
    op: 'rmsNorm',
    what: 'large eps, three axes',
    inputs: [of(2, 2, 5), of(5)],
    build: (g, [x, w]) => rmsNorm(g, x, w, 0.3),
  },
  { op: 'swiglu', inputs: [of('n', 3), of('n', 3)], sizes: { n: 4 }, build: (g, [a, b]) => swiglu(g, a, b) },
  {
    op: 'rotary',
    inputs: [of('b', 't', 8)],
    indices: [{ dims: ['b', 't'], below: 7 }],
    sizes: { b: 2, t: 3 },
    build: (g, [x], [positions]) => rotary(g, x, positions, rotaryTables(g, 7, 2)),
  },
  ...[
    { what: 'log-prob and entropy', pick: [0, 1] },
    { what: 'log-prob', pick: [0] },
    { what: 'entropy', pick: [1] },
  ].map(({ what, pick }): OperationCase => ({
    op: 'tokenLogProbs',
    what,
    inputs: [of('n', 5)],
    indices: [{ dims: ['n'], below: 5 }],
    sizes: { n: 4 },
    build: (g, [logits], [targets]) => {
      const { logprob, entropy } = tokenLogProbs(g, logits, targets);
      return pick.map(i => [logprob, entropy][i]);
    },
  })),
];

function rotaryTables(g: Graph, positions: number, half: number): layerOps.RotaryTables {
  const angles = Float32Array.from(
    { length: positions * half },
    (_, i) => Math.floor(i / half) * 10 ** -((i % half) / half),
  );
  const constant = (f: (x: number) => number): Value => g.constant('float32', [positions, half], angles.map(f));
  return { cos: constant(Math.cos), sin: constant(Math.sin), sinNegated: constant(x => -Math.sin(x)) };
}

export interface ComposedCase {
  graph: Graph;
  feeds: Record<string, Tensor>;
  /** Values of the differentiated inputs x0, x1, …, as fed. */
  data: Float32Array[];
  /** Their dimensions at run time. */
  dims: number[][];
}

export const titleOf = ({ op, what }: OperationCase): string => (what ? `${op}: ${what}` : op);

/**
 * The case's graph with outputs `loss` and, for each differentiated input, `dx0`, `dx1`, …, and values to feed it. The
 * operation itself runs in the given type.
 */
export function compose(row: OperationCase, lowering: Lowering = 'cpu', type: FloatType = 'float32'): ComposedCase {
  const { op, what, inputs, sizes = {}, indices = [], build } = row;
  const stream = new RandomStream([...`${op} ${what ?? ''}`].reduce((hash, c) => hash * 31 + c.charCodeAt(0), 7));
  const bound = (dims: readonly Dim[]): number[] => dims.map(dim => (typeof dim === 'number' ? dim : sizes[dim]));
  const count = (dims: readonly Dim[]): number => bound(dims).reduce((n, d) => n * d, 1);
  const random = (dims: readonly Dim[], draw: Draw = normal): Float32Array =>
    Float32Array.from({ length: count(dims) }, () => draw(stream));
  const g = new Graph(op, lowering);
  const feeds: Record<string, Tensor> = {};
  const data = inputs.map(({ dims, draw }) => random(dims, draw));
  const values = inputs.map(({ dims }, i) => g.input(`x${i}`, 'float32', dims));
  values.forEach(({ name, dims }, i) => (feeds[name] = float32(data[i], bound(dims))));
  const at = indices.map(({ dims, below }, i) => {
    const ids = BigInt64Array.from({ length: count(dims) }, () => BigInt(stream.integer(below)));
    feeds[`i${i}`] = int64(ids, bound(dims));
    return g.input(`i${i}`, 'int64', dims);
  });
  const operands = values.map(x => ops.cast(g, x, type));
  const recorded = g.tape.length;
  const results = [build(g, operands, at)].flat();
  if (results.some(y => !operands.includes(y)) && g.tape.length === recorded) throw new Error(`${op} records nothing`);
  const outputs = results.map(y => ops.cast(g, y, 'float32'));
  const terms = outputs.map((y, i) => {
    const coefficients = g.input(`c${i}`, 'float32', y.dims);
    feeds[`c${i}`] = float32(
      random(y.dims, s => 0.5 + s.uniform()),
      bound(y.dims),
    );
    return ops.sumAll(g, mul(g, y, coefficients));
  });
  const loss = terms.reduce((a, b) => add(g, a, b));
  g.output('loss', loss);
  gradients(g, loss, values).forEach((dx, i) => g.output(`dx${i}`, dx));
  return { graph: g, feeds, data, dims: inputs.map(input => bound(input.dims)) };
}
