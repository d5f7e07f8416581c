// The names of the tensors of a vision-language model in files and in transformers. Those in files depend on the family
// and on the version of transformers that wrote the file.
import { headTensor } from '../decoder/decoder-config';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { Weights as TensorFiles } from '../weights/safetensors';

/** Returns the names under which a tensor may be stored, in the order in which they are looked up. */
export function storedNames(name: string): string[] {
  if (name === headTensor) return [name];
  if (name.startsWith('visual.')) return [name, `model.${name}`];
  return ['model.', 'model.language_model.', 'model.text_model.'].map(prefix => name.replace(/^model\./, prefix));
}

/** Returns the name of a tensor or module in transformers 5, in the complete model. */
export function transformersName({ moduleName }: Pick<DecoderConfig, 'moduleName'>, name: string): string {
  if (name.startsWith('visual.')) return `model.${name}`;
  return moduleName && isOfDecoder(name) ? name.replace(/^model(?=\.)/, moduleName) : name;
}

/** Whether a tensor or module belongs to the decoder, not to the encoder or its projection. */
export const isOfDecoder = (name: string): boolean => !/^(visual|model\.vision_model|model\.connector)\./.test(name);

/** Returns the name under which a tensor is stored; `name` itself if the files do not contain it. */
export const storedName = (name: string, files: Pick<TensorFiles, 'info'>): string =>
  storedNames(name).find(candidate => files.info(candidate)) ?? name;

/** Makes the tensors readable under the names that this trainer uses. */
export function addStoredNames(names: readonly string[], files: Pick<TensorFiles, 'info' | 'addAlias'>): void {
  for (const name of names) {
    const stored = storedName(name, files);
    if (stored !== name) files.addAlias(name, stored);
  }
}
