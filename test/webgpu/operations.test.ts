// Every differentiable operation on WebGPU: value and gradients equal the CPU's to 1e-5 in float32, and to half
// precision in float16. Errors that kernels had in the past have their own cases.
import { expect, it } from 'vitest';
import { describeHalves, describeWebgpu } from './adapter';
import { gradients } from '../../extension/engine/graph/autodiff';
import { Graph } from '../../extension/engine/graph/graph';
import type { FloatType } from '../../extension/engine/graph/graph';
import { tokenLogProbs } from '../../extension/engine/graph/layer-ops';
import { gatherRows, mul, sumAll } from '../../extension/engine/graph/ops';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { Session, float32, int64 } from '../../extension/engine/session/session';
import type { Provider, Tensor } from '../../extension/engine/session/session';
import { compose, operationCases, titleOf } from '../unit/engine/graph/operation-cases';
import type { OperationCase } from '../unit/engine/graph/operation-cases';

async function run(graph: Graph, provider: Provider, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
  const session = await Session.create(graph, { provider, threads: 1 });
  try {
    return await session.run(feeds);
  } finally {
    await session.release();
  }
}

function expectClose(actual: Record<string, Tensor>, expected: Record<string, Tensor>, tolerance: number): void {
  expect(Object.keys(actual)).toEqual(Object.keys(expected));
  for (const [name, { dims, data }] of Object.entries(expected)) {
    expect(actual[name].dims, name).toEqual(dims);
    const [right, found] = [data as Float32Array, actual[name].data as Float32Array];
    const scale = Math.max(0.5, ...right.map(Math.abs));
    right.forEach((x, i) => expect(Math.abs(found[i] - x) / scale, `${name}[${i}]`).toBeLessThan(tolerance));
  }
}

const check =
  (type: FloatType, tolerance: number) =>
  async (row: OperationCase): Promise<void> => {
    const [cpu, gpu] = [compose(row), compose(row, 'webgpu', type)];
    expectClose(await run(gpu.graph, 'webgpu', gpu.feeds), await run(cpu.graph, 'cpu', cpu.feeds), tolerance);
  };

const rows = operationCases.map(row => ({ ...row, title: titleOf(row) }));

describeWebgpu('an operation on WebGPU', () => {
  it.each(rows)('$title has the result of the CPU', check('float32', 1e-5));

  it('computes log-probs of logits far from zero, in both directions', async () => {
    const build = (lowering: 'cpu' | 'webgpu'): Graph => {
      const g = new Graph('far', lowering);
      const logits = g.input('logits', 'float32', ['n', 3]);
      const { logprob, entropy } = tokenLogProbs(g, logits, g.input('targets', 'int64', ['n']));
      g.output('logprob', logprob);
      g.output('entropy', entropy);
      g.output('dx', gradients(g, sumAll(g, mul(g, logprob, logprob)), [logits])[0]);
      return g;
    };
    const feeds = {
      logits: float32(Float32Array.of(200, 190, 150, -300, -301, -250, 0, 90, 88), [3, 3]),
      targets: int64(BigInt64Array.of(1n, 0n, 2n), [3]),
    };
    expectClose(await run(build('webgpu'), 'webgpu', feeds), await run(build('cpu'), 'cpu', feeds), 1e-5);
  });

  it('sums the gradients of thousands of tokens that read few rows of an embedding', async () => {
    const [table, width, tokens] = [7, 64, 5000];
    const stream = new RandomStream(3);
    const g = new Graph('embedding', 'webgpu');
    const t = g.input('table', 'float32', [table, width]);
    const read = gatherRows(g, t, g.input('indices', 'int64', ['n']));
    g.output('dt', gradients(g, sumAll(g, mul(g, read, g.input('weight', 'float32', ['n', width]))), [t])[0]);
    const indices = Array.from({ length: tokens }, () => stream.integer(table));
    const weight = Float32Array.from({ length: tokens * width }, () => stream.uniform());
    const expected = new Float64Array(table * width);
    indices.forEach((row, i) => {
      for (let k = 0; k < width; k++) expected[row * width + k] += weight[i * width + k];
    });
    const { dt } = await run(g, 'webgpu', {
      table: float32(new Float32Array(table * width), [table, width]),
      indices: int64(BigInt64Array.from(indices, BigInt), [tokens]),
      weight: float32(weight, [tokens, width]),
    });
    (dt.data as Float32Array).forEach((x, i) => expect(Math.abs(x - expected[i]) / expected[i]).toBeLessThan(1e-5));
  });
});

describeHalves('an operation in float16 on WebGPU', () => {
  it.each(rows)('$title has the result of the CPU', check('float16', 1e-2));
});
