// Reads weights as 32-bit floats from a safetensors file, or from shards with an index. Each read returns one tensor or
// a part of it; the rest of the file is not loaded. safetensors-writer.ts writes such files. No package is used for
// reading, because @huggingface/hub reads only the headers.
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { bytesOf, fileSystem, storeError } from '../../node/files';
import type { FileSystem } from '../../node/files';
import { fromBrain, fromHalf } from '../../engine/half-precision';
import { openRegular, readRegular } from '../../node/regular-file';
import { broken, dtypeBytes, maxHeaderBytes, parseHeader } from './safetensors-header';
import type { SafetensorsHeader, TensorInfo } from './safetensors-header';
import { indexName, singleName } from './safetensors-writer';

type Handle = Awaited<ReturnType<FileSystem['open']>>;

/** Bytes of the conversion buffer, a multiple of every element size. */
const chunkBytes = 1 << 22;

/** An open safetensors file. Concurrent reads are allowed; call `close` when done. */
export class SafetensorsFile {
  private constructor(
    readonly file: string,
    private readonly handle: Handle,
    private readonly header: SafetensorsHeader,
  ) {}

  /** Opens the file and checks its header. Throws a UserError that names the file, the tensor and the remedy. */
  static async open(file: string, fs: FileSystem = fileSystem): Promise<SafetensorsFile> {
    const handle = await openRegular(file, fs).catch((error: unknown) => {
      throw storeError('read', file, error);
    });
    try {
      const { size } = await handle.stat();
      const prefix = new DataView(new ArrayBuffer(8));
      if (size < 8) throw broken(file, `has only ${size} bytes`);
      await readFully(handle, new Uint8Array(prefix.buffer), 0, file);
      const length = prefix.getBigUint64(0, true);
      if (length > BigInt(Math.min(maxHeaderBytes, size - 8)))
        throw broken(file, `declares a header of ${length} bytes, which is more than the file or the format allows`);
      const text = new Uint8Array(Number(length));
      await readFully(handle, text, 8, file);
      return new SafetensorsFile(
        file,
        handle,
        parseHeader(Buffer.from(text.buffer).toString('utf8'), file, 8 + text.length, size),
      );
    } catch (error) {
      await handle.close();
      throw storeError('read', file, error);
    }
  }

  get tensors(): ReadonlyMap<string, TensorInfo> {
    return this.header.tensors;
  }

  get metadata(): Readonly<Record<string, string>> {
    return this.header.metadata;
  }

  /**
   * Returns the elements [from, to) of the flattened, row-major tensor as 32-bit floats. Without a range, returns all
   * elements.
   */
  async readFloats(name: string, range?: { from: number; to: number }): Promise<Float32Array> {
    const tensor = this.tensor(name);
    const { from, to } = range ?? { from: 0, to: tensor.elements };
    if (!Number.isInteger(from) || !Number.isInteger(to) || from < 0 || from > to || to > tensor.elements)
      throw new RangeError(`${name} has ${tensor.elements} elements; [${from}, ${to}) is not a range of them`);
    const floats = new Float32Array(to - from);
    try {
      await this.fill(floats, tensor, from);
    } catch (error) {
      throw storeError('read', this.file, error);
    }
    return floats;
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  private tensor(name: string): TensorInfo {
    const tensor = this.tensors.get(name);
    if (!tensor)
      throw new UserError(
        `weights: ${this.file} has no tensor ${name}: use weights of the architecture that config.json names`,
      );
    return tensor;
  }

  private async fill(floats: Float32Array, { name, dtype, begin }: TensorInfo, from: number): Promise<void> {
    const at = begin + from * dtypeBytes[dtype];
    if (dtype === 'F32') return readFully(this.handle, bytesOf(floats), at, this.file);
    if (dtype !== 'F16' && dtype !== 'BF16')
      throw new UserError(
        `weights: ${this.file} has the tensor ${name} in ${dtype}, which cannot be read as weights: convert it to F32, F16 or BF16`,
      );
    const halves = new Uint16Array(Math.min(floats.length, chunkBytes / 2));
    const convert = dtype === 'F16' ? fromHalf : fromBrain;
    for (let done = 0; done < floats.length; done += halves.length) {
      const part = halves.subarray(0, Math.min(halves.length, floats.length - done));
      await readFully(this.handle, new Uint8Array(part.buffer, 0, part.byteLength), at + done * 2, this.file);
      convert(part, floats, done);
    }
  }
}

async function readFully(handle: Handle, into: Uint8Array, position: number, file: string): Promise<void> {
  for (let done = 0; done < into.length;) {
    const { bytesRead } = await handle.read(into, done, Math.min(into.length - done, 1 << 30), position + done);
    if (bytesRead === 0) throw broken(file, 'is truncated');
    done += bytesRead;
  }
}

/** All tensors of a model folder, in one file or several. */
export class Weights {
  /** Additional names of stored tensors. */
  private readonly aliases = new Map<string, string>();

