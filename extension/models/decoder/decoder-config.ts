// Parses config.json of a Hugging Face decoder of the Qwen2, Qwen3 and Llama families (RMSNorm, rotary positions,
// grouped-query attention, SwiGLU). A feature that this trainer does not support is rejected with an error that names
// it. A missing key has the default of the family's configuration class in transformers 5
// (test/golden/make/decoder_configs.py).
import { z } from 'zod';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { quantizationOf, unquantized } from '../weights/quantized-checkpoint';
import { rotaryScalingSchema, rotaryScalingTypes } from './rotary-frequencies';
import type { RotaryScaling } from './rotary-frequencies';

const families = ['qwen2', 'qwen3', 'llama'] as const;
type Family = (typeof families)[number];

const qwenDefaults = {
  vocab_size: 151_936,
  hidden_size: 4096,
  intermediate_size: 22_016,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 32,
  max_position_embeddings: 32_768,
  rms_norm_eps: 1e-6,
  sliding_window: 4096,
};
const defaults: Readonly<Record<Family, object>> = {
  qwen2: qwenDefaults,
  qwen3: { ...qwenDefaults, head_dim: 128 },
  llama: {
    vocab_size: 32_000,
    hidden_size: 4096,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    max_position_embeddings: 2048,
    rms_norm_eps: 1e-6,
  },
};

const rotarySchema = z.looseObject({
  rope_theta: z.number().positive().nullish(),
  rope_type: z.string().nullish(),
  /** Older name of rope_type. */
  type: z.string().nullish(),
  partial_rotary_factor: z.number().nullish(),
});

