// The benchmarks with pictures, at the shapes of ragen-tiny-vision and SmolVLM-256M. Pictures are new in every run, so
// neither side has their features.
import { join } from 'node:path';
import type { Definition } from './definitions';
import { encoderOperations } from './necessary-operations';
import { cacheFolder } from './random-model';
import { smolEncoder, visionFolder } from './vision-models';
import type { VisionModelName } from './vision-models';

/** Unit: pictures, read from PNG files and encoded to image features. */
export interface EncodingSettings {
  model: VisionModelName;
  model_folder: string;
  /** Folder of the pictures and of what both sides read about them (pictured-workload.ts). */
  folder: string;
  /** Number of pictures of a run, or of a chat. */
  pictures: number;
  /** Number of times that a run does its work. */
  repeats: number;
}

/**
 * The first token of a chat: reads the pictures, renders and encodes the prompt, encodes the pictures, and passes the
 * prompt through the decoder. Unit: chats.
 */
export type FirstTokenSettings = EncodingSettings;

/**
 * Iterations as in IterationSettings, in which each prompt shows a picture, and each later turn of an episode a picture of
 * its own. All weights of the decoder are trained; the encoder is frozen.
 */
export interface PicturedIterationSettings extends EncodingSettings {
  groups: number;
  group_size: number;
  turns: number;
  sampled: number;
  /** Episodes per mini-batch. */
  mini_batch: number;
  /**
   * How the peer encodes pictures: each one once per iteration, or in every call of the model that shows it, as trainers on
   * transformers do that pass `pixel_values` to `generate` and to each pass.
   */
  peer_features: 'once' | 'every pass';
}

function definitionsOf(model: VisionModelName): Definition[] {
  const large = model === 'smol';
  const shape = large ? "SmolVLM-256M's shape" : 'ragen-tiny-vision';
  const shared = (kind: string) => {
    const folder = join(cacheFolder, `pictures-${model}-${kind}`);
    return { model, model_folder: visionFolder(model), folder };
  };
  const described = { better: 'higher', large, operations: null } as const;
  const [pictures, repeats] = large ? [2, 1] : [8, 32];
  const episodes = large
    ? { groups: 2, group_size: 4, turns: 1, sampled: 24, mini_batch: 8 }
    : { groups: 4, group_size: 8, turns: 2, sampled: 24, mini_batch: 32 };
  return [
    {
      ...described,
      name: `pictures encoded, ${shape}`,
      kind: 'encoding',
      unit: 'pictures/s',
      target: 1.5,
      operations: large ? encoderOperations(smolEncoder) : null,
      settings: { ...shared('encoding'), pictures, repeats },
    },
    {
      ...described,
      name: `first token of a chat with pictures, ${shape}`,
      kind: 'first-token',
      unit: 'chats/s',
      target: 1.5,
      settings: { ...shared('first-token'), pictures: large ? 1 : 2, repeats: 2 * repeats },
    },
    ...(['every pass', 'once'] as const).map((peer_features): Definition => ({
      ...described,
      name: `StarPO iteration with pictures, the peer encodes ${peer_features === 'once' ? 'once' : 'in every pass'}, ${shape}`,
      kind: 'pictured-iteration',
      unit: 'iterations/s',
      target: 2,
      settings: { ...shared('iteration'), ...episodes, pictures: 1, repeats: 1, peer_features },
    })),
  ];
}

export const picturedDefinitions: readonly Definition[] = (['tiny', 'smol'] as const).flatMap(definitionsOf);
