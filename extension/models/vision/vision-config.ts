// Parses config.json of a vision-language model: its decoder, its encoder and the token that stands for image features.
// A feature that is not supported is rejected with an error that names it. A missing key has the default of the
// family's configuration classes in transformers 5.
import { z } from 'zod';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { parseDecoderConfig } from '../decoder/decoder-config';
import type { DecoderConfig } from '../decoder/decoder-config';
import { parseQwenEncoder } from './qwen-encoder-config';
import type { EncoderConfig } from './qwen-encoder-config';

export const visionFamilies = ['qwen2_5_vl'] as const;
export type VisionFamily = (typeof visionFamilies)[number];

export interface VisionConfig {
  family: VisionFamily;
  decoder: DecoderConfig;
  encoder: EncoderConfig;
  /** Id of the token whose embedding is replaced by an image feature. */
  imageToken: number;
}

/** Defaults of Qwen2_5_VLTextConfig that differ from those of Qwen2's configuration class. */
const qwenTextDefaults = {
  vocab_size: 152_064,
  hidden_size: 8192,
  intermediate_size: 29_568,
  num_hidden_layers: 80,
  num_attention_heads: 64,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-5,
  max_window_layers: 80,
  rope_theta: 1_000_000,
};

const topSchema = z.looseObject({
  image_token_id: z.number().int().nonnegative().default(151_655),
  tie_word_embeddings: z.boolean().default(false),
});

/** Whether config.json declares a vision-language model that `parseVisionConfig` accepts. */
export function isVisionConfig(json: unknown): boolean {
  return isRecord(json) && visionFamilies.some(family => family === json.model_type);
}

/**
 * Parses the content of a config.json. `file` is used only in errors.
 * @throws UserError for invalid or unsupported values
 */
export function parseVisionConfig(json: unknown, file: string): VisionConfig {
  const type = isRecord(json) ? json.model_type : undefined;
  const family = visionFamilies.find(name => name === type);
  if (!isRecord(json) || !family)
    throw new UserError(
      `${file}: model_type is ${JSON.stringify(type)}, which is not supported: use a vision-language model of type ${visionFamilies.join(', ')}`,
    );
  const top = topSchema.safeParse(json);
  if (!top.success) {
    const [issue] = top.error.issues;
    throw new UserError(`${file}: ${issue.path.join('.')}: ${issue.message}: download config.json again`);
  }
  if (!isRecord(json.vision_config))
    throw new UserError(`${file}: vision_config is missing: use the config.json of a complete vision-language model`);
  // Older configurations have the decoder's keys next to vision_config.
  const text = isRecord(json.text_config) ? json.text_config : json;
  const decoder = qwenDecoder(text, top.data.tie_word_embeddings || text.tie_word_embeddings === true, file);
  const encoder = parseQwenEncoder(json.vision_config, `${file}: vision_config`);
  if (encoder.outputSize !== decoder.hiddenSize)
    throw new UserError(
      `${file}: vision_config.out_hidden_size is ${encoder.outputSize}, but the decoder's hidden_size is ${decoder.hiddenSize}: use config.json and weights of the same model`,
    );
  return { family, decoder, encoder, imageToken: top.data.image_token_id };
}

/** Parses a decoder of Qwen2.5-VL: Qwen2's, with positions of three axes (M-RoPE, Qwen2-VL, arXiv 2409.12191, §2.1). */
function qwenDecoder(text: Record<string, unknown>, tied: boolean, file: string): DecoderConfig {
  const place = `${file}: text_config`;
  const key = isRecord(text.rope_scaling) ? 'rope_scaling' : 'rope_parameters';
  const said = isRecord(text[key]) ? text[key] : {};
  const type = said.rope_type ?? said.type ?? 'default';
  const config = parseDecoderConfig(
    {
      ...qwenTextDefaults,
      ...text,
      [key]: { ...said, type: undefined, rope_type: type === 'mrope' ? 'default' : type },
      model_type: 'qwen2',
      tie_word_embeddings: tied,
    },
    place,
  );
  const sections = z
    .array(z.number().int().nonnegative())
    .length(3)
    .safeParse(said.mrope_section ?? [16, 24, 24]);
  const half = config.headSize / 2;
  if (!sections.success || sections.data.reduce((sum, n) => sum + n, 0) !== half)
    throw new UserError(
      `${place}: ${key}.mrope_section is ${JSON.stringify(said.mrope_section)}, which is not supported: use a model with three sections that sum to half the head size (${half})`,
    );
  return { ...config, rotaryAxes: sections.data.flatMap((count, axis) => Array<number>(count).fill(axis)) };
}
