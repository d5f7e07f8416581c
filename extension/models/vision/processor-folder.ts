// The options of the image processor in the folder of a vision-language model.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { optionalJson, readJson } from '../weights/folder-json';
import type { EncoderConfig } from './encoder-config';
import { parseProcessorOptions } from './processor-options';
import type { ProcessorOptions } from './processor-options';

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
