// A frozen base in 8 bits: each linear weight is stored as int8 with one scale per output; embedding, norms and biases
// are stored as float32. The base is created once from the model's files and stored in the cache folder, from which
// onnxruntime maps it. CPUs without VNNI add pairs of products in 16 bits, and these sums saturate for large 8-bit
// weights. On these CPUs the weights use only seven bits, so that matmuls are exact on every machine.
import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isAlive, currentPidScope } from '../../node/process-identity';
import { UserError } from '../../common/user-error';
import { Graph } from '../../engine/graph/graph';
import { Session, float32 } from '../../engine/session/session';
import { digestFile, makeFolder, replaceFile } from '../../node/files';
import { readRegularSync } from '../../node/regular-file';
import { SafetensorsFile } from './safetensors';
import { embeddingTensor, headTensor, parameterSpecs } from '../decoder/decoder-config';
import type { DecoderConfig, ParameterSpec } from '../decoder/decoder-config';
import type { FileTensor, Int8Tensor, TensorSource } from '../decoder/decoder-parameters';
import type { MappedDecoder } from '../decoder/mapped-decoder';
import { openDecoder, readDecoderConfig } from './model-folder';
import type { Network } from '../graphs/policy-graphs';

/** Largest magnitude of a quantised weight: 127, or 63 if sums of two products saturate on the CPU. */
type Range = 127 | 63;

/** Returns the base as a network with 8-bit linear layers, including the output head. */
export async function quantizedNetwork(base: MappedDecoder, cache: string): Promise<Network> {
  const { config } = base;
  const range: Range = (await multipliesExactly()) ? 127 : 63;
  const folder = join(cache, 'quantized', keyOf(base, range));
  const layout = layoutOf(quantizedSpecs(config));
  if (!(await isComplete(join(folder, fileName), layout))) await write(base, folder, layout, range);
  const tensorAt = (name: string): Omit<FileTensor, 'kind' | 'dtype'> => {
    const { begin, end } = layout.tensors.get(name)!;
    return { file: fileName, offset: begin, bytes: end - begin };
  };
  const source = (name: string): TensorSource => {
    if (!isLinear(name)) return { kind: 'file', dtype: 'F32', ...tensorAt(name) };
    const tensor: Int8Tensor = { kind: 'int8', weight: tensorAt(name), scale: tensorAt(scaleName(name)) };
    return tensor;
  };
  const specs = quantizedSpecs(config);
  return { config, folder, plan: { specs, source: memoized(specs, source) } };
}

const fileName = 'int8.safetensors';
/** Returns the path of the file that contains the sha256 checksum of `file`. */
const sumOf = (file: string): string => `${file}.sha256`;
const scaleName = (weight: string): string => `${weight}.scale`;
const isLinear = (name: string): boolean => /_proj\.weight$|^lm_head\.weight$/.test(name);

/**
 * Returns the specs of the decoder's parameters, always with a separate output head. A tied tensor cannot be shared,
 * because the embedding is a float32 lookup table and the head is an 8-bit matmul weight.
 */
function quantizedSpecs(config: DecoderConfig): ParameterSpec[] {
  const head = { name: headTensor, dims: [config.vocabSize, config.hiddenSize] };
  return config.tiedHead ? [...parameterSpecs(config), head] : parameterSpecs(config);
}

function memoized(
  specs: readonly ParameterSpec[],
  source: (name: string) => TensorSource,
): (name: string) => TensorSource {
  const all = new Map(specs.map(({ name }) => [name, source(name)]));
  return name => {
    const found = all.get(name);
    if (!found) throw new Error(`quantized base: no parameter ${name}`);
    return found;
  };
}

