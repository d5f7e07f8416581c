// Model folders with random weights, for benchmarks whose models are too large to generate for each run. Each model is
// written to the temporary folder once, under a name derived from its sizes, and reused. Values repeat every 2²⁰
// numbers, which does not affect speed.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { parameterSpecs, parseDecoderConfig } from '../../extension/models/decoder/decoder-config';
import { streamModel } from '../../extension/models/weights/safetensors-writer';
import type { StreamedTensor } from '../../extension/models/weights/safetensors-writer';
import type { ModelSettings } from './definitions';

const block = 2 ** 20;
export const maxFileBytes = 5e9;

/** Folder of the models and of files derived from them. */
export const cacheFolder = join(tmpdir(), 'ragen-bench');

/** Writes a Qwen2 model of the given sizes in Hugging Face format, without adapters; resolves to its folder. */
export async function randomModel(s: ModelSettings): Promise<string> {
  const shape = [s.vocab, s.hidden, s.intermediate, s.layers, s.heads, s.kv_heads, s.head_size, s.rope_theta];
  const folder = join(cacheFolder, `${shape.join('-')}-${s.base_dtype}`);
  if (existsSync(folder)) return folder;
  const config = {
    model_type: 'qwen2',
    architectures: ['Qwen2ForCausalLM'],
    vocab_size: s.vocab,
    hidden_size: s.hidden,
    intermediate_size: s.intermediate,
    num_hidden_layers: s.layers,
    num_attention_heads: s.heads,
    num_key_value_heads: s.kv_heads,
    head_dim: s.head_size,
    max_position_embeddings: 1024,
    rms_norm_eps: 1e-6,
    rope_theta: s.rope_theta,
    tie_word_embeddings: true,
    hidden_act: 'silu',
  };
  const unfinished = `${folder}.unfinished-${process.pid}`;
  try {
    await mkdir(unfinished, { recursive: true });
    await writeFile(join(unfinished, 'config.json'), `${JSON.stringify(config, null, 2)}\n`);
    const tensors = parameterSpecs(parseDecoderConfig(config, folder)).map(({ name, dims }): StreamedTensor => ({
      name,
      shape: dims,
      blocks: randomBlocks(dims, name.includes('norm')),
    }));
    await streamModel(unfinished, tensors, s.base_dtype === 'float32' ? 'F32' : 'BF16', maxFileBytes);
    await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return folder;
}

/** Normal values with standard deviation 0.02, drawn when they are first needed. */
let normal: Float32Array | undefined;

function normalBlock(): Float32Array {
  const stream = new RandomStream(1);
  return Float32Array.from({ length: block }, () => 0.02 * stream.normal());
}

/** Returns the values of a tensor: ones, or normal values with standard deviation 0.02. */
export function randomBlocks(dims: readonly number[], isOnes: boolean): StreamedTensor['blocks'] {
  const count = dims.reduce((product, size) => product * size, 1);
  if (isOnes) return () => pieces(new Float32Array(count).fill(1), count);
  const source = (normal ??= normalBlock());
  return () => pieces(source, count);
}

async function* pieces(source: Float32Array, count: number): AsyncGenerator<Float32Array> {
  for (let done = 0; done < count; done += source.length) yield source.subarray(0, count - done);
}
