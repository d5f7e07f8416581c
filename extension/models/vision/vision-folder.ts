// Reads the folder of a vision-language model in Hugging Face format: config.json, the weights of decoder and encoder,
// and the options of the image processor. Within this trainer, the decoder's tensors have the names of a decoder
// without encoder (model.layers.0.…). A stored name may have another prefix, which depends on the family and on the
// version of transformers that wrote the file.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { headTensor, parameterSpecs } from '../decoder/decoder-config';
import type { ParameterSpec } from '../decoder/decoder-config';
import { checkShapes, optionalJson, readJson, readWeights, tieWeights } from '../weights/model-folder';
import { Weights as TensorFiles } from '../weights/safetensors';
import type { Weights } from '../weights/weights';
import { encoderSpecs } from './encoder-config';
import type { EncoderConfig } from './encoder-config';
import { parseProcessorOptions } from './processor-options';
import type { ProcessorOptions } from './processor-options';

import { parseVisionConfig } from './vision-config';
import type { VisionConfig } from './vision-config';

/** Returns the names under which a tensor may be stored, in the order in which they are looked up. */
const storedNames = (name: string): string[] => {
  if (name === headTensor) return [name];
  if (name.startsWith('visual.')) return [name, `model.${name}`];
  return ['model.', 'model.language_model.', 'model.text_model.'].map(prefix => name.replace(/^model\./, prefix));
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
 * Reads the options of the image processor, and checks that the encoder can read its pictures. If both files have them,
 * processor_config.json has precedence, as in transformers 5.
 * @throws UserError that names the file and the option
 */
export function readProcessorOptions(folder: string, encoder: EncoderConfig): ProcessorOptions {
  const nested = optionalJson(folder, 'processor_config.json')?.image_processor;
  const name = nested === undefined ? 'preprocessor_config.json' : 'processor_config.json';
  if (!existsSync(join(folder, name)))
    throw new UserError(`${folder}: ${name} is missing: download the complete folder of the vision-language model`);
  const place = nested === undefined ? join(folder, name) : `${join(folder, name)}: image_processor`;
  const options = parseProcessorOptions(nested ?? readJson(folder, name), place);
  const other = differences(options, encoder).find(({ option, config }) => option !== config);
  if (other)
    throw new UserError(
      `${place}: ${other.key} is ${other.option}, but the encoder in config.json requires ${other.config}: use both files of the same model`,
    );
  return options;
}

interface Difference {
  key: string;
  option: number | string;
  config: number | string;
}

/** Returns the properties of pictures in which image processor and encoder must agree. */
function differences(options: ProcessorOptions, encoder: EncoderConfig): Difference[] {
  const kinds = { siglip: 'tiles', qwen2_5_vl: 'patches', qwen3_vl: 'patches' };
  if (options.kind === 'tiles' && encoder.kind === 'siglip')
    return [{ key: 'max_image_size.longest_edge', option: options.tileSize, config: encoder.imageSize }];
  if (options.kind === 'tiles' || encoder.kind === 'siglip')
    return [{ key: 'image_processor_type', option: options.kind, config: kinds[encoder.kind] }];
  return [
    { key: 'patch_size', option: options.patchSize, config: encoder.patchSize },
    { key: 'temporal_patch_size', option: options.temporalPatchSize, config: encoder.temporalPatchSize },
    { key: 'merge_size', option: options.mergeSize, config: encoder.mergeSize },
  ];
}
