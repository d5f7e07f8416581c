// The graphs of a run with CUDA. No GPU is needed: every operation must be among those for which onnxruntime documents
// a CUDA kernel of its type, and except for int8 products the graphs equal the CPU's.
import { expect, it } from 'vitest';
import type { Graph } from '../../../../extension/engine/graph/graph';
import { executionOrder } from '../../../../extension/engine/graph/onnx-writer';
import { samplerGraph } from '../../../../extension/engine/sampling/graph-sampler';
import { sessionSettings } from '../../../../extension/engine/session/session';
import { criticSpecs, criticGraph } from '../../../../extension/models/decoder/critic';
import { parameterSpecs } from '../../../../extension/models/decoder/decoder-config';
import type { TensorSource } from '../../../../extension/models/decoder/decoder-parameters';
import { adaptedNetwork, trainedNetwork } from '../../../../extension/models/decoder/networks';
import {
  generateGraph,
  crossEntropyGraph,
  scoreGraph,
  updateGraph,
} from '../../../../extension/models/graphs/policy-graphs';
import type { Network } from '../../../../extension/models/graphs/policy-graphs';
import { goldenConfig } from '../../../support/small-models';

/**
 * Kernels of CUDAExecutionProvider used by the graphs, from onnxruntime's docs/OperatorKernels.md, opset 21 and
 * com.microsoft.
 */
const kernels = new Set(
  `Abs Add And ArgMax Cast Clip Concat ConstantOfShape CumSum DequantizeLinear Div Equal Exp Expand Floor FusedMatMul Gather
  GatherElements Gemm Greater GreaterOrEqual Identity Less LessOrEqual Log LogSoftmax MatMul MatMulInteger Max Min Mul Neg
  Pad Reciprocal ReduceMax ReduceMean ReduceSum ReduceSumSquare Reshape RotaryEmbedding Round ScatterElements Shape Sigmoid
  Sign SimplifiedLayerNormalization Sin Slice Softmax Split Sqrt Squeeze Sub Transpose Unsqueeze Where`.split(/\s+/),
);

const config = goldenConfig('qwen3');
const lora = { rank: 2, alpha: 4, dropout: 0.1, targets: 'all-linear' };
const place = { file: 'x', offset: 0, bytes: 0 };
/** A base in its files whose linear layers are int8 or float16. */
const frozen = (bytes: boolean): Network => ({
  config,
  plan: {
    specs: parameterSpecs({ ...config, tiedHead: false }),
    int8Products: bytes,
    source: (name): TensorSource =>
      bytes && /_proj|lm_head/.test(name)
        ? { kind: 'int8', weight: place, scale: place }
        : { kind: 'file', dtype: 'BF16', ...place },
  },
});

function graphs(lowering: 'cpu' | 'cuda'): Graph[] {
  const trained = trainedNetwork(config);
  const adapted = adaptedNetwork(frozen(false), lora);
  const shapes = [false, true].map(shared => ({ lowering, shared, chunks: 2, checkpointed: shared }));
  const modes = ['vanilla', 'gspo', 'cispo'] as const;
  return [
    ...[trained, adapted].flatMap(network =>
      shapes.flatMap(shape => [
        scoreGraph(network, shape),
        ...modes.map(mode => updateGraph(network, shape, { mode, kl: 'low_var_kl', entropy: true })),
        crossEntropyGraph(network, shape),
      ]),
    ),
    ...shapes.map(shape => criticGraph(trainedNetwork(config, criticSpecs(config)), shape)),
    ...[trained, adapted, frozen(true)].map(network => generateGraph(network, lowering)),
    ...[true, false].map(greedy => samplerGraph(config.vocabSize, greedy, lowering)),
  ];
}

it('have a kernel for every operation', () => {
  const missing = graphs('cuda').flatMap(graph =>
    executionOrder(graph)
      .map(({ op }) => op)
      .filter(op => !kernels.has(op)),
  );
  expect([...new Set(missing)]).toEqual([]);
});

it('multiply signed bytes only', () => {
  const products = graphs('cuda').flatMap(graph =>
    executionOrder(graph).flatMap(({ op, inputs }) =>
      op === 'MatMulInteger' ? [inputs.map(name => graph.values.get(name)?.type ?? 'int8')] : [],
    ),
  );
  expect(products.length).toBeGreaterThan(10);
  expect(new Set(products.map(types => types.join()))).toEqual(new Set(['int8,int8']));
});

it("otherwise equal the CPU's graphs", () => {
  const operations = (graph: Graph): string[] => executionOrder(graph).map(({ op }) => op);
  const [cuda, cpu] = [graphs('cuda'), graphs('cpu')];
  cuda.forEach((graph, i) => {
    if (!operations(graph).includes('MatMulInteger')) expect(operations(graph)).toEqual(operations(cpu[i]));
  });
});

it('run with CUDA first, and report nodes without a kernel', () => {
  const [graph] = graphs('cuda');
  const settings = sessionSettings(graph, { provider: 'cuda', threads: 1, resident: () => true });
  expect(settings).toMatchObject({ executionProviders: ['cuda'], logSeverityLevel: 2 });
  expect(settings.preferredOutputLocation).toBeUndefined();
});
