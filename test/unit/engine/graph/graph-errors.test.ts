// An invalid graph fails where it is built, with a sentence that names the operation and both sides of the mismatch.
import { describe, expect, it } from 'vitest';
import { gradients } from '../../../../extension/engine/graph/autodiff';
import { Graph } from '../../../../extension/engine/graph/graph';
import type { Dim, ElementType, Value } from '../../../../extension/engine/graph/graph';
import {
  linear,
  matmul,
  rmsNorm,
  rotary,
  softmax,
  swiglu,
  tokenLogProbs,
} from '../../../../extension/engine/graph/layer-ops';
import {
  add,
  clip,
  compare,
  exp,
  gatherRows,
  maximum,
  mul,
  reshape,
  select,
  sumAll,
  toFloat,
  transpose,
} from '../../../../extension/engine/graph/ops';

type Make = (g: Graph, float: (...dims: Dim[]) => Value, of: (type: ElementType, ...dims: Dim[]) => Value) => unknown;

const wrongGraphs: [string, Make, RegExp][] = [
  ['shapes that do not broadcast', (g, v) => add(g, v(2, 3), v(2)), /shapes \[2, 3\] and \[2\] do not broadcast/],
  ['different symbols', (g, v) => mul(g, v('n'), v('m')), /shapes \[n\] and \[m\] do not broadcast/],
  ['a symbol and a number', (g, v) => add(g, v('n'), v(3)), /shapes \[n\] and \[3\] do not broadcast/],
  ['different types', (g, v, of) => maximum(g, v(3), of('int64', 3)), /Max needs int64, got float32 for x0/],
  ['a function of integers', (g, _, of) => exp(g, of('int64', 3)), /Exp needs float32 or float16, got int64 for x0/],
  ['clip bounds that are no scalars', (g, v) => clip(g, v(3), v(3), v()), /Clip needs \[\], got \[3\] for x1/],
  [
    'clip bounds of another type',
    (g, v, of) => clip(g, v(3), v(), of('int64')),
    /Clip needs float32, got int64 for x2/,
  ],
  ['a condition that is a number', (g, v) => select(g, v(3), v(3), v(3)), /Where needs bool, got float32 for x0/],
  ['branches of two types', (g, v, of) => select(g, of('bool', 3), v(3), of('int64', 3)), /Where needs int64/],
  ['a comparison of two types', (g, v, of) => compare(g, 'Less', v(3), of('int64', 3)), /Less needs int64/],
  ['a cast of what is no condition', (g, v) => toFloat(g, v(3)), /toFloat needs bool, got float32 for x0/],
  ['a sum of integers', (g, _, of) => sumAll(g, of('int64', 3)), /sumAll needs float32/],
  [
    'a reshape to another size',
    (g, v) => reshape(g, v(2, 3), [7]),
    /equal numbers of elements, got \[2, 3\] and \[7\]/,
  ],
  [
    'the same with symbols',
    (g, v) => reshape(g, v('n', 6), [4, 'n']),
    /equal numbers of elements, got \[n, 6\] and \[4, n\]/,
  ],
  ['a reshape with two unknowns', (g, v) => reshape(g, v(2, 3), ['p', 'q']), /cannot infer both p and q/],
  ['an axis transposed twice', (g, v) => transpose(g, v(2, 3), [0, 0]), /axes of \[2, 3\], got 0, 0/],
  ['a transpose that forgets an axis', (g, v) => transpose(g, v(2, 3), [0]), /axes of \[2, 3\], got 0/],
  ['rows read at floats', (g, v) => gatherRows(g, v(2, 3), v(2)), /gatherRows needs int64, got float32 for x1/],
  ['a layer of another width', (g, v) => linear(g, v('n', 3), v(4, 2)), /linear needs equal dimensions, got 3 and 2/],
  ['a bias of another width', (g, v) => linear(g, v('n', 3), v(4, 3), v(3)), /linear needs \[4\], got \[3\] for x2/],
  ['a layer on three axes', (g, v) => linear(g, v(2, 'n', 3), v(4, 3)), /linear needs 2 axes, got \[2, n, 3\] for x0/],
  ['inner sizes that differ', (g, v) => matmul(g, v(2, 3), v(2, 3)), /matmul needs equal dimensions, got 3 and 2/],
  ['the same transposed', (g, v) => matmul(g, v(2, 3), v(3, 2), { transB: true }), /equal dimensions, got 3 and 2/],
  ['batches that do not broadcast', (g, v) => matmul(g, v(2, 2, 3), v(4, 3, 2)), /\[2\] and \[4\] do not broadcast/],
  ['a product of vectors', (g, v) => matmul(g, v(3), v(3, 2)), /matmul needs at least 2 axes, got \[3\] for x0/],
  [
    'a product of integers',
    (g, v, of) => matmul(g, v(2, 3), of('int64', 3, 2)),
    /matmul needs float32 or float16, got int64/,
  ],
  ['softmax of integers', (g, _, of) => softmax(g, of('int64', 3)), /softmax needs float32/],
  ['norm weights of another width', (g, v) => rmsNorm(g, v('n', 4), v(3), 1e-6), /rmsNorm needs \[4\], got \[3\]/],
  ['gates of another width', (g, v) => swiglu(g, v('n', 4), v('n', 3)), /\[n, 4\] and \[n, 3\] do not broadcast/],
  [
    'positions of another order',
    (g, v, of) => rotate(g, v, of('int64', 't', 'b'), 2),
    /rotary needs \[b, t\], got \[t, b\]/,
  ],
  ['positions that are floats', (g, v) => rotate(g, v, v('b', 't'), 2), /rotary needs int64, got float32/],
  [
    'tables of another head size',
    (g, v, of) => rotate(g, v, of('int64', 'b', 't'), 3),
    /rotary tables \[9, 3\] do not fit heads in \[b, t, 8\]/,
  ],
  [
    'targets of another number',
    (g, v, of) => tokenLogProbs(g, v('n', 4), of('int64', 'm')),
    /tokenLogProbs needs \[n\], got \[m\]/,
  ],
  ['targets that are floats', (g, v) => tokenLogProbs(g, v('n', 4), v('n')), /tokenLogProbs needs int64, got float32/],
  ['a size that no input carries', g => g.symbolSize('q'), /graph wrong: no input carries the dimension q/],
  [
    'a constant of another size',
    g => g.constant('float32', [3], new Float32Array(2)),
    /constant \[3\] was given 2 numbers/,
  ],
  ['two inputs of one name', g => [g.input('a', 'float32', []), g.input('a', 'float32', [])], /has two inputs a/],
];

