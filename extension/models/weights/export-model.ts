// Exports a model, optionally with an adapter merged into it, as a new folder for other tools. The weights are streamed
// in blocks of rows. The folder has a temporary name until it is complete and is then renamed, so a failed export
// leaves nothing behind.
import { randomBytes } from 'node:crypto';
import { basename, dirname, join, resolve } from 'node:path';
import { UserError } from '../../common/user-error';
import { fileSystem, storeError, syncFolder, writeNewFile } from '../../node/files';
import type { FileSystem } from '../../node/files';
import { readRegular } from '../../node/regular-file';
import { Weights as TensorFiles } from './safetensors';
import { streamModel } from './safetensors-writer';
import type { StoredType, StreamedTensor } from './safetensors-writer';
import { withOwnHead, withType } from './config-text';
import { elements } from '../decoder/decoder-config';
import type { DecoderConfig, ParameterSpec } from '../decoder/decoder-config';
import type { FileTensor } from '../decoder/decoder-parameters';
import { AdapterMerge } from '../adapters/merge';
import type { EncoderConfig } from '../vision/encoder-config';
import { openVisionModel } from '../vision/vision-folder';
import { openDecoder, readsPictures } from './model-folder';
import { onnxDecoder } from '../decoder/onnx-decoder';
import { readAdapter } from '../adapters/peft-adapter';

export interface ExportRequest {
  /** Folder of the model to export. */
  model: string;
  /** Folder of an adapter of the model; the adapter is merged into the exported weights. */
  adapter?: string;
  /** With `onnx`, model.onnx is written too: a plain ONNX decoder that reads the same weight files. */
  format: 'safetensors' | 'onnx';
  /** Path of the folder to create; an empty folder may exist there. */
  out: string;
  /**
   * Element type of the weights. Defaults to the type of the model. For ONNX, it defaults to F32, which every runtime
   * supports.
   */
  dtype?: StoredType;
  /** Maximum bytes of weights per file. */
  maxShardBytes: number;
  /** Maximum number of tensor values in memory at a time; defaults to 4 million. */
  blockElements?: number;
  /** Receives two numbers: the bytes of weights written so far, and the bytes of all weights. */
  onProgress?: (bytes: number, total: number) => void;
  signal?: AbortSignal;
}

export interface ExportResult {
  folder: string;
  dtype: StoredType;
  parameters: number;
  /** File names in the folder, weights first. */
  files: string[];
  /** Number of layers changed by the adapter. */
  mergedLayers: number;
}

/** Names of files that are copied unchanged if the model has them. */
const companions = [
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'chat_template.jinja',
  'chat_template.json',
  'vocab.json',
  'merges.txt',
  'tokenizer.model',
  'preprocessor_config.json',
  'processor_config.json',
];

const onnxName = 'model.onnx';
/** For each type, the smallest float32 magnitude that rounds to infinity in this type, as the bits of the float32. */
const overflowBits: Readonly<Record<StoredType, number>> = { F32: 0x7f800000, BF16: 0x7f7f8000, F16: 0x477ff000 };
const transformersName: Readonly<Record<StoredType, string>> = { F32: 'float32', BF16: 'bfloat16', F16: 'float16' };

/**
 * Writes the model as a folder in Hugging Face format.
 * @throws UserError that names the file, tensor or folder, and the remedy; after an error, no new folder exists
 */
export async function exportModel(request: ExportRequest, fs: FileSystem = fileSystem): Promise<ExportResult> {
  const out = resolve(request.out);
  const replaces = await isEmptyFolder(out, fs);
  const { config, specs, files, encoder } = await openExported(request);
  let merge: AdapterMerge | undefined;
  try {
    const base = { config, folder: request.model, encoder };
    const adapter = request.adapter === undefined ? undefined : await readAdapter(request.adapter, base, fs);
    if (adapter) merge = await AdapterMerge.create(adapter);
    const dtype = request.dtype ?? (request.format === 'onnx' ? 'F32' : storedTypeOf(files, specs));
    const source = { folder: request.model, files, merge, dtype, request };
    const written = await makeFolder(out, replaces, fs, async temporary => {
      const weights = await streamModel(temporary, streamed(specs, source), dtype, request.maxShardBytes, fs);
      if (request.format === 'onnx') weights.push(await writeOnnxModel(config, specs, temporary, dtype, fs));
      return [...weights, ...(await writeCompanions(request.model, temporary, { config, dtype }, fs))];
    });
    return {
      folder: out,
      dtype,
      parameters: specs.reduce((sum, { dims }) => sum + elements(dims), 0),
      files: written,
      mergedLayers: specs.filter(({ name }) => merge?.changes(name)).length,
    };
  } finally {
    await merge?.release();
    await files.close();
  }
}

/** Opens a model; the parameters of a vision-language model include those of its encoder. */
async function openExported({ model, format }: ExportRequest): Promise<ExportedModel> {
  if (!readsPictures(model)) return openDecoder(model);
  if (format === 'onnx')
    throw new UserError(
      `export: ${model} is a vision-language model, which cannot be written as one ONNX file: export with --format safetensors`,
    );
  const { config, files, decoderParameters, encoderParameters } = await openVisionModel(model);
  return {
    config: config.decoder,
    specs: [...decoderParameters, ...encoderParameters],
    files,
    encoder: config.encoder,
  };
}

interface ExportedModel {
  config: DecoderConfig;
  specs: ParameterSpec[];
  files: TensorFiles;
  encoder?: EncoderConfig;
}

