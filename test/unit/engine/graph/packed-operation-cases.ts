// Rows of the table of differentiable operations (operation-cases.ts) for packed tokens and frozen weights. Index
// arrays and weights are graph constants, because they receive no gradient. The gradient of a padded slot is masked to
// zero, as in attention, where padded slots are never read.
import type { Dim, FloatType, Graph, Value } from '../../../../extension/engine/graph/graph';
import { dequantized, frozenLinear } from '../../../../extension/engine/graph/frozen-ops';
import type { Int8Weight } from '../../../../extension/engine/graph/frozen-ops';
import { converted, mul } from '../../../../extension/engine/graph/ops';
import {
  arrange,
  collect,
  concatLast,
  joinTimes,
  repeatBlocks,
  splitLast,
  splitRows,
  splitTimes,
} from '../../../../extension/engine/graph/packed-ops';
import type { OperationCase } from './operation-cases';

const of = (...dims: Dim[]): { dims: Dim[] } => ({ dims });
const index = (g: Graph, dims: number[], places: number[]): Value => g.constant('int32', dims, Int32Array.from(places));
const sizes = (g: Graph, ...parts: number[]): Value =>
  g.constant('int64', [parts.length], BigInt64Array.from(parts, BigInt));

/** Five rows; the last one fills the missing slots of two blocks. */
const padded = {
  blocks: [
    { dims: [2, 2], rows: [2, 0, 4, 4], real: [1, 1, 0, 0] },
    { dims: [3], rows: [1, 4, 3], real: [1, 0, 1] },
  ],
  back: [1, 4, 0, 6, 2],
};
const forward = (g: Graph): Value[] => padded.blocks.map(({ dims, rows }) => index(g, dims, rows));
const back = (g: Graph): Value => index(g, [5], padded.back);
/** x with its unread slots set to zero. */
const real = (g: Graph, x: Value, dims: number[], flags: number[]): Value =>
  mul(g, x, converted(g, g.constant('float32', [...dims, 1], Float32Array.from(flags)), x.type as FloatType));

