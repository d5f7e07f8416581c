// A model's tensors where they lie: onnxruntime maps them from the safetensors files, so that a base of any size costs the memory of its
// file's pages alone and is never converted whole. Every number is looked at once, when the model is opened, since a damaged weight
// shows late and far away.
import { realpath } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { UserError } from '../../protocol/user-error';
import type { DecoderConfig } from './decoder-config';
import { elements } from './decoder-config';
import type { FileTensor } from './decoder-parameters';
import { openDecoder } from './model-folder';
import type { MappedTensors } from './networks';

const mappable = ['F32', 'F16', 'BF16'] as const;
/** Elements looked at in one go. */
const checkedAtOnce = 2 ** 22;

export interface MappedDecoder extends MappedTensors {
  config: DecoderConfig;
  /** Number of parameters. */
  parameters: number;
  /** The model folder; `folder` may be one above it. */
  modelFolder: string;
}

/**
 * Opens a model folder without reading its weights into memory.
 * @throws UserError naming file, tensor and remedy: a missing or misshapen tensor, a type that cannot be mapped, a number that is none
 */
export async function mapDecoder(folder: string): Promise<MappedDecoder> {
  const { config, specs, files } = await openDecoder(folder);
  try {
    const tensors = new Map<string, FileTensor>();
    const inside = await commonFolder([...new Set(specs.map(({ name }) => files.fileName(name)!))]);
    for (const { name, dims } of specs) {
      const { dtype: stored, begin, end } = files.info(name)!;
      const dtype = mappable.find(known => known === stored);
      if (!dtype)
        throw new UserError(
          `${folder}: the tensor ${name} is stored as ${stored}, which cannot be used as weights: convert it to F32, F16 or BF16`,
        );
      for (let from = 0; from < elements(dims); from += checkedAtOnce) {
        const part = await files.readFloats(name, { from, to: Math.min(from + checkedAtOnce, elements(dims)) });
        const bad = firstUnfit(part);
        if (bad >= 0)
          throw new UserError(
            `${folder}: the tensor ${name} holds ${part[bad]} at element ${from + bad}: get the weights anew, they are damaged`,
          );
      }
      tensors.set(name, {
        kind: 'file',
        dtype,
        file: relative(inside, files.fileName(name)!).replaceAll(sep, '/'),
        offset: begin,
        bytes: end - begin,
      });
    }
    const parameters = specs.reduce((sum, { dims }) => sum + elements(dims), 0);
    return { config, folder: inside, modelFolder: folder, tensors, parameters };
  } finally {
    await files.close();
  }
}

/** Index of the first NaN or infinity, −1 where there is none: their bits have all exponent bits set. */
function firstUnfit(floats: Float32Array): number {
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  for (let i = 0; i < bits.length; i++) if ((bits[i] & 0x7f800000) === 0x7f800000) return i;
  return -1;
}

/**
 * The nearest folder that holds the files and what they are links to, as in the hub's cache: onnxruntime maps no file outside the
 * folder that it is given.
 */
async function commonFolder(files: readonly string[]): Promise<string> {
  const places = (await Promise.all(files.map(file => realpath(file)))).concat(files.map(file => resolve(file)));
  let folder = dirname(resolve(files[0]));
  while (!places.every(place => place.startsWith(folder.endsWith(sep) ? folder : folder + sep))) {
    if (dirname(folder) === folder) return dirname(resolve(files[0])); // on another drive: onnxruntime says what is wrong
    folder = dirname(folder);
  }
  return folder;
}
