// The vision encoders of all families.
import type { ParameterSpec } from '../decoder/decoder-config';
import type { QwenEncoderConfig } from './qwen-encoder-config';
import { qwenEncoderSpecs } from './qwen-encoder-config';
import type { Qwen3EncoderConfig } from './qwen3-encoder-config';
import { qwen3EncoderSpecs } from './qwen3-encoder-config';
import type { SiglipConfig } from './siglip-config';
import { siglipSpecs } from './siglip-config';

export type EncoderConfig = QwenEncoderConfig | Qwen3EncoderConfig | SiglipConfig;

/** Number of features that are added after the decoder's first layers, in addition to the one that replaces an embedding. */
export const deepFeatures = (c: EncoderConfig): number => (c.kind === 'qwen3_vl' ? c.deepLayers.length : 0);

/** Width of an image feature. */
export const featureWidth = (c: EncoderConfig): number => c.outputSize * (1 + deepFeatures(c));

/** Returns the specs of the encoder's parameters, including what projects features, in a fixed order. */
export function encoderSpecs(c: EncoderConfig): ParameterSpec[] {
  switch (c.kind) {
    case 'siglip':
      return siglipSpecs(c);
    case 'qwen2_5_vl':
      return qwenEncoderSpecs(c);
    case 'qwen3_vl':
      return qwen3EncoderSpecs(c);
  }
}
