// A model's tensors where they lie: onnxruntime maps them from the safetensors files, so that a base of any size costs the memory of its
// file's pages alone and is never converted whole. Every number is looked at once, when the model is opened, since a damaged weight
// shows late and far away.
import { realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
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
    const names = specs.map(({ name }) => files.fileName(name)!);
    const { inside, real } = await commonFolder(folder, [...new Set(names)]);
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
        file: relative(inside, join(real, basename(files.fileName(name)!))).replaceAll(sep, '/'),
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
 * The nearest folder that holds the model's and whatever its files are links to, as in the hub's cache: onnxruntime maps no file that
 * lies outside the folder it is given. And the model's folder, free of links, for the files' paths from there.
 */
async function commonFolder(folder: string, files: readonly string[]): Promise<{ inside: string; real: string }> {
  const real = await realpath(folder);
  const places = await Promise.all(files.map(file => realpath(file)));
  for (let inside = real; ; inside = dirname(inside)) {
    if (places.every(place => !relative(inside, place).startsWith('..') && !isAbsolute(relative(inside, place))))
      return { inside, real };
    if (dirname(inside) === inside) return { inside: real, real }; // on another drive: onnxruntime says what is wrong
  }
}
