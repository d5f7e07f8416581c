// The decoder of the Qwen2, Qwen3 and Llama families, described once and used for generation, scoring and training: what differs between the
// three is only how a query attends (attention.ts) and which positions' logits are wanted. Activations are kept as [n, hidden]
// with n = batch · time, so that every linear layer is one Gemm.
import type { Dim, Graph, Value } from '../engine/graph';
import { linear, rmsNorm, rotary, swiglu } from '../engine/layer-ops';
import type { RotaryTables } from '../engine/layer-ops';
import { add, gatherRows, reshape, transpose } from '../engine/ops';
import { parameterSpecs } from './decoder-config';
import type { DecoderConfig } from './decoder-config';
import { rotaryTable } from './rotary-frequencies';

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
  /** Every position is below this; the graph carries a table of so many rows. At most, and by default, the model's own limit. */
  maxPositions?: number;
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
  const rotation = rotaryTables(g, c, Math.min(c.maxPositions, tokens.maxPositions ?? c.maxPositions));
  const embedded = gatherRows(g, parameter('model.embed_tokens.weight'), tokens.ids);
  let x = reshape(g, embedded, [tokens.flat, c.hiddenSize]);

  for (let i = 0; i < c.layers; i++) {
    const layer = `model.layers.${i}`;
    const project = (name: string, input: Value, bias = false): Value =>
      linear(g, input, parameter(`${layer}.${name}.weight`), bias ? parameter(`${layer}.${name}.bias`) : null);
    const heads = (v: Value, count: number): Value =>
      transpose(g, reshape(g, v, [b, t, count, c.headSize]), [0, 2, 1, 3]);

    const normed = rmsNorm(g, x, parameter(`${layer}.input_layernorm.weight`), c.normEps);
    const rotated = (name: 'q' | 'k', count: number): Value => {
      const projected = heads(project(`self_attn.${name}_proj`, normed, c.qkvBias), count);
      const norm = `${layer}.self_attn.${name}_norm.weight`;
      const scaled = c.qkNorm ? rmsNorm(g, projected, parameter(norm), c.normEps) : projected;
      return rotary(g, scaled, tokens.positions, rotation);
    };
    const q = rotated('q', c.heads);
    const k = rotated('k', c.kvHeads);
    const v = heads(project('self_attn.v_proj', normed, c.qkvBias), c.kvHeads);
    const context = transpose(g, attend(i, q, k, v), [0, 2, 1, 3]);
    const attended = reshape(g, context, [tokens.flat, c.heads * c.headSize]);
    x = add(g, x, project('self_attn.o_proj', attended, c.outputBias));

    const middle = rmsNorm(g, x, parameter(`${layer}.post_attention_layernorm.weight`), c.normEps);
    const feed = (name: string, input: Value): Value => project(`mlp.${name}_proj`, input, c.mlpBias);
    x = add(g, x, feed('down', swiglu(g, feed('gate', middle), feed('up', middle))));
  }
  return rmsNorm(g, x, parameter('model.norm.weight'), c.normEps);
}

/** Logits [n, vocab] of hidden states [n, hidden]. */
export function decoderLogits(g: Graph, c: DecoderConfig, parameters: Parameters, hidden: Value): Value {
  const head = parameters.get(c.tiedHead ? 'model.embed_tokens.weight' : 'lm_head.weight');
  if (!head) throw new Error('decoder: no output head');
  return linear(g, hidden, head);
}

/** cos and sin of the first `rows` positions as constants of the graph. */
function rotaryTables(g: Graph, c: DecoderConfig, rows: number): RotaryTables {
  const { cos, sin } = rotaryTable(c, rows);
  const constant = (data: Float32Array): Value => g.constant('float32', [rows, c.headSize / 2], data);
  return { cos: constant(cos), sin: constant(sin), sinNegated: constant(sin.map(x => -x)) };
}