const configSchema = z.looseObject({
  vocab_size: z.number().int().positive(),
  hidden_size: z.number().int().positive(),
  intermediate_size: z.number().int().positive(),
  num_hidden_layers: z.number().int().positive().max(10_000), // bounds the list of expected tensors
  num_attention_heads: z.number().int().positive(),
  num_key_value_heads: z.number().int().positive().nullish(),
  head_dim: z.number().int().positive().nullish(),
  max_position_embeddings: z
    .number()
    .int()
    .positive()
    .max(2 ** 24), // the rotary tables have one row per position
  rms_norm_eps: z.number().positive(),
  original_max_position_embeddings: z.number().positive().nullish(),
  rope_theta: z.number().positive().nullish(),
  /**
   * Key in configurations written by transformers 4 and earlier. In these, rope_theta is a key next to rope_scaling.
   */
  rope_scaling: rotarySchema.nullish(),
  /** Key in configurations written by transformers 5 and later; contains rope_theta. */
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
  /**
   * Axis of the position that rotates each pair of elements, [headSize/2], in models that see: 0 for time, 1 for rows, 2
   * for columns. Undefined if positions have one axis. The axes of text tokens are equal, so they only matter to tokens of
   * pictures and after them.
   */
  rotaryAxes?: readonly number[];
  /**
   * Number of the decoder's first layers after which a part of each image feature is added to its token's hidden state
   * (DeepStack); 0 if undefined.
   */
  deepFeatures?: number;
  /** Name of the decoder's module in transformers 5, in models that see; `model` if undefined. */
  moduleName?: string;
  /** Whether embedding and output head are one tensor. */
  tiedHead: boolean;
  /** Bias on the q, k and v projections. Qwen2 always has it; Qwen3 and Llama have it if attention_bias is true. */
  qkvBias: boolean;
  /** Bias on the attention's output projection. Qwen3 and Llama have it if attention_bias is true. */
  outputBias: boolean;
  /** Bias on the gate, up and down projections. Llama has it if mlp_bias is true. */
  mlpBias: boolean;
  /** RMSNorm of each head of q and k, before rotary positions are applied (Qwen3). */
  qkNorm: boolean;
}

/**
 * Parses the content of a config.json. `file` is used only in errors. The model family is checked first. Throws a
 * UserError for invalid or unsupported values.
 */
export function parseDecoderConfig(json: unknown, file: string): DecoderConfig {
  const refuse: Refuse = (key, value, remedy) => {
    throw new UserError(`${file}: ${key} is ${JSON.stringify(value)}, which is not supported: ${remedy}`);
  };
  if (!isRecord(json))
    throw new UserError(`${file}: the content is not a JSON object: use the config.json of a decoder-only model`);
  const family = familyOf(json, file, refuse);
  const quantization = quantizationOf(json);
  if (quantization)
    throw new UserError(
      `${file}: ${quantization.key} declares quantised weights (${quantization.method}), which are not supported: ${unquantized}`,
    );
  const parsed = configSchema.safeParse({ ...defaults[family], ...json });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UserError(
      `${file}: ${issue.path.join('.') || 'content'}: ${issue.message}: use the config.json of a decoder-only model`,
    );
  }
  const c = parsed.data;
  if (c.hidden_act && !['silu', 'swish'].includes(c.hidden_act))
    refuse('hidden_act', c.hidden_act, 'use a model whose hidden_act is silu');
  refuseWindows(c, family, refuse);
  const heads = c.num_attention_heads;
  const kvHeads = c.num_key_value_heads ?? heads;
  const attentionBias = c.attention_bias ?? false;
  if (heads % kvHeads !== 0)
    refuse(
      'num_key_value_heads',
      kvHeads,
      `use a model whose num_key_value_heads divides num_attention_heads (${heads})`,
    );
  return {
    family,
    vocabSize: c.vocab_size,
    hiddenSize: c.hidden_size,
    intermediateSize: c.intermediate_size,
    layers: c.num_hidden_layers,
    heads,
    kvHeads,
    headSize: headSizeOf(c, family, refuse),
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

function familyOf(json: Record<string, unknown>, file: string, refuse: Refuse): Family {
  const remedy = 'use a model of type qwen2, qwen3 or llama';
  const { model_type: type } = json;
  if (type === undefined || type === null)
    throw new UserError(`${file}: model_type is missing, so the architecture is unknown: ${remedy}`);
  return families.find(name => name === type) ?? refuse('model_type', type, remedy);
}

/**
 * Returns the declared head size. The default is 128 for Qwen3, and the hidden size divided by the number of heads for
 * other models. The size must be even, because rotary positions rotate pairs.
 */
function headSizeOf(c: Config, family: Family, refuse: Refuse): number {
  const { hidden_size: hidden, num_attention_heads: heads } = c;
  const even = 'use a model with an even head size, because rotary positions rotate pairs of elements';
  if (typeof c.head_dim === 'number') return c.head_dim % 2 === 0 ? c.head_dim : refuse('head_dim', c.head_dim, even);
  if (family === 'llama' && hidden % heads !== 0)
    refuse('hidden_size', hidden, `use a model whose hidden_size is a multiple of num_attention_heads (${heads})`);
  const size = family === 'qwen3' ? 128 : Math.floor(hidden / heads);
  if (size === 0 || size % 2 !== 0)
    refuse('hidden_size', hidden, `with num_attention_heads ${heads}, each head has ${size} elements; ${even}`);
  return size;
}

/**
 * Rejects sliding windows if at least one layer uses a window that is shorter than the context. A sliding window in a
 * Llama configuration is accepted, because transformers' Llama ignores it.
 */
function refuseWindows(c: Config, family: Family, refuse: Refuse): void {
  const other = c.layer_types?.find(type => !['full_attention', 'attention', 'sliding_attention'].includes(type));
  if (other !== undefined) refuse('layer_types', other, 'use a model with full attention in every layer');
  const { sliding_window: window } = c;
  if (family === 'llama' || !c.use_sliding_window || window === null || window === undefined) return;
  if (window >= c.max_position_embeddings) return;
  const slides = c.layer_types
    ? c.layer_types.includes('sliding_attention')
    : (c.max_window_layers ?? 28) < c.num_hidden_layers;
  if (slides)
    refuse(
      'sliding_window',
      window,
      `the window is shorter than the model's ${c.max_position_embeddings} positions; use a model without sliding windows`,
    );
}

function rotaryPositions(c: Config, file: string, refuse: Refuse): Pick<DecoderConfig, 'ropeTheta' | 'ropeScaling'> {
  const isGiven = (value: Config['rope_scaling']) => Object.keys(value ?? {}).length > 0;
  const key = isGiven(c.rope_scaling) ? 'rope_scaling' : 'rope_parameters';
  const said = c[key] ?? {};
  const nested = Object.entries(said).find(([, value]) => isRecord(value));
  if (nested) refuse(`${key}.${nested[0]}`, nested[1], 'use a model with the same rotary positions in every layer');
  const type = said.rope_type ?? said.type ?? 'default';
  if (!rotaryScalingTypes.some(known => known === type))
    refuse(`${key}.rope_type`, type, `use a model whose rope_type is one of ${rotaryScalingTypes.join(', ')}`);
  const partial = said.partial_rotary_factor ?? c.partial_rotary_factor ?? 1;
  if (partial !== 1) refuse('partial_rotary_factor', partial, 'use a model whose partial_rotary_factor is 1');
  const length =
    c.original_max_position_embeddings ?? said.original_max_position_embeddings ?? c.max_position_embeddings;
  const scaling = rotaryScalingSchema.safeParse({
    ...said,
    rope_type: type,
    original_max_position_embeddings: length,
    // YaRN's factor defaults to the maximum length divided by the length in pretraining.
    ...(type === 'yarn' && { factor: said.factor ?? c.max_position_embeddings / Number(length) }),
  });
  if (!scaling.success) {
    const [issue] = scaling.error.issues;
    throw new UserError(
      `${file}: ${key}.${issue.path.join('.')}: ${issue.message}: rope scaling of type ${type} requires this key; download config.json again`,
    );
  }
  return { ropeTheta: said.rope_theta ?? c.rope_theta ?? 10_000, ropeScaling: scaling.data };
}

export interface ParameterSpec {
  /** Hugging Face tensor name. */
  name: string;
  dims: number[];
  /** Shape in weight files, if it differs from `dims`. */
  stored?: number[];
}

/** Tensor names of the embedding and the output head. A tied model may lack the head's tensor. */
export const embeddingTensor = 'model.embed_tokens.weight';
export const headTensor = 'lm_head.weight';

/**
 * Returns the specs of all parameters of the decoder under Hugging Face names, in a fixed order. Linear weights are
 * [out, in].
 */
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

export const elements = (dims: readonly number[]): number => dims.reduce((n, d) => n * d, 1);
