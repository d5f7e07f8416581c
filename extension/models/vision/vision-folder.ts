// Reads the folder of a vision-language model in Hugging Face format: config.json, the weights of decoder and encoder,
// and the options of the image processor. Within this trainer, the decoder's tensors have the names of a decoder
// without encoder (model.layers.0.…), and the encoder's begin with `visual.`; a stored name may have another prefix,
// which depends on the version of transformers that wrote the file.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { headTensor, parameterSpecs } from '../decoder/decoder-config';
import type { ParameterSpec } from '../decoder/decoder-config';
import { checkShapes, optionalJson, readJson, readWeights, tieWeights } from '../weights/model-folder';
import { Weights as TensorFiles } from '../weights/safetensors';
import type { Weights } from '../weights/weights';
import { parseProcessorOptions } from './processor-options';
import type { ProcessorOptions } from './processor-options';
import { encoderSpecs } from './qwen-encoder-config';
import { parseVisionConfig } from './vision-config';
import type { VisionConfig } from './vision-config';

/** Returns the names under which a tensor may be stored, in the order in which they are looked up. */
const storedNames = (name: string): string[] => {
  if (name === headTensor) return [name];
  if (name.startsWith('visual.')) return [name, `model.${name}`];
  return [name, name.replace(/^model\./, 'model.language_model.')];
};

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
  const files = await TensorFiles.open(folder);
  try {
    const head = { name: headTensor, dims: [] };
    for (const { name } of [...parameterSpecs(declared.decoder), head, ...encoderParameters]) {
      const stored = storedNames(name).find(candidate => files.info(candidate));
      if (stored !== undefined && stored !== name) files.addAlias(name, stored);
    }
    const config = { ...declared, decoder: await tieWeights(declared.decoder, files, folder) };
    const decoderParameters = parameterSpecs(config.decoder);
    checkShapes([...decoderParameters, ...encoderParameters], files, folder);
    return { config, files, decoderParameters, encoderParameters };
  } catch (error) {
    await files.close();
    throw error;
  }
}

/**
 * Reads the options of the image processor. If both files have them, processor_config.json has precedence, as in
 * transformers 5.
 * @throws UserError that names the file and the option
 */
export function readProcessorOptions(folder: string): ProcessorOptions {
  const nested = optionalJson(folder, 'processor_config.json')?.image_processor;
  if (nested !== undefined)
    return parseProcessorOptions(nested, `${join(folder, 'processor_config.json')}: image_processor`);
  if (!existsSync(join(folder, 'preprocessor_config.json')))
    throw new UserError(
      `${folder}: preprocessor_config.json is missing: download the complete folder of the vision-language model`,
    );
  return parseProcessorOptions(readJson(folder, 'preprocessor_config.json'), join(folder, 'preprocessor_config.json'));
}
