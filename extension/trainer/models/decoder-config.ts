// What config.json of a Hugging Face decoder says, for the Qwen2 and Llama families (RMSNorm, rotary positions, grouped-query
// attention, SwiGLU). Anything this trainer would compute wrongly is refused by name rather than ignored.
import { z } from 'zod';
import { UserError } from '../../protocol/user-error';

const configSchema = z.looseObject({
  model_type: z.string(),
  vocab_size: z.number().int().positive(),
  hidden_size: z.number().int().positive(),
  intermediate_size: z.number().int().positive(),
  num_hidden_layers: z.number().int().positive(),
  num_attention_heads: z.number().int().positive(),
  num_key_value_heads: z.number().int().positive().optional(),
  head_dim: z.number().int().positive().nullish(),
  max_position_embeddings: z.number().int().positive(),
  rms_norm_eps: z.number().positive(),
  rope_theta: z.number().positive().optional(),
  rope_scaling: z.unknown().optional(),
  rope_parameters: z
    .looseObject({ rope_theta: z.number().positive().optional(), rope_type: z.string().optional() })
    .nullish(),
  tie_word_embeddings: z.boolean().optional(),
  attention_bias: z.boolean().optional(),
  mlp_bias: z.boolean().optional(),
  hidden_act: z.string().optional(),
  use_sliding_window: z.boolean().optional(),
});

export interface DecoderConfig {
  family: 'qwen2' | 'llama';
  vocabSize: number;
  hiddenSize: number;
  intermediateSize: number;
  layers: number;
  heads: number;
  kvHeads: number;
  headSize: number;
  maxPositions: number;
  normEps: number;
  ropeTheta: number;
  tiedHead: boolean;
  /** Bias on the q, k and v projections (Qwen2 has it, Llama has not). */
  qkvBias: boolean;
}

/** Reads the content of a config.json; `file` only names it in errors. */
export function parseDecoderConfig(json: unknown, file: string): DecoderConfig {
  const parsed = configSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UserError(
      `${file}: ${issue.path.join('.') || 'content'}: ${issue.message}: is this a decoder's config.json?`,
    );
  }
  const c = parsed.data;
  const refuse = (key: string, value: unknown, remedy: string): never => {
    throw new UserError(`${file}: ${key} is ${JSON.stringify(value)}, which is not supported: ${remedy}`);
  };
  if (c.model_type !== 'qwen2' && c.model_type !== 'llama')
    refuse('model_type', c.model_type, 'use a model of type qwen2 or llama');
  if (c.rope_scaling) refuse('rope_scaling', c.rope_scaling, 'use a model without rotary scaling');
  const ropeType = c.rope_parameters?.rope_type;
  if (ropeType && ropeType !== 'default')
    refuse('rope_parameters.rope_type', ropeType, 'use a model without rotary scaling');
  if (c.hidden_act && c.hidden_act !== 'silu') refuse('hidden_act', c.hidden_act, 'use a model with silu');
  if (c.use_sliding_window) refuse('use_sliding_window', true, 'use a model without sliding windows');
  if (c.mlp_bias) refuse('mlp_bias', true, 'use a model without it');
  if (c.model_type === 'llama' && c.attention_bias) refuse('attention_bias', true, 'use a Llama without it');
  const heads = c.num_attention_heads;
  const kvHeads = c.num_key_value_heads ?? heads;
  if (heads % kvHeads !== 0) refuse('num_key_value_heads', kvHeads, `it must divide num_attention_heads ${heads}`);
  const headSize = c.head_dim ?? c.hidden_size / heads;
  if (!Number.isInteger(headSize) || headSize % 2 !== 0)
    refuse('hidden_size', c.hidden_size, `the head size ${headSize} must be an even whole number`);
  return {
    family: c.model_type as 'qwen2' | 'llama',
    vocabSize: c.vocab_size,
    hiddenSize: c.hidden_size,
    intermediateSize: c.intermediate_size,
    layers: c.num_hidden_layers,
    heads,
    kvHeads,
    headSize,
    maxPositions: c.max_position_embeddings,
    normEps: c.rms_norm_eps,
    ropeTheta: c.rope_parameters?.rope_theta ?? c.rope_theta ?? 10_000,
    tiedHead: c.tie_word_embeddings ?? false,
    qkvBias: c.model_type === 'qwen2',
  };
}

export interface ParameterSpec {
  /** Hugging Face's tensor name. */
  name: string;
  dims: number[];
}

/** Every parameter of the decoder by Hugging Face's names, in a fixed order. Linear weights are [out, in]. */
export function parameterSpecs(c: DecoderConfig): ParameterSpec[] {
  const q = c.heads * c.headSize;
  const kv = c.kvHeads * c.headSize;
  const specs: ParameterSpec[] = [{ name: 'model.embed_tokens.weight', dims: [c.vocabSize, c.hiddenSize] }];
  for (let i = 0; i < c.layers; i++) {
    const layer = `model.layers.${i}`;
    const linear = (name: string, out: number, from: number, bias: boolean): void => {
      specs.push({ name: `${layer}.${name}.weight`, dims: [out, from] });
      if (bias) specs.push({ name: `${layer}.${name}.bias`, dims: [out] });
    };
    specs.push({ name: `${layer}.input_layernorm.weight`, dims: [c.hiddenSize] });
    linear('self_attn.q_proj', q, c.hiddenSize, c.qkvBias);
    linear('self_attn.k_proj', kv, c.hiddenSize, c.qkvBias);
    linear('self_attn.v_proj', kv, c.hiddenSize, c.qkvBias);
    linear('self_attn.o_proj', c.hiddenSize, q, false);
    specs.push({ name: `${layer}.post_attention_layernorm.weight`, dims: [c.hiddenSize] });
    linear('mlp.gate_proj', c.intermediateSize, c.hiddenSize, false);
    linear('mlp.up_proj', c.intermediateSize, c.hiddenSize, false);
    linear('mlp.down_proj', c.hiddenSize, c.intermediateSize, false);
  }
  specs.push({ name: 'model.norm.weight', dims: [c.hiddenSize] });
  if (!c.tiedHead) specs.push({ name: 'lm_head.weight', dims: [c.vocabSize, c.hiddenSize] });
  return specs;
}

/** Number of elements of a tensor. */
export const elements = (dims: readonly number[]): number => dims.reduce((n, d) => n * d, 1);