/** Operations on packed tokens, in any float type. */
export const packedCases: OperationCase[] = [
  {
    op: 'arrange',
    what: 'every row in one place',
    inputs: [of('n', 2)],
    sizes: { n: 4 },
    build: (g, [x]) => arrange(g, mul(g, x, x), [index(g, [2, 2], [3, 1, 0, 2])], index(g, [4], [2, 1, 3, 0])),
  },
  {
    op: 'arrange',
    what: 'two blocks with padding',
    inputs: [of('n', 3)],
    sizes: { n: 5 },
    build: (g, [x]) =>
      arrange(g, mul(g, x, x), forward(g), back(g)).map((block, i) =>
        real(g, block, padded.blocks[i].dims, padded.blocks[i].real),
      ),
  },
  {
    op: 'collect',
    what: 'two blocks with padding',
    inputs: [of(2, 2, 3), of(3, 3)],
    build: (g, [a, b]) => real(g, collect(g, [mul(g, a, a), b], forward(g), back(g)), [5], [1, 1, 1, 1, 0]),
  },
  {
    op: 'collect',
    what: 'one block',
    inputs: [of(2, 2, 2)],
    build: (g, [x]) => collect(g, [mul(g, x, x)], [index(g, [2, 2], [3, 1, 0, 2])], index(g, [4], [2, 1, 3, 0])),
  },
  {
    op: 'collect',
    what: 'of what was arranged',
    inputs: [of('n', 2)],
    sizes: { n: 5 },
    build: (g, [x]) => {
      const rows = collect(g, arrange(g, mul(g, x, x), forward(g), back(g)), forward(g), back(g));
      return real(g, rows, [5], [1, 1, 1, 1, 0]);
    },
  },
  {
    op: 'concatLast',
    inputs: [of('b', 2, 's'), of('b', 2, 't')],
    sizes: { b: 2, s: 3, t: 2, 's+t': 5 },
    build: (g, [a, b]) => {
      const y = concatLast(g, a, b, 's+t');
      return mul(g, y, y);
    },
  },
  {
    op: 'splitLast',
    inputs: [of('b', 's+t'), of('b', 's'), of('b', 't')],
    sizes: { b: 2, s: 1, t: 4, 's+t': 5 },
    build: (g, [x, a, b]) => splitLast(g, mul(g, x, x), a, b).map((part, i) => mul(g, part, [a, b][i])),
  },
  {
    op: 'splitLast',
    what: 'parts of fixed lengths',
    inputs: [of(2, 5), of(2, 3), of(2, 2)],
    build: (g, [x, a, b]) => splitLast(g, mul(g, x, x), a, b).map((part, i) => mul(g, part, [a, b][i])),
  },
  {
    op: 'joinTimes',
    inputs: [of('b', 's', 2), of('b', 't', 2), of('b', 1, 2)],
    sizes: { b: 2, s: 3, t: 2, 's+t+1': 6 },
    build: (g, parts) => {
      const y = joinTimes(g, parts, 's+t+1');
      return mul(g, y, y);
    },
  },
  {
    op: 'splitTimes',
    inputs: [of('b', 's+t', 2), of('b', 's', 2), of('b', 't', 2)],
    sizes: { b: 2, s: 1, t: 4, 's+t': 5 },
    build: (g, [x, a, b]) => splitTimes(g, mul(g, x, x), ['s', 't']).map((part, i) => mul(g, part, [a, b][i])),
  },
  {
    op: 'repeatBlocks',
    inputs: [of('p', 2, 'u', 2), of(4, 2, 'u', 2)],
    sizes: { p: 2, u: 3 },
    build: (g, [x, y]) => {
      const memberships = { ...g.constant('float32', [2, 4], Float32Array.of(1, 0, 1, 1, 0, 1, 0, 0)), dims: ['p', 4] };
      return mul(g, repeatBlocks(g, mul(g, x, x), index(g, [4], [0, 1, 0, 0]), memberships), y);
    },
  },
  {
    op: 'splitRows',
    inputs: [of('n', 2), of(3, 2), of(1, 2)],
    sizes: { n: 4 },
    build: (g, [x, a, b]) => {
      const parts = splitRows(g, mul(g, x, x), sizes(g, 3, 1), 'part');
      return parts.map((part, i) => mul(g, { ...part, dims: [a, b][i].dims }, [a, b][i]));
    },
  },
];

/** [4, 3], or [3, 4] for the other layout. */
const weight = (g: Graph, transposed: boolean): Value =>
  g.constant(
    'float32',
    transposed ? [4, 3] : [3, 4],
    Float32Array.of(0.5, -1, 2, 0.25, 1.5, -0.75, 1, 0.1, -0.2, 0.6, -1.2, 0.9),
  );

const bytes = (g: Graph): Int8Weight => ({
  weight: g.constant('int8', [3, 4], Int8Array.of(-127, 5, 88, 0, 31, -64, 7, 127, 1, 2, -3, 40)),
  scale: g.constant('float32', [4], Float32Array.of(0.01, 0.02, 0.015, 0.005)),
});

/** Linear layers with frozen weights, in float32. */
export const frozenCases: OperationCase[] = [
  ...[true, false].map((transposed): OperationCase => ({
    op: 'frozenLinear',
    what: transposed ? '[out, in]' : '[in, out]',
    inputs: [of('n', 3)],
    sizes: { n: 2 },
    build: (g, [x]) => frozenLinear(g, mul(g, x, x), () => weight(g, transposed), null, transposed),
  })),
  {
    op: 'frozenLinear',
    what: 'with bias',
    inputs: [of('n', 3)],
    sizes: { n: 2 },
    build: (g, [x]) =>
      frozenLinear(g, x, () => weight(g, true), g.constant('float32', [4], Float32Array.of(1, 2, 3, 4))),
  },
  {
    op: 'frozenLinear',
    what: 'of bytes',
    inputs: [of('n', 3)],
    sizes: { n: 2 },
    build: (g, [x]) => frozenLinear(g, mul(g, x, x), () => dequantized(g, bytes(g)), null, false),
  },
];
