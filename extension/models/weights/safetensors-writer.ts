// Writes safetensors files. A tensor is written as a whole, or streamed in blocks; streaming needs memory for only one
// block. Streamed tensors are written into one file, or into shards with an index. Files are named as the transformers
// library names them. Files contain the metadata `format: pt`, because other tools require it.
import { join } from 'node:path';
import { bytesOf, fileSystem, replaceFile } from '../../node/files';
import type { FileSystem } from '../../node/files';
import { toBrain, toHalf } from '../../engine/half-precision';
import { dtypeBytes } from './safetensors-header';

export const singleName = 'model.safetensors';
export const indexName = 'model.safetensors.index.json';

/** Element types for written weights. */
export type StoredType = 'F32' | 'BF16' | 'F16';

/** A tensor to write; `data` is row-major. */
export interface FloatTensor {
  name: string;
  shape: readonly number[];
  data: Float32Array;
}

/**
 * A tensor to stream. `blocks` is called once, when the tensor is written, and yields row-major values in blocks of any
 * length.
 */
export interface StreamedTensor {
  name: string;
  shape: readonly number[];
  blocks: () => AsyncIterable<Float32Array>;
}

type Metadata = Readonly<Record<string, string>>;
const usualMetadata: Metadata = { format: 'pt' };

/** Writes tensors as F32, in the given order, replacing the file atomically. */
export async function writeSafetensors(
  file: string,
  tensors: readonly FloatTensor[],
  metadata?: Metadata,
  fs: FileSystem = fileSystem,
): Promise<void> {
  await replaceFile(file, safetensorsParts(tensors, metadata), fs);
}

/** Returns the contents of a safetensors file of F32 tensors, as parts in file order. */
export function safetensorsParts(tensors: readonly FloatTensor[], metadata: Metadata = usualMetadata): Uint8Array[] {
  for (const { name, shape, data } of tensors) checkLength(name, shape, data.length);
  return [headerBytes(tensors, 'F32', metadata), ...tensors.map(({ data }) => bytesOf(data))];
}

/** Writes streamed tensors, rounded to `dtype`, in the given order, replacing the file atomically. */
export async function streamSafetensors(
  file: string,
  tensors: readonly StreamedTensor[],
  dtype: StoredType,
  fs: FileSystem = fileSystem,
): Promise<void> {
  await replaceFile(file, streamedParts(tensors, dtype), fs);
}

/**
 * Streams a model's weights into `folder`. Writes `model.safetensors` if the data has at most `maxBytes`; otherwise
 * writes shards of at most `maxBytes` and their index. A tensor larger than `maxBytes` is the only tensor of its shard.
 * Returns the names of the files in the order of writing.
 */
export async function streamModel(
  folder: string,
  tensors: readonly StreamedTensor[],
  dtype: StoredType,
  maxBytes: number,
  fs: FileSystem = fileSystem,
): Promise<string[]> {
  const shards = shardsOf(tensors, dtype, maxBytes);
  if (shards.length <= 1) {
    await streamSafetensors(join(folder, singleName), tensors, dtype, fs);
    return [singleName];
  }
  const number = (n: number): string => String(n).padStart(5, '0');
  const names = shards.map((_, i) => `model-${number(i + 1)}-of-${number(shards.length)}.safetensors`);
  for (const [i, shard] of shards.entries()) await streamSafetensors(join(folder, names[i]), shard, dtype, fs);
  const total = tensors.reduce((sum, tensor) => sum + sizeOf(tensor, dtype), 0);
  const map = Object.fromEntries(shards.flatMap((shard, i) => shard.map(({ name }) => [name, names[i]])));
  const index = { metadata: { total_size: total }, weight_map: map };
  await replaceFile(join(folder, indexName), `${JSON.stringify(index, null, 2)}\n`, fs);
  return [...names, indexName];
}

type Described = Pick<FloatTensor, 'name' | 'shape'>;

const elementsOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

const sizeOf = ({ shape }: Described, dtype: StoredType): number => elementsOf(shape) * dtypeBytes[dtype];

function shardsOf<T extends Described>(tensors: readonly T[], dtype: StoredType, maxBytes: number): T[][] {
  const shards: T[][] = [];
  let room = 0;
  for (const tensor of tensors) {
    const size = sizeOf(tensor, dtype);
    if (shards.length === 0 || size > room) {
      shards.push([]);
      room = maxBytes;
    }
    shards.at(-1)!.push(tensor);
    room -= size;
  }
  return shards;
}

async function* streamedParts(tensors: readonly StreamedTensor[], dtype: StoredType): AsyncGenerator<Uint8Array> {
  yield headerBytes(tensors, dtype, usualMetadata);
  for (const { name, shape, blocks } of tensors) {
    let count = 0;
    for await (const block of blocks()) {
      count += block.length;
      yield stored(block, dtype);
    }
    checkLength(name, shape, count);
  }
}

/** Returns floats as bytes in the type `dtype`. */
function stored(floats: Float32Array, dtype: StoredType): Uint8Array {
  if (dtype === 'F32') return bytesOf(floats);
  const halves = dtype === 'BF16' ? toBrain(floats) : toHalf(floats);
  return new Uint8Array(halves.buffer);
}

function checkLength(name: string, shape: readonly number[], length: number): void {
  if (elementsOf(shape) !== length)
    throw new RangeError(`${name} has ${length} elements for shape [${shape.join(', ')}]`);
}

/**
 * Returns the length prefix and the JSON of the header. The data starts at a multiple of 8 bytes, so that readers can
 * map the file into memory.
 */
function headerBytes(tensors: readonly Described[], dtype: StoredType, metadata: Metadata): Uint8Array {
  const header = new Map<string, unknown>([['__metadata__', metadata]]);
  let offset = 0;
  for (const tensor of tensors) {
    if (header.has(tensor.name)) throw new RangeError(`${tensor.name} is given twice`);
    const end = offset + sizeOf(tensor, dtype);
    header.set(tensor.name, { dtype, shape: tensor.shape, data_offsets: [offset, end] });
    offset = end;
  }
  const text = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const bytes = Buffer.alloc(8 + Math.ceil(text.length / 8) * 8, ' ');
  bytes.writeBigUInt64LE(BigInt(bytes.length - 8));
  text.copy(bytes, 8);
  return bytes;
}
