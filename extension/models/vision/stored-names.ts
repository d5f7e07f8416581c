// The names under which the tensors of a vision-language model may be stored. They depend on the family and on the
// version of transformers that wrote the file.
import { headTensor } from '../decoder/decoder-config';
import type { Weights as TensorFiles } from '../weights/safetensors';

/** Returns the names under which a tensor may be stored, in the order in which they are looked up. */
function storedNames(name: string): string[] {
  if (name === headTensor) return [name];
  if (name.startsWith('visual.')) return [name, `model.${name}`];
  return ['model.', 'model.language_model.', 'model.text_model.'].map(prefix => name.replace(/^model\./, prefix));
}

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
