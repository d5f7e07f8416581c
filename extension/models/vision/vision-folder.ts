// Reads the folder of a vision-language model in Hugging Face format: config.json, and the weights of decoder and
// encoder. Within this trainer, the decoder's tensors have the names of a decoder without encoder (model.layers.0.…);
// stored-names.ts has the names in files.
import { join } from 'node:path';
import type { DecoderConfig, ParameterSpec } from '../decoder/decoder-config';
import { checkShapes, openDecoder, readWeights } from '../weights/model-folder';
import { readJson } from '../weights/folder-json';
import type { Weights as TensorFiles } from '../weights/safetensors';
import type { Weights } from '../weights/weights';
import { encoderSpecs } from './encoder-config';
import { addStoredNames } from './stored-names';
import { parseVisionConfig } from './vision-config';
import type { VisionConfig } from './vision-config';

export interface VisionModel {
  config: VisionConfig;
  decoder: Weights;
  encoder: Weights;
}

/** Reads configuration and weights. Throws a UserError that names the file, the tensor and the remedy. */
export async function readVisionModel(folder: string): Promise<VisionModel> {
  const { config, files, decoderParameters, encoderParameters } = await openVisionModel(folder);
  try {
    return {
      config,
      decoder: await readWeights(decoderParameters, files, folder),
      encoder: await readWeights(encoderParameters, files, folder),
    };
  } finally {
    await files.close();
  }
}

/**
 * Reads the decoder's configuration, and the weights of decoder and encoder together, the decoder's first. Throws
 * UserErrors like `readVisionModel`.
 */
export async function readTrainedModel(folder: string): Promise<{ config: DecoderConfig; weights: Weights }> {
  const { config, files, decoderParameters, encoderParameters } = await openVisionModel(folder);
  try {
    const weights = await readWeights([...decoderParameters, ...encoderParameters], files, folder);
    return { config: config.decoder, weights };
  } finally {
    await files.close();
  }
}

/**
 * Reads the configuration, opens the weights, and checks that the weights match the configuration. The caller must
 * close the weights. Throws UserErrors.
 */
export async function openVisionModel(folder: string): Promise<{
  config: VisionConfig;
  files: TensorFiles;
  decoderParameters: ParameterSpec[];
  encoderParameters: ParameterSpec[];
}> {
  const declared = parseVisionConfig(readJson(folder, 'config.json'), join(folder, 'config.json'));
  const encoderParameters = encoderSpecs(declared.encoder);
  const { config: decoder, specs: decoderParameters, files } = await openDecoder(folder);
  try {
    addStoredNames(
      encoderParameters.map(({ name }) => name),
      files,
    );
    checkShapes(encoderParameters, files, folder);
    return { config: { ...declared, decoder }, files, decoderParameters, encoderParameters };
  } catch (error) {
    await files.close();
    throw error;
  }
}
