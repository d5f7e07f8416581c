// The decoder of the Qwen2/Llama family, described once and used for generation, scoring and training: what differs between the
// three is only how a query attends (attention.ts) and which positions' logits are wanted. Activations are kept as [n, hidden]
// with n = batch · time, so that every linear layer is one Gemm.
import type { Dim, Graph, Value } from '../engine/graph';
import { linear, rmsNorm, rotary, swiglu } from '../engine/layer-ops';
import type { RotaryTables } from '../engine/layer-ops';
import { add, gatherRows, reshape, transpose } from '../engine/ops';
import { parameterSpecs } from './decoder-config';
import type { DecoderConfig } from './decoder-config';

/** The decoder's parameters as graph inputs, by Hugging Face's names. */
export type Parameters = ReadonlyMap<string, Value>;

/**
 * Attends in layer `layer`. q is [b, heads, t, headSize], k and v [b, kvHeads, t, headSize], positions already applied.
 * Returns the context [b, heads, t, headSize].
 */
export type Attend = (layer: number, q: Value, k: Value, v: Value) => Value;

export interface TokenInputs {
  /** int64 [b, t] */
  ids: Value;
  /** int64 [b, t] */
  positions: Value;
  /** Symbol of the flattened axis b·t. */
  flat: Dim;
}

export function parameterInputs(g: Graph, config: DecoderConfig): Map<string, Value> {
  return new Map(parameterSpecs(config).map(({ name, dims }) => [name, g.input(name, 'float32', dims)]));
}

/** Hidden states after the final norm, [b·t, hidden]. */
export function decoderHidden(
  g: Graph,
  c: DecoderConfig,
  parameters: Parameters,
  tokens: TokenInputs,
  attend: Attend,
): Value {
  const parameter = (name: string): Value => {
    const value = parameters.get(name);
    if (!value) throw new Error(`decoder: no parameter ${name}`);
    return value;
  };
  const [b, t] = tokens.ids.dims;
  const rotation = rotaryTables(g, c);
  const embedded = gatherRows(g, parameter('model.embed_tokens.weight'), tokens.ids);
  let x = reshape(g, embedded, [tokens.flat, c.hiddenSize]);

  for (let i = 0; i < c.layers; i++) {
    const layer = `model.layers.${i}`;
    const project = (name: string, input: Value, bias = false): Value =>
      linear(g, input, parameter(`${layer}.${name}.weight`), bias ? parameter(`${layer}.${name}.bias`) : null);
    const heads = (v: Value, count: number): Value =>
      transpose(g, reshape(g, v, [b, t, count, c.headSize]), [0, 2, 1, 3]);

    const normed = rmsNorm(g, x, parameter(`${layer}.input_layernorm.weight`), c.normEps);
    const q = rotary(g, heads(project('self_attn.q_proj', normed, c.qkvBias), c.heads), tokens.positions, rotation);
    const k = rotary(g, heads(project('self_attn.k_proj', normed, c.qkvBias), c.kvHeads), tokens.positions, rotation);
    const v = heads(project('self_attn.v_proj', normed, c.qkvBias), c.kvHeads);
    const context = transpose(g, attend(i, q, k, v), [0, 2, 1, 3]);
    x = add(g, x, project('self_attn.o_proj', reshape(g, context, [tokens.flat, c.heads * c.headSize])));

    const middle = rmsNorm(g, x, parameter(`${layer}.post_attention_layernorm.weight`), c.normEps);
    x = add(
      g,
      x,
      project('mlp.down_proj', swiglu(g, project('mlp.gate_proj', middle), project('mlp.up_proj', middle))),
    );
  }
  return rmsNorm(g, x, parameter('model.norm.weight'), c.normEps);
}

/** Logits [n, vocab] of hidden states [n, hidden]. */
export function decoderLogits(g: Graph, c: DecoderConfig, parameters: Parameters, hidden: Value): Value {
  const head = parameters.get(c.tiedHead ? 'model.embed_tokens.weight' : 'lm_head.weight');
  if (!head) throw new Error('decoder: no output head');
  return linear(g, hidden, head);
}

/** cos and sin of position · theta^(−2i/headSize) for every position, as constants of the graph. */
function rotaryTables(g: Graph, c: DecoderConfig): RotaryTables {
  const half = c.headSize / 2;
  const size = c.maxPositions * half;
  const cos = new Float32Array(size);
  const sin = new Float32Array(size);
  for (let position = 0; position < c.maxPositions; position++) {
    for (let i = 0; i < half; i++) {
      const angle = position * c.ropeTheta ** (-i / half);
      cos[position * half + i] = Math.cos(angle);
      sin[position * half + i] = Math.sin(angle);
    }
  }
  const table = (data: Float32Array): Value => g.constant('float32', [c.maxPositions, half], data);
  return { cos: table(cos), sin: table(sin), sinNegated: table(sin.map(x => -x)) };
}
