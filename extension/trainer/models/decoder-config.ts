// What config.json of a Hugging Face decoder says, for the Qwen2, Qwen3 and Llama families (RMSNorm, rotary positions, grouped-query
// attention, SwiGLU). Anything this trainer would compute wrongly is refused by name rather than ignored; what is absent has
// transformers' default.
import { z } from 'zod';
import { UserError } from '../../protocol/user-error';
import { rotaryScalingSchema, rotaryScalingTypes } from './rotary-frequencies';
import type { RotaryScaling } from './rotary-frequencies';

const families = ['qwen2', 'qwen3', 'llama'] as const;
type Family = (typeof families)[number];

const rotarySchema = z.looseObject({
  rope_theta: z.number().positive().nullish(),
  rope_type: z.string().nullish(),
  /** The older name of rope_type. */
  type: z.string().nullish(),
  partial_rotary_factor: z.number().nullish(),
});

const configSchema = z.looseObject({
  model_type: z.string(),
  vocab_size: z.number().int().positive(),
  hidden_size: z.number().int().positive(),
  intermediate_size: z.number().int().positive(),
  num_hidden_layers: z.number().int().positive().max(10_000), // each is listed before a weight is looked for
  num_attention_heads: z.number().int().positive(),
  num_key_value_heads: z.number().int().positive().nullish(),
  head_dim: z.number().int().positive().nullish(),
  max_position_embeddings: z.number().int().positive(),
  rms_norm_eps: z.number().positive(),
  original_max_position_embeddings: z.number().positive().nullish(),
  rope_theta: z.number().positive().nullish(),
  /** Its name until transformers 4; with rope_theta beside it. */
  rope_scaling: rotarySchema.nullish(),
  /** Its name from transformers 5 on; with rope_theta in it. */
  rope_parameters: rotarySchema.nullish(),
  partial_rotary_factor: z.number().nullish(),
  tie_word_embeddings: z.boolean().optional(),
  attention_bias: z.boolean().optional(),
  mlp_bias: z.boolean().optional(),
  hidden_act: z.string().optional(),
  use_sliding_window: z.boolean().nullish(),
  sliding_window: z.number().nullish(),
  max_window_layers: z.number().nullish(),
  layer_types: z.array(z.string()).nullish(),
});
type Config = z.infer<typeof configSchema>;
type Refuse = (key: string, value: unknown, remedy: string) => never;

export interface DecoderConfig {
  family: Family;
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
  ropeScaling: RotaryScaling;
  /** The output head is the embedding. */
  tiedHead: boolean;
  /** Bias on the q, k and v projections (Qwen2 has it always, Qwen3 and Llama with attention_bias). */
  qkvBias: boolean;
  /** Bias on the attention's output projection (Qwen3 and Llama with attention_bias). */
  outputBias: boolean;
  /** Bias on gate, up and down projection (Llama with mlp_bias). */
  mlpBias: boolean;
  /** RMSNorm of each head of q and k before they are rotated (Qwen3). */
  qkNorm: boolean;
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
  const refuse: Refuse = (key, value, remedy) => {
    throw new UserError(`${file}: ${key} is ${JSON.stringify(value)}, which is not supported: ${remedy}`);
  };
  const family =
    families.find(name => name === c.model_type) ??
    refuse('model_type', c.model_type, 'use a model of type qwen2, qwen3 or llama');
  if (c.hidden_act && c.hidden_act !== 'silu') refuse('hidden_act', c.hidden_act, 'use a model with silu');
  refuseWindows(c, family, refuse);
  const heads = c.num_attention_heads;
  const kvHeads = c.num_key_value_heads ?? heads;
  const attentionBias = c.attention_bias ?? false;
  if (heads % kvHeads !== 0) refuse('num_key_value_heads', kvHeads, `it must divide num_attention_heads ${heads}`);
  const headSize = c.head_dim ?? (family === 'qwen3' ? 128 : c.hidden_size / heads);
  if (!Number.isInteger(headSize) || headSize % 2 !== 0)
    refuse('hidden_size', c.hidden_size, `the head size ${headSize} must be an even whole number`);
  return {
    family,
    vocabSize: c.vocab_size,
    hiddenSize: c.hidden_size,
    intermediateSize: c.intermediate_size,
    layers: c.num_hidden_layers,
    heads,
    kvHeads,
    headSize,
    maxPositions: c.max_position_embeddings,
    normEps: c.rms_norm_eps,
    ...rotaryPositions(c, file, refuse),
    tiedHead: c.tie_word_embeddings ?? false,
    qkvBias: family === 'qwen2' || attentionBias,
    outputBias: family !== 'qwen2' && attentionBias,
    mlpBias: family === 'llama' && (c.mlp_bias ?? false),
    qkNorm: family === 'qwen3',
  };
}