  private constructor(
    private readonly files: readonly SafetensorsFile[],
    private readonly fileOf: ReadonlyMap<string, SafetensorsFile>,
  ) {}

  /** Opens `model.safetensors`, or the shards listed in `model.safetensors.index.json`. Throws UserErrors. */
  static async open(folder: string, fs: FileSystem = fileSystem): Promise<Weights> {
    const names = await fs.readdir(folder).catch((error: unknown) => {
      throw storeError('read', folder, error);
    });
    if (names.includes(singleName)) {
      const file = await SafetensorsFile.open(join(folder, singleName), fs);
      return new Weights([file], new Map([...file.tensors.keys()].map(name => [name, file])));
    }
    if (!names.includes(indexName))
      throw new UserError(
        `weights: ${folder} has neither ${singleName} nor ${indexName}: choose a folder with safetensors weights`,
      );
    const map = await readIndex(join(folder, indexName), fs);
    const files = new Map<string, SafetensorsFile>();
    try {
      const fileOf = new Map<string, SafetensorsFile>();
      for (const [tensor, shard] of map) {
        if (!names.includes(shard))
          throw broken(join(folder, indexName), `names the shard ${shard}, which is not in the same folder`);
        const file = files.get(shard) ?? (await SafetensorsFile.open(join(folder, shard), fs));
        files.set(shard, file);
        if (!file.tensors.has(tensor))
          throw broken(
            join(folder, indexName),
            `says that the tensor ${tensor} is in ${shard}, but ${shard} does not contain this tensor`,
          );
        fileOf.set(tensor, file);
      }
      return new Weights([...files.values()], fileOf);
    } catch (error) {
      await Promise.all([...files.values()].map(file => file.close()));
      throw error;
    }
  }

  get names(): string[] {
    return [...this.fileOf.keys()];
  }

  /** Returns dtype, shape and location of a tensor; undefined if the model has no tensor of this name. */
  info(name: string): TensorInfo | undefined {
    const stored = this.storedName(name);
    return this.fileOf.get(stored)?.tensors.get(stored);
  }

  /** Returns the path of the file that contains the tensor; undefined if the model has no tensor of this name. */
  fileName(name: string): string | undefined {
    return this.fileOf.get(this.storedName(name))?.file;
  }

  /** Makes `name` an additional name of the stored tensor `stored`. */
  addAlias(name: string, stored: string): void {
    this.aliases.set(name, stored);
  }

  /** Like `SafetensorsFile.readFloats`. */
  async readFloats(name: string, range?: { from: number; to: number }): Promise<Float32Array> {
    const stored = this.storedName(name);
    const file = this.fileOf.get(stored);
    if (!file)
      throw new UserError(
        `weights: the model has no tensor ${name}: use weights of the architecture that config.json names`,
      );
    return file.readFloats(stored, range);
  }

  async close(): Promise<void> {
    await Promise.all(this.files.map(file => file.close()));
  }

  /** Returns the name under which the files contain a tensor. */
  storedName(name: string): string {
    return this.aliases.get(name) ?? name;
  }
}

async function readIndex(file: string, fs: FileSystem): Promise<[string, string][]> {
  let index: unknown;
  try {
    index = JSON.parse((await readRegular(file, fs)).toString('utf8'));
  } catch (error) {
    throw error instanceof SyntaxError ? broken(file, 'is not JSON') : storeError('read', file, error);
  }
  const map = (index as { weight_map?: unknown } | null)?.weight_map;
  if (typeof map !== 'object' || map === null) throw broken(file, 'has no weight_map');
  return Object.entries(map).map(([tensor, shard]: [string, unknown]): [string, string] => {
    // A shard must be in the folder of its index, so its name must not contain a path.
    if (typeof shard === 'string' && /^[\w-][\w.-]*\.safetensors$/.test(shard)) return [tensor, shard];
    throw broken(file, `does not name a file in the same folder for the tensor ${tensor}`);
  });
}
