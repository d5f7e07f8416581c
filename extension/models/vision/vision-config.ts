// Parses config.json of a vision-language model: its decoder, its encoder and the token that stands for image features.
// A feature that is not supported is rejected with an error that names it. A missing key has the default of the
// family's configuration classes in transformers 5.
import { z } from 'zod';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { parseDecoderConfig } from '../decoder/decoder-config';
import type { DecoderConfig } from '../decoder/decoder-config';
import { deepFeatures } from './encoder-config';
import type { EncoderConfig } from './encoder-config';
import { qwenTextConfig } from './qwen-text-config';
import { parseQwenEncoder } from './qwen-encoder-config';
import { parseQwen3Encoder } from './qwen3-encoder-config';
import { parseSiglip } from './siglip-config';

const visionFamilies = ['qwen2_5_vl', 'qwen3_vl', 'idefics3', 'smolvlm'] as const;
export type VisionFamily = (typeof visionFamilies)[number];

/** Whether the content of a config.json is that of a supported vision-language model. */
export const isVisionConfig = (json: unknown): boolean =>
  isRecord(json) && visionFamilies.some(name => name === json.model_type);

export interface VisionConfig {
  family: VisionFamily;
  decoder: DecoderConfig;
  encoder: EncoderConfig;
  /** Id of the token whose embedding is replaced by an image feature. */
  imageToken: number;
}

const topSchema = z.looseObject({
  image_token_id: z.number().int().nonnegative().nullish(),
  tie_word_embeddings: z.boolean().nullish(),
  scale_factor: z.number().int().positive().nullish(),
});
type Top = z.infer<typeof topSchema>;

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
  const isQwen = family === 'qwen2_5_vl' || family === 'qwen3_vl';
  const parsed = isQwen ? qwenModel(family, json, top.data, file) : ideficsModel(json, top.data, file);
  const { encoder, decoder, imageToken } = parsed;
  if (encoder.outputSize !== decoder.hiddenSize)
    throw new UserError(
      `${file}: vision_config.out_hidden_size is ${encoder.outputSize}, but the decoder's hidden_size is ${decoder.hiddenSize}: use config.json and weights of the same model`,
    );
  if (imageToken >= decoder.vocabSize)
    throw new UserError(
      `${file}: image_token_id is ${imageToken}, but the vocabulary has ${decoder.vocabSize} tokens: use config.json and weights of the same model`,
    );
  return { family, ...parsed };
}

type Model = Omit<VisionConfig, 'family'>;

function qwenModel(family: 'qwen2_5_vl' | 'qwen3_vl', json: Record<string, unknown>, top: Top, file: string): Model {
  // Older configurations have the decoder's keys next to vision_config, and tie_word_embeddings in either place.
  const text = isRecord(json.text_config) ? json.text_config : json;
  const tied = top.tie_word_embeddings === true || text.tie_word_embeddings === true;
  const decoder = qwenTextConfig(family, text, tied, `${file}: text_config`);
  const place = `${file}: vision_config`;
  const encoder =
    family === 'qwen3_vl'
      ? parseQwen3Encoder(json.vision_config, place, decoder.layers)
      : parseQwenEncoder(json.vision_config, place);
  const imageToken = top.image_token_id ?? 151_655;
  const named = { ...decoder, deepFeatures: deepFeatures(encoder), moduleName: 'model.language_model' };
  return { decoder: named, encoder, imageToken };
}

function ideficsModel(json: Record<string, unknown>, top: Top, file: string): Model {
  const text = isRecord(json.text_config) ? json.text_config : { rms_norm_eps: 1e-5 };
  const decoder = parseDecoderConfig(
    { model_type: 'llama', ...text, tie_word_embeddings: top.tie_word_embeddings ?? false },
    `${file}: text_config`,
  );
  const scale = top.scale_factor ?? 2;
  return {
    decoder: { ...decoder, moduleName: 'model.text_model' },
    encoder: parseSiglip(json.vision_config, `${file}: vision_config`, scale, decoder.hiddenSize),
    imageToken: top.image_token_id ?? 128_257,
  };
}
