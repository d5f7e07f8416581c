// The decoder as a plain ONNX model for other runtimes. Inputs: input_ids, position_ids and attention_mask, all int64
// [b, t]. A 0 in attention_mask marks padding, which may be on either side. Output: logits [b, t, vocab] in float32.
// The model uses only standard ONNX operators and has no key-value cache. The weights are ONNX external data in the
// safetensors files of the same folder.
import { Graph } from '../../engine/graph/graph';
import type { Value } from '../../engine/graph/graph';
import { matmul, softmax } from '../../engine/graph/layer-ops';
import { writePlainOnnx } from '../../engine/graph/onnx-writer';
import { add, compare, reshape, transpose } from '../../engine/graph/ops';
import { decoderHidden, decoderLogits } from './decoder';
import type { Attend } from './decoder';
import { parameterSpecs } from './decoder-config';
import type { DecoderConfig } from './decoder-config';
import { DecoderParameters } from './decoder-parameters';
import type { FileTensor } from './decoder-parameters';

/**
 * Returns the bytes of the ONNX model; `tensors` contains the location of each parameter in files of the same folder.
 */
export function onnxDecoder(config: DecoderConfig, tensors: ReadonlyMap<string, FileTensor>): Uint8Array {
  const g = new Graph('decoder', 'onnx');
  const input = (name: string): Value => g.input(name, 'int64', ['b', 't']);
  const [ids, attentionMask, positions] = [input('input_ids'), input('attention_mask'), input('position_ids')];
  const parameters = new DecoderParameters(g, {
    specs: parameterSpecs(config),
    source: name => {
      const tensor = tensors.get(name);
      if (!tensor) throw new Error(`onnx decoder: no tensor ${name}`);
      return tensor;
    },
  });
  const tokens = { ids: reshape(g, ids, ['b*t']), positions: reshape(g, positions, ['b*t']) };
  const hidden = decoderHidden(g, config, parameters, tokens, paddedAttention(g, config, attentionMask));
  g.output('logits', reshape(g, decoderLogits(config, parameters, hidden), ['b', 't', config.vocabSize]));
  return writePlainOnnx(g);
}

/** Causal attention within each of b rows of t tokens; tokens with `attentionMask` [b, t] = 0 are masked out. */
function paddedAttention(g: Graph, c: DecoderConfig, attentionMask: Value): Attend {
  const groups = c.heads / c.kvHeads;
  const stacked = groups === 1 ? 't' : `${groups}*t`;
  const mask = causalMask(g, attentionMask);
  const heads = (x: Value, count: number): Value =>
    transpose(g, reshape(g, x, ['b', 't', count, c.headSize]), [0, 2, 1, 3]);
  return (_layer, q, k, v) => {
    const queries = reshape(g, heads(q, c.heads), ['b', c.kvHeads, stacked, c.headSize]);
    const scores = matmul(g, queries, heads(k, c.kvHeads), { transB: true, alpha: c.headSize ** -0.5 });
    const masked = add(g, reshape(g, scores, ['b', c.kvHeads, groups, 't', 't']), mask);
    const weights = reshape(g, softmax(g, masked), scores.dims);
    const context = reshape(g, matmul(g, weights, heads(v, c.kvHeads)), ['b', c.heads, 't', c.headSize]);
    return reshape(g, transpose(g, context, [0, 2, 1, 3]), q.dims);
  };
}

/** Returns the additive mask [b, 1, 1, t, t]: 0 where attention is allowed, large negative elsewhere. */
function causalMask(g: Graph, attentionMask: Value): Value {
  const zero = g.constant('int64', [], BigInt64Array.of(0n));
  const one = g.constant('int64', [], BigInt64Array.of(1n));
  const length = g.emit('Squeeze', [g.symbolSize('t')], 'int64', []);
  const places = g.emit('Range', [zero, length, one], 'int64', ['t']);
  const causal = compare(g, 'LessOrEqual', reshape(g, places, [1, 't']), reshape(g, places, ['t', 1]));
  const present = compare(g, 'Greater', reshape(g, attentionMask, ['b', 1, 1, 1, 't']), zero);
  const seen = g.emit('And', [causal, present], 'bool', ['b', 1, 1, 't', 't']);
  return g.emit('Where', [seen, g.scalar(0), g.scalar(-1e30)], 'float32', seen.dims);
}