/** Sliding windows are fine where no layer has one, or where the window holds the whole context. */
function refuseWindows(c: Config, family: Family, refuse: Refuse): void {
  const sliding = c.layer_types?.find(type => type !== 'full_attention');
  if (sliding) refuse('layer_types', sliding, 'use a model of full attention in every layer');
  if (family === 'llama' || !c.use_sliding_window || c.sliding_window === null || c.layer_types) return;
  if ((c.max_window_layers ?? 28) >= c.num_hidden_layers) return;
  if ((c.sliding_window ?? 4096) >= c.max_position_embeddings) return;
  refuse('use_sliding_window', true, 'use a model without sliding windows');
}

function rotaryPositions(c: Config, file: string, refuse: Refuse): Pick<DecoderConfig, 'ropeTheta' | 'ropeScaling'> {
  const [key, said] = c.rope_scaling
    ? (['rope_scaling', c.rope_scaling] as const)
    : (['rope_parameters', c.rope_parameters ?? {}] as const);
  const type = said.rope_type ?? said.type ?? 'default';
  if (!rotaryScalingTypes.some(known => known === type))
    refuse(`${key}.rope_type`, type, `use a model of type ${rotaryScalingTypes.join(', ')}`);
  const partial = said.partial_rotary_factor ?? c.partial_rotary_factor ?? 1;
  if (partial !== 1) refuse('partial_rotary_factor', partial, 'use a model that rotates whole heads');
  const length =
    c.original_max_position_embeddings ?? said.original_max_position_embeddings ?? c.max_position_embeddings;
  const scaling = rotaryScalingSchema.safeParse({
    ...said,
    rope_type: type,
    original_max_position_embeddings: length,
    // YaRN's factor may be left to the two lengths.
    ...(type === 'yarn' && { factor: said.factor ?? c.max_position_embeddings / Number(length) }),
  });
  if (!scaling.success) {
    const [issue] = scaling.error.issues;
    throw new UserError(
      `${file}: ${key}.${issue.path.join('.')}: ${issue.message}: a scaling of type ${type} needs it; get config.json anew`,
    );
  }
  return { ropeTheta: said.rope_theta ?? c.rope_theta ?? 10_000, ropeScaling: scaling.data };
}

export interface ParameterSpec {
  /** Hugging Face's tensor name. */
  name: string;
  dims: number[];
}

/** Names of the two tensors that may be one: the embedding and the output head. */
export const embeddingTensor = 'model.embed_tokens.weight';
export const headTensor = 'lm_head.weight';

/** Every parameter of the decoder by Hugging Face's names, in a fixed order. Linear weights are [out, in]. */
export function parameterSpecs(c: DecoderConfig): ParameterSpec[] {
  const q = c.heads * c.headSize;
  const kv = c.kvHeads * c.headSize;
  const specs: ParameterSpec[] = [{ name: embeddingTensor, dims: [c.vocabSize, c.hiddenSize] }];
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
    linear('self_attn.o_proj', c.hiddenSize, q, c.outputBias);
    if (c.qkNorm) {
      specs.push({ name: `${layer}.self_attn.q_norm.weight`, dims: [c.headSize] });
      specs.push({ name: `${layer}.self_attn.k_norm.weight`, dims: [c.headSize] });
    }
    specs.push({ name: `${layer}.post_attention_layernorm.weight`, dims: [c.hiddenSize] });
    linear('mlp.gate_proj', c.intermediateSize, c.hiddenSize, c.mlpBias);
    linear('mlp.up_proj', c.intermediateSize, c.hiddenSize, c.mlpBias);
    linear('mlp.down_proj', c.hiddenSize, c.intermediateSize, c.mlpBias);
  }
  specs.push({ name: 'model.norm.weight', dims: [c.hiddenSize] });
  if (!c.tiedHead) specs.push({ name: headTensor, dims: [c.vocabSize, c.hiddenSize] });
  return specs;
}

/** Number of elements of a tensor. */
export const elements = (dims: readonly number[]): number => dims.reduce((n, d) => n * d, 1);