function rotate(g: Graph, float: (...dims: Dim[]) => Value, positions: Value, half: number): Value {
  const [cos, sin, sinNegated] = [float(9, half), float(9, half), float(9, half)];
  return rotary(g, float('b', 't', 8), positions, { cos, sin, sinNegated });
}

describe('an invalid graph', () => {
  it.each(wrongGraphs)('is refused: %s', (_, make, message) => {
    const g = new Graph('wrong');
    let inputs = 0;
    const of = (type: ElementType, ...dims: Dim[]): Value => g.input(`x${inputs++}`, type, dims);
    expect(() => make(g, (...dims) => of('float32', ...dims), of)).toThrow(message);
  });
});

describe('autodiff', () => {
  const graph = (): { g: Graph; x: Value; y: Value } => {
    const g = new Graph('autodiff');
    return { g, x: g.input('x', 'float32', [3]), y: g.input('y', 'float32', [3]) };
  };

  it('requires a scalar loss', () => {
    const { g, x } = graph();
    expect(() => gradients(g, exp(g, x), [x])).toThrow('autodiff: the loss must be a scalar, got [3]');
  });

  it('names an input on which the loss does not depend', () => {
    const { g, x, y } = graph();
    expect(() => gradients(g, sumAll(g, exp(g, x)), [x, y])).toThrow('autodiff: the loss does not depend on y');
  });

  it('does not differentiate through a comparison', () => {
    const { g, x, y } = graph();
    const loss = sumAll(g, toFloat(g, compare(g, 'Less', x, y)));
    expect(() => gradients(g, loss, [x])).toThrow('the loss does not depend on x');
  });

  it('refuses a vjp of the wrong shape', () => {
    const { g, x } = graph();
    const twice = g.emit('Concat', [x, x], 'float32', [6], { axis: 0 });
    g.record([x], [twice], ([dy]) => [dy]);
    expect(() => gradients(g, sumAll(g, twice), [x])).toThrow('autodiff: gradient of x is [6], not [3]');
  });

  it('emits nothing for inputs that are not requested', () => {
    const emitted = (pick: (values: { x: Value; y: Value }) => Value[]): number => {
      const { g, x, y } = graph();
      const loss = sumAll(g, mul(g, exp(g, x), exp(g, y)));
      const before = g.nodes.length;
      gradients(g, loss, pick({ x, y }));
      return g.nodes.length - before;
    };
    expect(emitted(({ x }) => [x])).toBeLessThan(emitted(({ x, y }) => [x, y]));
  });
});