/** Whether 8-bit matmuls with weights up to ±127 are exact on this CPU. */
async function multipliesExactly(): Promise<boolean> {
  const g = new Graph('exact');
  const a = g.constant('uint8', [2, 64], new Uint8Array(128).fill(255));
  const w = g.constant('int8', [64, 16], new Int8Array(1024).fill(127));
  const x = g.input('x', 'int32', [1]);
  const product = g.emit('MatMulInteger', [a, w], 'int32', [2, 16]);
  g.output('y', g.emit('Add', [product, x], 'int32', [2, 16]));
  const session = await Session.create(g, { threads: 1, prepack: true });
  const { y } = await session.run({ x: { type: 'int32', dims: [1], data: Int32Array.of(0) } });
  await session.release();
  return (y.data as Int32Array).every(sum => sum === 255 * 127 * 64);
}

/**
 * Returns a cache key. The key depends on the range, and on name, size and modification time of the model's files. It
 * also depends on whether the files contain a separate head although config.json declares the head as tied.
 */
function keyOf({ folder, modelFolder, tensors, config }: MappedDecoder, range: Range): string {
  const files = [...new Set([...tensors.values()].map(({ file }) => file))].sort();
  const facts = files.map(file => {
    const { size, mtimeMs } = statSync(join(folder, file));
    return [file, size, mtimeMs];
  });
  // Earlier versions cached a model without its head if config.json declared the stored head as tied. The key of such a
  // model contains the name `lm_head.weight`, so that the faulty file of an earlier version is not found.
  const untied = readDecoderConfig(modelFolder).tiedHead && !config.tiedHead ? [headTensor] : [];
  const digest = createHash('sha256')
    .update(JSON.stringify([modelFolder, facts, range, ...untied]))
    .digest('hex');
  return `${basename(modelFolder)}-${digest.slice(0, 16)}`;
}

/**
 * Whether the file contains exactly the tensors of the layout and matches its checksum; if not, the file is recreated.
 */
async function isComplete(file: string, layout: Layout): Promise<boolean> {
  if (!existsSync(file)) return false;
  try {
    const stored = await SafetensorsFile.open(file);
    await stored.close();
    const fits = [...layout.tensors].every(([name, { begin, end }]) => {
      const tensor = stored.tensors.get(name);
      return tensor?.begin === begin && tensor.end === end;
    });
    return (
      fits &&
      existsSync(sumOf(file)) &&
      readRegularSync(sumOf(file)).toString('utf8').trim() === (await digestFile(file)).sha256
    );
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
}

/**
 * Milliseconds after which a partial file is considered abandoned if its process cannot be checked, for example because
 * the process runs in another container.
 */
const leftMs = 3_600_000;
const namespace = currentPidScope.pid_namespace ?? '';

/** Removes partial files of processes that ended while writing. */
async function removePartial(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, pid, tensorAt] = /\.(\d+)(?:-(\d*))?\.partial$/.exec(name) ?? [];
    if (pid === undefined) continue;
    const written = (await stat(join(folder, name)).catch(() => null))?.mtimeMs ?? 0;
    const isLeft = tensorAt === namespace ? !isAlive(Number(pid)) : Math.abs(Date.now() - written) > leftMs;
    if (isLeft) await rm(join(folder, name), { force: true });
  }
}

