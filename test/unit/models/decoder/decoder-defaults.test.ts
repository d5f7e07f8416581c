// config.json read as transformers reads it when keys are absent, null or under older names, and other families refused
// by name (test/golden/make/decoder_configs.py).
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { refusalOf } from '../../../support/refusal';

type Json = Record<string, unknown>;
interface Golden {
  /** `read` is null where transformers refuses the configuration. */
  read: { config: Json; read: (Json & { rope_parameters: Json; windows: number[] }) | null }[];
  others: Record<string, Json>;
}
const golden = JSON.parse(readFileSync('test/golden/decoder-configs.json', 'utf8')) as Golden;
const parse = (config: Json) => parseDecoderConfig(config, 'm/config.json');
const sentence = (config: unknown): string => refusalOf(() => parseDecoderConfig(config, 'm/config.json'));
/**
 * Whether the key-value heads divide the query heads: transformers accepts other numbers and fails when it computes.
 */
const computes = (read: Json): boolean => Number(read.num_attention_heads) % Number(read.num_key_value_heads) === 0;

it.each(golden.read.map(({ config, read }) => [JSON.stringify(config), read] as const))(
  '%s is read as by transformers',
  (text, read) => {
    const config = JSON.parse(text) as Json;
    if (read === null || !computes(read)) {
      expect(sentence(config)).toMatch(
        read ? /num_key_value_heads is 32/ : /hidden_size is 66, .+ multiple of num_att/,
      );
      return;
    }
    const ours = parse(config);
    const family = String(config.model_type);
    expect(ours).toMatchObject({
      family,
      vocabSize: read.vocab_size,
      hiddenSize: read.hidden_size,
      intermediateSize: read.intermediate_size,
      layers: read.num_hidden_layers,
      heads: read.num_attention_heads,
      kvHeads: read.num_key_value_heads,
      headSize: read.head_dim,
      maxPositions: read.max_position_embeddings,
      normEps: read.rms_norm_eps,
      tiedHead: read.tie_word_embeddings,
      ropeTheta: read.rope_parameters.rope_theta,
      outputBias: family !== 'qwen2' && read.attention_bias,
      mlpBias: family === 'llama' && read.mlp_bias,
    });
    const { rope_theta, type, ...scaling } = read.rope_parameters;
    expect([rope_theta, type ?? scaling.rope_type]).toEqual([ours.ropeTheta, ours.ropeScaling.rope_type]);
    expect(ours.ropeScaling).toMatchObject(scaling);
    for (const window of read.windows) expect(window).toBeGreaterThanOrEqual(ours.maxPositions);
  },
);

describe('another family', () => {
  it.each(Object.keys(golden.others))('%s is refused by its name', family => {
    expect(sentence(golden.others[family])).toBe(
      `m/config.json: model_type is "${family}", which is not supported: use a model of type qwen2, qwen3 or llama`,
    );
  });

  it.each([[{}], [{ hidden_size: 'wide' }]])('%j without a family name is refused for that', config => {
    expect(sentence(config)).toBe(
      'm/config.json: model_type is missing, so the architecture is unknown: use a model of type qwen2, qwen3 or llama',
    );
  });
});

describe('a quantised checkpoint', () => {
  it.each<[Json, string, string]>([
    [{ quantization_config: { quant_method: 'gptq', bits: 4 } }, 'quantization_config', 'gptq'],
    [{ quantization_config: { quant_method: 'awq', bits: 4 }, vocab_size: 'none' }, 'quantization_config', 'awq'],
    [{ quantization_config: { load_in_4bit: true } }, 'quantization_config', 'bitsandbytes'],
    [{ quantization_config: { quant_method: 'bitsandbytes' } }, 'quantization_config', 'bitsandbytes'],
    [{ quantization_config: { quant_method: 'fp8' } }, 'quantization_config', 'fp8'],
    [{ quantization_config: { quant_method: 'compressed-tensors' } }, 'quantization_config', 'compressed-tensors'],
    [{ compression_config: { format: 'pack-quantized' } }, 'compression_config', 'compressed-tensors'],
    [{ quantization: { group_size: 64, bits: 4 } }, 'quantization', 'MLX'],
    [{ quantization_config: {} }, 'quantization_config', 'by an unnamed method'],
  ])('%j is refused as such', (change, key, method) => {
    expect(sentence({ ...golden.read[2].config, ...change })).toBe(
      `m/config.json: ${key} declares quantised weights (${method}), which are not supported: use the original model in float32, float16 or bfloat16 (workbench.base_quantization=int8 quantises it for training adapters)`,
    );
  });

  it('is not one when the key is null', () => {
    expect(parse({ ...golden.read[2].config, quantization_config: null }).layers).toBe(2);
  });
});

describe('an invalid value', () => {
  const small = golden.read[2].config;
  it.each([
    [{ max_position_embeddings: 1e15 }, /max_position_embeddings: Too big: expected number to be <=16777216: /],
    [{ head_dim: 5 }, /head_dim is 5, .+ use a model with an even head size, /],
    [{ hidden_size: 20 }, /hidden_size is 20, .+ with num_attention_heads 4, each head has 5 elements; /],
    [{ hidden_size: 2 }, /hidden_size is 2, .+ each head has 0 elements/],
    [
      { model_type: 'llama', hidden_size: 66 },
      /hidden_size is 66, .+ whose hidden_size is a multiple of num_attention_heads \(4\)$/,
    ],
    [
      { layer_types: ['full_attention', 'linear_attention'] },
      /layer_types is "linear_attention", .+ full attention in every layer$/,
    ],
    [
      { use_sliding_window: true, sliding_window: 8, layer_types: ['full_attention', 'sliding_attention'] },
      /sliding_window is 8, .+ the window is shorter than the model's 32768 positions; /,
    ],
    [
      { use_sliding_window: true, max_window_layers: 1 },
      /sliding_window is 4096, .+ shorter than the model's 32768 positions/,
    ],
    [
      { rope_parameters: { full_attention: { rope_theta: 1e4 } } },
      /rope_parameters\.full_attention is .+ same rotary positions in every layer/,
    ],
    [{ hidden_act: 'gelu' }, /hidden_act is "gelu"/],
  ])('%j is refused and named', (change, expected) => {
    expect(sentence({ ...small, ...change })).toMatch(expected);
  });

  it.each([
    { layer_types: ['full_attention', 'sliding_attention'], use_sliding_window: false, sliding_window: 8 },
    { layer_types: ['full_attention', 'sliding_attention'], use_sliding_window: true, sliding_window: 32_768 },
    { layer_types: ['full_attention', 'full_attention'], use_sliding_window: true, sliding_window: 8 },
    { model_type: 'llama', layer_types: ['full_attention', 'sliding_attention'], sliding_window: 8 },
    { hidden_act: 'swish' },
  ])('%j is accepted', change => {
    expect(parse({ ...small, ...change }).layers).toBe(2);
  });
});
