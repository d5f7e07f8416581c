// Activation checkpointing: the value and every gradient equal the plain graph's, while the wrapped part is recomputed
// in the backward pass, and only once its gradient is available.
import { describe, expect, it } from 'vitest';
import { checkpoint, gradients } from '../../../../extension/engine/graph/autodiff';
import { Graph } from '../../../../extension/engine/graph/graph';
import type { Value } from '../../../../extension/engine/graph/graph';
import { linear, rmsNorm, softmax } from '../../../../extension/engine/graph/layer-ops';
import { add, exp, mul, scale, sumAll } from '../../../../extension/engine/graph/ops';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Session, float32 } from '../../../../extension/engine/session/session';

type Wrap = (g: Graph, x: Value, make: (x: Value) => Value) => Value;
const plain: Wrap = (_, x, make) => make(x);

/** Two layers with separate weights, one shared weight, and an outside value that depends on an input. */
function twoLayers(wrap: Wrap): Graph {
  const g = new Graph('layers');
  const x = g.input('x', 'float32', ['n', 4]);
  const shared = g.input('shared', 'float32', [4]);
  const own = ['w0', 'w1'].map(name => g.input(name, 'float32', [4, 4]));
  const outside = exp(g, scale(g, shared, 0.3));
  const layer = (i: number, at: Value): Value => {
    const normed = rmsNorm(g, at, shared, 1e-6);
    return add(g, at, mul(g, softmax(g, linear(g, normed, own[i])), outside));
  };
  const y = [0, 1].reduce((at, i) => wrap(g, at, inner => layer(i, inner)), x);
  g.output('y', y);
  const wrt = [x, shared, ...own];
  gradients(g, sumAll(g, mul(g, y, y)), wrt).forEach((dx, i) => g.output(`d ${wrt[i].name}`, dx));
  return g;
}

async function run(graph: Graph): Promise<Record<string, number[]>> {
  const stream = new RandomStream(3);
  const random = (...dims: number[]) =>
    float32(
      Float32Array.from({ length: dims.reduce((a, b) => a * b) }, () => stream.normal()),
      dims,
    );
  const feeds = { x: random(3, 4), shared: random(4), w0: random(4, 4), w1: random(4, 4) };
  const session = await Session.create(graph, { threads: 1 });
  const result = await session.run(feeds);
  await session.release();
  return Object.fromEntries(Object.entries(result).map(([name, { data }]) => [name, Array.from(data, Number)]));
}

const count = ({ nodes }: Graph, op: string): number => nodes.filter(node => node.op === op).length;

describe('a checkpointed part', () => {
  it('has the value and the gradients of the plain graph', async () => {
    const [expected, actual] = await Promise.all([twoLayers(plain), twoLayers(checkpoint)].map(run));
    expect(Object.keys(actual)).toEqual(['y', 'd x', 'd shared', 'd w0', 'd w1']);
    for (const [name, numbers] of Object.entries(expected))
      numbers.forEach((x, i) => expect(actual[name][i], `${name}[${i}]`).toBeCloseTo(x, 5));
  });

  it('is computed twice, the rest once', () => {
    const [once, twice] = [twoLayers(plain), twoLayers(checkpoint)];
    for (const op of ['SimplifiedLayerNormalization', 'Softmax'])
      expect([count(once, op), count(twice, op)]).toEqual([2, 4]);
    expect([count(once, 'Exp'), count(twice, 'Exp')]).toEqual([1, 1]);
  });

  it('keeps no activations of the forward pass: the backward pass reads the recomputed ones', () => {
    const { nodes } = twoLayers(checkpoint);
    const norms = nodes.filter(({ op }) => op === 'SimplifiedLayerNormalization');
    const readersOf = (name: string) => nodes.filter(({ inputs }) => inputs.includes(name));
    const [first, second] = [norms.slice(0, 2), norms.slice(2)];
    for (const { outputs } of first) {
      expect(readersOf(outputs[1]), 'the root of the first norm').toEqual([]);
      expect(readersOf(outputs[0]).map(({ op }) => op)).toEqual(['Gemm']);
    }
    for (const { outputs } of second) expect(readersOf(outputs[1]).length).toBeGreaterThan(0);
  });

  it('is recomputed only once its gradient is available', () => {
    const { nodes } = twoLayers(checkpoint);
    const makers = new Map(nodes.flatMap(node => node.outputs.map(output => [output, node] as const)));
    const dependsOn = (name: string, wanted: string, seen = new Set<string>()): boolean => {
      if (name === wanted) return true;
      if (seen.has(name)) return false;
      seen.add(name);
      return makers.get(name)?.inputs.some(input => dependsOn(input, wanted, seen)) ?? false;
    };
    const softmaxes = nodes.filter(({ op }) => op === 'Softmax').map(({ outputs }) => outputs[0]);
    const [, last, lastAgain, firstAgain] = softmaxes;
    // Both wait for the loss, whose gradient arrives through y; the first layer also waits for the second layer's
    // gradient.
    for (const again of [lastAgain, firstAgain]) expect(dependsOn(again, last)).toBe(true);
    expect(dependsOn(firstAgain, lastAgain)).toBe(true);
    expect(dependsOn(lastAgain, firstAgain)).toBe(false);
  });

  it('adds nothing when no gradient is requested', async () => {
    const g = new Graph('unasked');
    const [x, w] = [g.input('x', 'float32', [2]), g.input('w', 'float32', [2])];
    const y = checkpoint(g, x, inner => exp(g, inner));
    const [dw] = gradients(g, sumAll(g, add(g, y, mul(g, w, w))), [w]);
    g.output('dw', dw);
    expect(count(g, 'Exp')).toBe(1);
    const session = await Session.create(g, { threads: 1 });
    const { dw: gradient } = await session.run({
      x: float32(Float32Array.of(1, 2), [2]),
      w: float32(Float32Array.of(3, -4), [2]),
    });
    expect([...gradient.data]).toEqual([6, -8]);
  });

  it('may be nested and may read inputs from outside', async () => {
    const build = (wrap: Wrap): Graph => {
      const g = new Graph('nested');
      const x = g.input('x', 'float32', [3]);
      const y = wrap(g, x, a =>
        mul(
          g,
          wrap(g, exp(g, a), b => mul(g, b, exp(g, b))),
          x,
        ),
      );
      g.output('y', y);
      g.output('dx', gradients(g, sumAll(g, y), [x])[0]);
      return g;
    };
    const feeds = { x: float32(Float32Array.of(0.1, -0.5, 0.3), [3]) };
    const [expected, actual] = await Promise.all(
      [plain, checkpoint].map(async wrap => (await Session.create(build(wrap), { threads: 1 })).run(feeds)),
    );
    for (const name of ['y', 'dx'])
      expected[name].data.forEach((x, i) => expect(Number(actual[name].data[i])).toBeCloseTo(Number(x), 5));
  });
});