interface Source {
  folder: string;
  files: TensorFiles;
  merge?: AdapterMerge;
  dtype: StoredType;
  request: ExportRequest;
}

/** Returns the model's parameters as streams; each stream adds to the reported progress. */
function streamed(specs: readonly ParameterSpec[], source: Source): StreamedTensor[] {
  const { dtype, request } = source;
  const width = dtype === 'F32' ? 4 : 2;
  const total = width * specs.reduce((sum, { dims }) => sum + elements(dims), 0);
  let done = 0;
  return specs.map(({ name, dims, stored = dims }) => ({
    name: source.files.storedName(name),
    shape: stored,
    async *blocks() {
      for await (const block of parameterBlocks(name, dims, source)) {
        yield block;
        done += width * block.length;
        request.onProgress?.(done, total);
      }
    },
  }));
}

/**
 * Yields a parameter's values in blocks of complete rows, merged with the adapter if the adapter changes this
 * parameter. Throws for values that are not finite in the target type.
 */
async function* parameterBlocks(
  name: string,
  dims: readonly number[],
  { folder, files, merge, dtype, request }: Source,
): AsyncGenerator<Float32Array> {
  const size = elements(dims);
  const width = elements(dims.slice(1));
  const step = Math.max(1, Math.floor((request.blockElements ?? 1 << 22) / width)) * width;
  for (let from = 0; from < size; from += step) {
    if (request.signal?.aborted)
      throw new UserError(`export: the export was cancelled, and nothing was written to ${request.out}`);
    const block = await files.readFloats(name, { from, to: Math.min(size, from + step) });
    check(
      block,
      'F32',
      i => `${folder}: the tensor ${name} is damaged (element ${from + i} is ${block[i]}): download the weights again`,
    );
    const values = merge?.changes(name) ? await merge.rows(name, block, from / width) : block;
    check(
      values,
      dtype,
      i =>
        `${folder}: the tensor ${name} has ${values[i]} at element ${from + i}, which is too large for ${transformersName[dtype]}: export with --dtype ${dtype === 'F16' ? 'bf16' : 'f32'}`,
    );
    yield values;
  }
}

/** Throws a UserError for the first value that is NaN or infinite in `dtype`. */
function check(values: Float32Array, dtype: StoredType, sentence: (i: number) => string): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const limit = overflowBits[dtype];
  for (let i = 0; i < bits.length; i++) if ((bits[i] & 0x7fffffff) >= limit) throw new UserError(sentence(i));
}

function storedTypeOf(files: TensorFiles, [{ name }]: readonly ParameterSpec[]): StoredType {
  const dtype = files.info(name)?.dtype;
  return dtype === 'BF16' || dtype === 'F16' ? dtype : 'F32';
}

/** Writes the ONNX model for the weight files in the folder. Returns its file name. */
async function writeOnnxModel(
  config: DecoderConfig,
  specs: readonly ParameterSpec[],
  folder: string,
  dtype: StoredType,
  fs: FileSystem,
): Promise<string> {
  const files = await TensorFiles.open(folder, fs);
  try {
    const places = specs.map(({ name }): [string, FileTensor] => {
      const { begin, end } = files.info(name)!;
      return [name, { kind: 'file', dtype, file: basename(files.fileName(name)!), offset: begin, bytes: end - begin }];
    });
    await writeNewFile(join(folder, onnxName), [onnxDecoder(config, new Map(places))], fs);
    return onnxName;
  } finally {
    await files.close();
  }
}

/** Writes a config.json that matches the exported weights, and copies the companion files. Returns their names. */
async function writeCompanions(
  model: string,
  folder: string,
  { config, dtype }: { config: DecoderConfig; dtype: StoredType },
  fs: FileSystem,
): Promise<string[]> {
  const text = withType((await readRegular(join(model, 'config.json'), fs)).toString('utf8'), transformersName[dtype]);
  const written = config.tiedHead ? text : withOwnHead(text);
  await writeNewFile(join(folder, 'config.json'), [Buffer.from(written)], fs);
  const present = new Set(await fs.readdir(model));
  const copied = companions.filter(name => present.has(name));
  for (const name of copied) await writeNewFile(join(folder, name), [await readRegular(join(model, name), fs)], fs);
  return ['config.json', ...copied];
}

/** Returns true if `out` is an empty folder, false if it does not exist. Throws a UserError for any other content. */
async function isEmptyFolder(out: string, fs: FileSystem): Promise<boolean> {
  try {
    const names = await fs.readdir(out);
    if (names.length === 0) return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return false;
    if (code === 'ENOTDIR') throw new UserError(`export: ${out} is a file: give another folder with --out`);
    throw storeError('read', out, error);
  }
  throw new UserError(`export: ${out} is not empty: give another folder with --out, or empty this folder`);
}

/** Creates the folder `out` atomically from the content that `fill` writes into a temporary folder. */
async function makeFolder<T>(
  out: string,
  replaces: boolean,
  fs: FileSystem,
  fill: (folder: string) => Promise<T>,
): Promise<T> {
  const temporary = join(dirname(out), `.tmp-${basename(out)}-${randomBytes(6).toString('hex')}`);
  try {
    await fs.mkdir(dirname(out), { recursive: true });
    await fs.mkdir(temporary);
    const result = await fill(temporary);
    await syncFolder(temporary, fs);
    if (replaces) await fs.rmdir(out);
    await fs.rename(temporary, out);
    await syncFolder(dirname(out), fs);
    return result;
  } catch (error) {
    await fs.rm(temporary, { recursive: true, force: true }).catch(() => undefined);
    throw storeError('write', out, error);
  }
}
