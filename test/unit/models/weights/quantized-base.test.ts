// An 8-bit base: its rollouts stay close to the float policy's log-probs, adapters over it train as over a float model
// with the same rounded weights, and its file is created once, and again when the model changes or a part is lost.
import {
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { currentPidScope } from '../../../../extension/node/process-identity';
import type { OptimizerOptions } from '../../../../extension/engine/loss-options';
import type { WeightedSample } from '../../../../extension/engine/training-samples';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { parameterSpecs, parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import type { DecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { initializeLora, loraSpecs } from '../../../../extension/models/adapters/lora';
import type { LoraOptions } from '../../../../extension/models/adapters/lora';
import { mapDecoder } from '../../../../extension/models/decoder/mapped-decoder';
import { adaptedNetwork, frozenNetwork } from '../../../../extension/models/decoder/networks';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { Policy } from '../../../../extension/models/policy';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import type { Network } from '../../../../extension/models/graphs/policy-graphs';
import { quantizedNetwork } from '../../../../extension/models/weights/quantized-base';
import { Weights, initialize } from '../../../../extension/models/weights/weights';
import { SafetensorsFile } from '../../../../extension/models/weights/safetensors';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { temporaryFolder } from '../../../support/temporary-folder';
import {
  goldenFolder,
  goldenLoss,
  goldenSamples,
  plainLoad,
  plainSampling,
  relativeError,
  wholeBatch,
} from '../../../support/small-models';

const folder = temporaryFolder();
const cache = (): string => join(folder(), 'cache');
const threads = { threads: 1 };
const lora: LoraOptions = { rank: 3, alpha: 6, dropout: 0, targets: 'all-linear' };

/** The file of the only 8-bit base in the cache. */
function cached(): string {
  const bases = readdirSync(join(cache(), 'quantized'));
  expect(bases).toHaveLength(1);
  return join(cache(), 'quantized', bases[0], 'int8.safetensors');
}

const quantized = async (model: string): Promise<Network> => quantizedNetwork(await mapDecoder(model), cache());

/** The policy of a base with the same random adapter each time; both of its factors are non-zero. */
function adapted(base: Network): Policy {
  const factors = new Weights(loraSpecs(base.config, lora));
  const stream = new RandomStream(3);
  initializeLora(factors, stream);
  factors.flat.forEach((x, i, flat) => (flat[i] = x + 0.05 * stream.normal()));
  return new Policy(adaptedNetwork(base, lora), new HostParameters(factors, threads), threads);
}

/** A model folder with the dequantized weights of the cached bytes and a stored head. */
async function dequantizedModel(config: DecoderConfig, from: string): Promise<string> {
  const bytes = await SafetensorsFile.open(cached());
  const model = join(folder(), 'dequantized');
  mkdirSync(model);
  const json = JSON.parse(readFileSync(join(from, 'config.json'), 'utf8')) as object;
  writeFileSync(join(model, 'config.json'), JSON.stringify({ ...json, tie_word_embeddings: false }));
  const tensors = [];
  for (const { name, dims } of parameterSpecs({ ...config, tiedHead: false })) {
    if (!bytes.tensors.has(`${name}.scale`)) {
      tensors.push({ name, shape: dims, data: await bytes.readFloats(name) });
      continue;
    }
    const { begin, end } = bytes.tensors.get(name)!;
    const stored = new Int8Array(readFileSync(cached()).subarray(begin, end));
    const scale = await bytes.readFloats(`${name}.scale`);
    const [out, width] = dims;
    const data = Float32Array.from({ length: out * width }, (_, k) => {
      const [row, column] = [Math.floor(k / width), k % width];
      return stored[column * out + row] * scale[row];
    });
    tensors.push({ name, shape: dims, data });
  }
  await bytes.close();
  await writeSafetensors(join(model, 'model.safetensors'), tensors);
  return model;
}

describe.each(['qwen2', 'llama', 'qwen3'])('adapters over an 8-bit %s', family => {
  it('have the same gradients and scores as over a float model of the rounded weights', async () => {
    const base = await quantized(goldenFolder(family));
    const rounded = await mapDecoder(await dequantizedModel(base.config, goldenFolder(family)));
    const samples: WeightedSample[] = goldenSamples(family);
    const still: OptimizerOptions = { lr: 0, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0, grad_clip: 1e9 };
    const policies = [adapted(base), adapted(frozenNetwork(rounded.config, rounded))];
    const found = [];
    for (const policy of policies) {
      const { logprobs } = await policy.score(samples, wholeBatch, 1);
      const metrics = await policy.update(samples, wholeBatch, goldenLoss, still);
      found.push({ logprobs, metrics, gradient: await policy.bank.readGradient() });
    }
    const [bytes, float] = found;
    samples.forEach((_, i) => expect(relativeError(bytes.logprobs[i], float.logprobs[i])).toBeLessThan(1e-5));
    expect(bytes.metrics.grad_norm).toBeGreaterThan(1e-3);
    for (const { name } of float.gradient.specs)
      expect(relativeError(bytes.gradient.view(name), float.gradient.view(name)), name).toBeLessThan(1e-4);
  });

  it('differ from the model before rounding by at most three per cent', async () => {
    const whole = await mapDecoder(goldenFolder(family));
    const samples = goldenSamples(family);
    const score = async (base: Network): Promise<Float32Array[]> =>
      (await adapted(base).score(samples, wholeBatch, 1)).logprobs;
    const [bytes, float] = [
      await score(await quantized(goldenFolder(family))),
      await score(frozenNetwork(whole.config, whole)),
    ];
    samples.forEach((_, i) => {
      const error = relativeError(bytes[i], float[i]);
      expect(error).toBeGreaterThan(1e-6);
      expect(error).toBeLessThan(0.03);
    });
  });
});

describe('8-bit rollouts', () => {
  /** A wider random model than the golden ones: rounding errors average out over its sums as in real models. */
  async function wideModel(): Promise<string> {
    const model = join(folder(), 'wide');
    mkdirSync(model);
    const json = {
      ...(JSON.parse(readFileSync(join(goldenFolder('qwen2'), 'config.json'), 'utf8')) as object),
      ...{ hidden_size: 128, intermediate_size: 256, head_dim: 32, vocab_size: 200 },
    };
    writeFileSync(join(model, 'config.json'), JSON.stringify(json));
    const weights = new Weights(parameterSpecs(parseDecoderConfig(json, model)));
    initialize(weights, new RandomStream(9), 0.08);
    const tensors = weights.specs.map(({ name, dims }) => ({ name, shape: dims, data: weights.view(name) }));
    await writeSafetensors(join(model, 'model.safetensors'), tensors);
    return model;
  }

  it('have log-probs within 0.05 of the training graph’s on average, and an importance ratio near one', async () => {
    const modelFolder = await wideModel();
    const differences: Record<string, number[]> = {};
    for (const rolloutQuantization of ['none', 'int8'] as const) {
      const engine = new PolicyEngine();
      await engine.load({ ...plainLoad, modelFolder, lora, rolloutQuantization, cacheFolder: cache() });
      const prompts = Array.from({ length: 8 }, (_, i) => [3 + i, 40 + 2 * i, 7]);
      const rows = await engine.generate(
        prompts.map((append, i) => ({ row: `r${i}`, append, seed: i })),
        { ...plainSampling, max_new_tokens: 24 },
      );
      const samples = rows.map(({ ids }, i) => {
        const all = Int32Array.from([...prompts[i], ...ids]);
        return { ids: all, mask: Uint8Array.from(all, (_, t) => Number(t >= prompts[i].length)) };
      });
      const { logprobs, entropies } = await engine.score('actor', samples, wholeBatch, 1);
      // Neither uniform nor certain, where log-probs could not differ.
      const entropy = entropies.flatMap((row, i) => [...row].filter((_, t) => samples[i].mask[t]));
      expect(entropy.reduce((a, b) => a + b) / entropy.length).toBeGreaterThan(1);
      expect(entropy.reduce((a, b) => a + b) / entropy.length).toBeLessThan(0.97 * Math.log(200));
      differences[rolloutQuantization] = rows.flatMap((row, i) =>
        row.logprobs.map((sampled, t) => logprobs[i][prompts[i].length + t] - sampled),
      );
    }
    const mean = (xs: number[]): number => xs.reduce((a, b) => a + b) / xs.length;
    const [float, bytes] = [differences.none, differences.int8];
    expect(bytes).toHaveLength(8 * 24);
    expect(Math.max(...float.map(Math.abs))).toBeLessThan(1e-4);
    expect(mean(bytes.map(Math.abs))).toBeGreaterThan(1e-3);
    expect(mean(bytes.map(Math.abs))).toBeLessThan(0.05);
    expect(Math.max(...bytes.map(Math.abs))).toBeLessThan(0.25);
    expect(Math.abs(mean(bytes.map(Math.exp)) - 1)).toBeLessThan(0.02);
  });
});

describe('the 8-bit file', () => {
  const model = (): string => {
    const copy = join(folder(), 'model');
    cpSync(goldenFolder('llama'), copy, { recursive: true });
    return copy;
  };
  const scores = async (network: Network): Promise<Float32Array[]> =>
    (await adapted(network).score(goldenSamples('llama'), wholeBatch, 1)).logprobs;

  it('is created once and reused', async () => {
    const source = model();
    const first = await scores(await quantized(source));
    const { ino, mtimeMs, size } = statSync(cached());
    expect(await scores(await quantized(source))).toEqual(first);
    expect(statSync(cached())).toMatchObject({ ino, mtimeMs, size });
    expect(readdirSync(join(cached(), '..'))).toEqual(['int8.safetensors', 'int8.safetensors.sha256']);
  });

  it('is a different one for changed weights', async () => {
    const source = model();
    await quantized(source);
    const weights = join(source, 'model.safetensors');
    utimesSync(weights, new Date(), new Date(Date.now() + 5000));
    await quantized(source);
    expect(readdirSync(join(cache(), 'quantized'))).toHaveLength(2);
  });

  it.each<[string, (file: string) => void]>([
    ['cut short', file => truncateSync(file, statSync(file).size - 100)],
    ['empty', file => truncateSync(file, 0)],
    [
      'different in one bit',
      file => {
        const bytes = readFileSync(file);
        bytes[bytes.length - 9] ^= 1;
        writeFileSync(file, bytes);
      },
    ],
    ['overwritten', file => writeFileSync(file, Buffer.alloc(4096, 1))],
  ])('is recreated when it is %s', async (_, damage) => {
    const source = model();
    const first = await scores(await quantized(source));
    const whole = readFileSync(cached());
    damage(cached());
    expect(await scores(await quantized(source))).toEqual(first);
    expect(readFileSync(cached()).equals(whole)).toBe(true);
  });

  it('is not read from a partial write; files of dead processes are removed, those being written are not', async () => {
    const source = model();
    await quantized(source);
    const file = cached();
    const [dead, living] = [999_999_999, process.ppid].map(
      pid => `${file}.${pid}-${currentPidScope.pid_namespace ?? ''}.partial`,
    );
    for (const partial of [dead, living]) writeFileSync(partial, 'half');
    truncateSync(file, 10);
    await quantized(source);
    expect(readdirSync(join(file, '..')).sort()).toEqual(
      ['int8.safetensors', 'int8.safetensors.sha256', living.split('/').at(-1)].sort(),
    );
  });
});
