// Float16 products: exactly the products with weights, for trained, frozen and adapted layers; gradients are float32
// and close to those of float32. onnxruntime's CPU provider has no float16 products: it computes them in float32 and
// skips some rounding. They run in float16 in test/webgpu.
import { describe, expect, it } from 'vitest';
import type { Graph } from '../../../../extension/engine/graph/graph';
import { executionOrder } from '../../../../extension/engine/graph/onnx-writer';
import { parameterSpecs } from '../../../../extension/models/decoder/decoder-config';
import type { TensorSource } from '../../../../extension/models/decoder/decoder-parameters';
import { adaptedNetwork, trainedNetwork } from '../../../../extension/models/decoder/networks';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { generateGraph, crossEntropyGraph, scoreGraph } from '../../../../extension/models/graphs/policy-graphs';
import type { Network } from '../../../../extension/models/graphs/policy-graphs';
import { compared, computeSmall } from '../../../../extension/models/self-check';
import {
  goldenConfig,
  goldenOptimizer,
  goldenSamples,
  plainLoad,
  relativeError,
  wholeBatch,
} from '../../../support/small-models';

const config = goldenConfig('qwen2');
const lora = { rank: 2, alpha: 4, dropout: 0.1, targets: 'all-linear' };
const trained = trainedNetwork(config);
const place = { file: 'x', offset: 0, bytes: 0 };
const inFiles: Network = {
  config,
  plan: { specs: parameterSpecs(config), source: (): TensorSource => ({ kind: 'file', dtype: 'BF16', ...place }) },
};
const halves = (network: Network): Network => ({ ...network, plan: { ...network.plan, products: 'float16' } });

describe.each<[string, Network]>([
  ['trained', trained],
  ['frozen', inFiles],
  ['adapted', adaptedNetwork(inFiles, lora)],
])('%s layers', (_, network) => {
  const shape = { lowering: 'webgpu', shared: true, chunks: 1, checkpointed: true } as const;
  const build = (of: Network): Graph[] => [
    scoreGraph(of, shape),
    generateGraph(of, 'webgpu', 'device'),
    ...(network === inFiles ? [] : [crossEntropyGraph(of, shape)]),
  ];

  it('use float16 for products only', () => {
    for (const graph of build(halves(network))) {
      const type = (name: string): string | undefined => graph.values.get(name)?.type;
      const nodes = executionOrder(graph);
      const products = nodes.filter(({ op }) => op === 'Gemm');
      expect(products.length).toBeGreaterThan(7 * config.layers);
      for (const { inputs, outputs } of products)
        expect([...inputs, ...outputs].map(type), graph.name).toEqual([...inputs, ...outputs].map(() => 'float16'));
      const others = nodes.filter(
        ({ op, outputs }) =>
          outputs.some(name => type(name) === 'float16') &&
          !['Gemm', 'Cast', 'Mul', 'Add', 'ReduceSum', 'Reshape'].includes(op),
      );
      expect(others.map(({ op }) => op)).toEqual([]);
      expect(nodes.filter(({ op, outputs }) => op === 'Softmax' && type(outputs[0]) !== 'float32')).toEqual([]);
      expect(graph.outputs.filter(({ type }) => type !== 'float32')).toEqual([]);
    }
  });

  it('are unchanged by default', () => {
    for (const graph of build(network))
      expect([...graph.values.values()].some(({ type }) => type === 'float16')).toBe(false);
  });
});

describe('a network with float16 products', () => {
  it('has nearly the loss and the gradients of float32', async () => {
    const expected = await computeSmall({ threads: 1 });
    const { differs, gradient } = compared(await computeSmall({ threads: 1 }, 'float16'), expected, 'float16');
    expect(differs).toBeNull();
    expect(gradient).toBeGreaterThan(1e-5); // otherwise nothing was rounded
    expect(gradient).toBeLessThan(1e-2);
  });

  it('is loaded by the engine on request', async () => {
    const [whole, half] = [new PolicyEngine(), new PolicyEngine()];
    expect(await half.load({ ...plainLoad, precision: 'float16' })).toMatchObject({ provider: 'cpu' });
    await whole.load(plainLoad);
    const moments = async (engine: PolicyEngine): Promise<ArrayLike<number>> => {
      await engine.trainSupervised(goldenSamples('qwen2'), wholeBatch, goldenOptimizer, 1);
      return (await engine.state()).actor.m;
    };
    const error = relativeError(await moments(half), await moments(whole));
    expect(error).toBeGreaterThan(1e-6);
    expect(error).toBeLessThan(1e-2);
  });
});
