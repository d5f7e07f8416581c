// Lets onnxruntime map a model's tensors directly from the safetensors files. A base of any size therefore needs memory
// only for the pages of its files that are in use, and is never converted as a whole. When the model is opened, all
// weights are checked once for NaN and infinity. Without this check, a damaged weight would cause an error only later,
// and the error would not name the file.
import { realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { UserError } from '../../common/user-error';
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import { elements } from './decoder-config';
import type { FileTensor } from './decoder-parameters';
import { openDecoder } from '../weights/model-folder';
import type { Weights as TensorFiles } from '../weights/safetensors';
import type { MappedTensors } from './networks';

const mappable = ['F32', 'F16', 'BF16'] as const;
/** Maximum number of elements that are checked at a time. */
const checkedAtOnce = 2 ** 22;

export interface MappedDecoder extends MappedTensors {
  config: DecoderConfig;
  parameters: number;
  /** The model folder; `folder` may be one of its ancestors. */
  modelFolder: string;
}

/**
 * Opens a model folder without loading its weights into memory.
 * @throws UserError that names the file, the tensor and the remedy, if a tensor is missing, has a wrong shape or a type
 * that cannot be mapped, or contains a non-finite number
 */
export async function mapDecoder(folder: string): Promise<MappedDecoder> {
  const { config, specs, files } = await openDecoder(folder);
  try {
    const mapped = await mapTensors(folder, specs, files);
    const parameters = specs.reduce((sum, { dims }) => sum + elements(dims), 0);
    return { config, ...mapped, modelFolder: folder, parameters };
  } finally {
    await files.close();
  }
}

/**
 * Returns the locations of tensors, whose values are checked.
 * @throws UserError that names the file, the tensor and the remedy
 */
export async function mapTensors(
  folder: string,
  specs: readonly ParameterSpec[],
  files: Pick<TensorFiles, 'info' | 'fileName' | 'readFloats'>,
): Promise<MappedTensors> {
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
          `${folder}: the tensor ${name} is damaged (element ${from + bad} is ${part[bad]}): download the weights again`,
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
  return { folder: inside, tensors };
}

/** Returns the index of the first NaN or infinity (all exponent bits set), or −1. */
function firstUnfit(floats: Float32Array): number {
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  for (let i = 0; i < bits.length; i++) if ((bits[i] & 0x7f800000) === 0x7f800000) return i;
  return -1;
}

/**
 * Returns two folders. `inside` is the nearest folder that contains both the model folder and the targets of its
 * symbolic links, which are common in the hub's cache. onnxruntime needs such a folder, because it maps only files
 * inside a given folder. `real` is the model folder with symbolic links resolved.
 */
async function commonFolder(folder: string, files: readonly string[]): Promise<{ inside: string; real: string }> {
  const real = await realpath(folder);
  const paths = await Promise.all(files.map(file => realpath(file)));
  for (let inside = real; ; inside = dirname(inside)) {
    if (paths.every(path => !relative(inside, path).startsWith('..') && !isAbsolute(relative(inside, path))))
      return { inside, real };
    if (dirname(inside) === inside) return { inside: real, real }; // on different drives; onnxruntime reports the error
  }
}
