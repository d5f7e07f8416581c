// Opens what encodes the pictures of a model: the policy's encoder, which may be trained, and the frozen encoder of the
// reference policy and the critic. If the policy's encoder is frozen, both are one, so a picture is encoded once.
import type { LoadOptions } from '../../engine/load-options';
import type { SessionOptions } from '../../engine/session/session';
import type { LoraOptions } from '../adapters/lora';
import { adaptedEncoder, trainedEncoder } from '../decoder/networks';
import { readsPictures } from '../weights/model-folder';
import type { ParameterBank } from '../weights/parameter-bank';
import { mapEncoder } from './mapped-encoder';
import { PictureEncoder } from './picture-encoder';
import { PictureFeatures } from './picture-features';
import { withPixels } from './processor-options';
import { readProcessorOptions } from './processor-folder';

/** The pictures of a model; both are undefined if the model reads text only, or if none are shown. */
export interface OpenPictures {
  /** Pictures as the policy sees them. */
  pictures?: PictureFeatures | undefined;
  /** Pictures as the reference policy and the critic see them. */
  frozenPictures?: PictureFeatures | undefined;
}

/** How the policy's encoder is trained. */
export interface EncoderTraining {
  /** Contains the encoder's trained parameters. */
  bank: ParameterBank;
  /** Options of the adapters; undefined if all weights are trained. */
  lora?: LoraOptions;
  checkpointed: boolean;
}

/** Opens the encoder of a model folder; without `training`, it is frozen. Throws UserErrors. */
export async function openPictures(
  { modelFolder, encoderFolder = modelFolder, pictures: shown }: LoadOptions,
  session: SessionOptions,
  training?: EncoderTraining,
): Promise<OpenPictures> {
  if (!shown || !readsPictures(modelFolder)) return {};
  const frozen = await mapEncoder(training ? encoderFolder : modelFolder);
  const { config } = frozen;
  const processor = withPixels(readProcessorOptions(modelFolder, config.encoder), shown);
  const features = (encoder: PictureEncoder, bank?: ParameterBank): PictureFeatures =>
    new PictureFeatures(shown.folder, config, processor, encoder, bank);
  const frozenPictures = features(new PictureEncoder(frozen.network, undefined, session));
  if (!training) return { pictures: frozenPictures, frozenPictures };
  const { bank, lora, checkpointed } = training;
  const network = lora ? adaptedEncoder(frozen.network, config.decoder, lora) : trainedEncoder(config.encoder);
  return { pictures: features(new PictureEncoder(network, bank, { ...session, checkpointed }), bank), frozenPictures };
}
