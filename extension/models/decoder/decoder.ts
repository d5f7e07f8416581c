// The decoder of the Qwen2, Qwen3 and Llama families. Generation, scoring and training use the same decoder. These
// three uses differ only in attention (attention.ts), parameter sources (decoder-parameters.ts), and the positions
// whose logits are computed. Tokens are packed: activations are [n, width], one row per token, so every linear layer is
// one matmul.
import { checkpoint } from '../../engine/graph/autodiff';
import { splitColumns } from '../../engine/graph/encoder-ops';
import type { Graph, Value } from '../../engine/graph/graph';
import { rmsNorm, rotary, swiglu } from '../../engine/graph/layer-ops';
import type { RotaryTables } from '../../engine/graph/layer-ops';
import { add, compare, gatherRows, mul, reshape, select } from '../../engine/graph/ops';
import type { DecoderConfig } from './decoder-config';
import type { DecoderParameters } from './decoder-parameters';
import { rotaryTable } from './rotary-frequencies';

/**
 * Computes the attention of layer `layer`. q is [n, heads·headSize]; k and v are [n, kvHeads·headSize]. Rotary
 * positions have already been applied to q and k. Returns the context [n, heads·headSize].
 */
export type Attend = (layer: number, q: Value, k: Value, v: Value) => Value;

/**
 * The tokens whose hidden states are needed. The last layer computes keys and values of all tokens, but everything else
 * only for these tokens.
 */
export interface LastLayer {
  /** Indices of tokens, int64 [last]; an index may occur several times. */
  tokens: Value;
  /** Position of each of these tokens, int64 [last]. */
  positions: Value;
  /** Attention of the last layer, whose q has one row per index of `tokens`. */
  attend: Attend;
}

export interface TokenInputs {
  /** int64 [n] */
  ids: Value;
  /** int64 [n] */
  positions: Value;
  /**
   * Exclusive upper bound of positions, and number of rows of the graph's rotary tables. Defaults to the model's limit.
   */
  maxPositions?: number;
  /** Whether each layer's intermediate values are recomputed in the backward pass instead of being kept in memory. */
  checkpointed?: boolean;
  /** Defined if tokens may show image features. */
  pictures?: PictureInputs;
}

/** Inputs of tokens that may show image features. */
export interface PictureInputs {
  /**
   * [features, hidden · (1 + deepFeatures)]: what replaces a token's embedding, and what is added after the first layers.
   */
  features: Value;
  /** int64 [n]: the feature that each token shows; 0 for tokens that show none. */
  indices: Value;
  /** float32 [n, 1]: 1 for tokens that show a feature, else 0. */
  shown: Value;
  /** One row per token; `positions` are the indices of the tokens. */
  rotation: RotaryTables;
}

/**
 * Returns the name of the tensor that maps hidden states to logits: the output head, or the embedding if it is tied to
 * the output head.
 */
export const headName = (c: DecoderConfig, parameters: Pick<DecoderParameters, 'has'>): string =>
  c.tiedHead && !parameters.has('lm_head.weight') ? 'model.embed_tokens.weight' : 'lm_head.weight';

/**
 * Returns the hidden states after the final norm, [n, hidden]. If `last` is given, returns only those of its tokens,
 * [last, hidden].
 */
export function decoderHidden(
  g: Graph,
  c: DecoderConfig,
  parameters: DecoderParameters,
  tokens: TokenInputs,
  attend: Attend,
  last?: LastLayer,
): Value {
  const rotation = tokens.pictures?.rotation ?? rotaryTables(g, c, tokens.maxPositions ?? c.maxPositions);
  const [n] = tokens.ids.dims;
  const positions = reshape(g, tokens.positions, [n, 1]); // [n, 1]: n may exceed the tables' rows
  const norm = (x: Value, name: string): Value => rmsNorm(g, x, parameters.vector(`${name}.weight`), c.normEps);

  const layer = (i: number, x: Value, only?: LastLayer): Value => {
    const prefix = `model.layers.${i}`;
    const linear = (name: string, input: Value, of?: Value): Value => parameters.linear(`${prefix}.${name}`, input, of);
    /** A linear layer of the tokens that are computed after attention. */
    const project = (name: string, input: Value): Value => linear(name, input, only?.tokens);
    const rotated = (name: 'q' | 'k', flat: Value, count: number, at: Value): Value => {
      const rows = flat.dims[0];
      const width = count * c.headSize;
      const perHead = (): Value =>
        norm(reshape(g, flat, [rows, count, c.headSize]), `${prefix}.self_attn.${name}_norm`);
      const scaled = c.qkNorm ? perHead() : flat;
      return reshape(g, rotary(g, reshape(g, scaled, [rows, 1, width]), at, rotation), [rows, width]);
    };
    const picked = (y: Value): Value => (only ? gatherRows(g, y, only.tokens) : y);
    const queryPositions = only ? reshape(g, only.positions, [only.positions.dims[0], 1]) : positions;
    const normed = norm(x, `${prefix}.input_layernorm`);
    const q = rotated('q', project('self_attn.q_proj', picked(normed)), c.heads, queryPositions);
    const k = rotated('k', linear('self_attn.k_proj', normed), c.kvHeads, positions);
    const v = linear('self_attn.v_proj', normed);
    const context = (only?.attend ?? attend)(i, q, k, v);
    const attended = add(g, picked(x), project('self_attn.o_proj', context));

    const middle = norm(attended, `${prefix}.post_attention_layernorm`);
    return add(
      g,
      attended,
      project('mlp.down_proj', swiglu(g, project('mlp.gate_proj', middle), project('mlp.up_proj', middle))),
    );
  };

  const embedded = parameters.embed('model.embed_tokens.weight', tokens.ids);
  const { embeddings, deep } = tokens.pictures
    ? withFeatures(g, embedded, tokens.pictures, 1 + (c.deepFeatures ?? 0))
    : { embeddings: embedded, deep: [] };
  let x = embeddings;
  for (let i = 0; i < c.layers; i++) {
    if (last && i === c.layers - 1) x = layer(i, x, last);
    else x = tokens.checkpointed ? checkpoint(g, x, inner => layer(i, inner)) : layer(i, x);
    if (i < deep.length) x = add(g, x, deep[i]);
  }
  return norm(x, 'model.norm');
}

/**
 * Replaces the embeddings of tokens that show image features. Features have `parts` parts: the first replaces the
 * embedding. Each of the others is returned in `deep`, [n, hidden], with 0 for tokens that show no feature.
 */
function withFeatures(
  g: Graph,
  embedded: Value,
  { features, indices, shown }: PictureInputs,
  parts: number,
): { embeddings: Value; deep: Value[] } {
  const rows = gatherRows(g, features, indices);
  const [first, ...others] = parts === 1 ? [rows] : splitColumns(g, rows, parts);
  const embeddings = select(g, compare(g, 'Greater', shown, g.scalar(0)), first, embedded);
  return { embeddings, deep: others.map(part => mul(g, part, shown)) };
}

/** Returns the logits [n, vocab] of hidden states [n, hidden]. */
export function decoderLogits(c: DecoderConfig, parameters: DecoderParameters, hidden: Value): Value {
  return parameters.base(headName(c, parameters), hidden);
}

/** Returns cos and sin of the first `rows` positions as graph constants. */
function rotaryTables(g: Graph, c: DecoderConfig, rows: number): RotaryTables {
  const { cos, sin } = rotaryTable(c, rows);
  const constant = (data: Float32Array): Value => g.constant('float32', [rows, c.headSize / 2], data);
  return { cos: constant(cos), sin: constant(sin), sinNegated: constant(sin.map(x => -x)) };
}