/** Writes all tensors, one at a time, into a partial file, and renames the file when it is complete. */
async function write(
  { modelFolder: model, config }: MappedDecoder,
  folder: string,
  layout: Layout,
  range: Range,
): Promise<void> {
  await makeFolder(folder);
  await removePartial(folder);
  const target = join(folder, fileName);
  const partial = `${target}.${process.pid}-${namespace}.partial`;
  const { files } = await openDecoder(model);
  const out = await open(partial, 'w');
  const quantizer = await Session.create(quantizerGraph(range), { threads: 0 });
  try {
    await out.write(layout.header, 0, layout.header.length, 0);
    for (const { name, dims } of quantizedSpecs(config)) {
      const source = name === headTensor && config.tiedHead ? embeddingTensor : name;
      const data = await files.readFloats(source);
      if (!isLinear(name)) {
        await writeAll(out, data, layout.tensors.get(name)!.begin);
        continue;
      }
      const { bytes, scale } = await quantizer.run({ w: float32(data, dims) });
      await writeAll(out, bytes.data as Int8Array, layout.tensors.get(name)!.begin);
      await writeAll(out, scale.data as Float32Array, layout.tensors.get(scaleName(name))!.begin);
    }
    await out.sync();
    await out.close();
    const { sha256 } = await digestFile(partial);
    await replaceFile(sumOf(target), `${sha256}\n`);
    await rename(partial, target);
  } catch (error) {
    await out.close().catch(() => undefined);
    await rm(partial, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC')
      throw new UserError(
        `weights: not enough disk space for the 8-bit base in ${folder} (${message}): free disk space or set workbench.rollout_quantization to none`,
      );
    throw error;
  } finally {
    await quantizer.release();
    await files.close();
  }
}

/**
 * Builds the graph that quantises `w` [out, in]. The outputs are `bytes`, the int8 weights [in, out] in the layout for
 * matmuls with few rows, and `scale` [out].
 */
function quantizerGraph(range: Range): Graph {
  const g = new Graph('quantizer');
  const w = g.input('w', 'float32', ['out', 'in']);
  const size = g.emit('ReduceMax', [g.emit('Abs', [w], 'float32', w.dims), g.integers([1])], 'float32', ['out', 1], {
    keepdims: 1,
  });
  const scale = g.emit(
    'Mul',
    [g.emit('Max', [size, g.scalar(1e-12)], 'float32', ['out', 1]), g.scalar(1 / range)],
    'float32',
    ['out', 1],
  );
  const rounded = g.emit('Round', [g.emit('Div', [w, scale], 'float32', w.dims)], 'float32', w.dims);
  const bytes = g.emit('Cast', [rounded], 'int8', w.dims, { to: 3 });
  g.output('bytes', g.emit('Transpose', [bytes], 'int8', ['in', 'out'], { perm: [1, 0] }));
  g.output('scale', g.emit('Reshape', [scale, g.integers([-1])], 'float32', ['out']));
  return g;
}

/** Byte positions of tensors in a safetensors file; each tensor is aligned to 64 bytes. */
interface Layout {
  header: Buffer;
  /** Byte range of each tensor in the file: offset of its first byte, and offset after its last byte. */
  tensors: Map<string, { begin: number; end: number }>;
}

function layoutOf(specs: readonly ParameterSpec[]): Layout {
  const entries: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }> = {};
  const extents: [string, { begin: number; end: number }][] = [];
  let end = 0;
  const add = (name: string, dtype: 'I8' | 'F32', shape: number[]): void => {
    const begin = Math.ceil(end / 64) * 64;
    // The format allows no gaps, so padding is stored as a tensor.
    if (begin > end)
      entries[`padding.${extents.length}`] = { dtype: 'I8', shape: [begin - end], data_offsets: [end, begin] };
    end = begin + shape.reduce((n, d) => n * d, dtype === 'F32' ? 4 : 1);
    entries[name] = { dtype, shape, data_offsets: [begin, end] };
    extents.push([name, { begin, end }]);
  };
  for (const { name, dims } of specs) {
    if (!isLinear(name)) add(name, 'F32', dims);
    else {
      add(name, 'I8', [dims[1], dims[0]]);
      add(scaleName(name), 'F32', [dims[0]]);
    }
  }
  const text = Buffer.from(JSON.stringify(entries));
  const padded = Math.ceil((8 + text.length) / 64) * 64;
  const header = Buffer.alloc(padded, ' ');
  header.writeBigUInt64LE(BigInt(padded - 8));
  text.copy(header, 8);
  const tensors = new Map(extents.map(([name, at]) => [name, { begin: padded + at.begin, end: padded + at.end }]));
  return { header, tensors };
}

async function writeAll(
  out: Awaited<ReturnType<typeof open>>,
  data: Float32Array | Int8Array,
  position: number,
): Promise<void> {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await out.write(bytes, done, Math.min(bytes.length - done, 1 << 30), position + done);
    done += bytesWritten;
  }
}
