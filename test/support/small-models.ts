// Small models for tests: the golden checkpoints written by transformers, and models of any size with random weights.
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { Critic } from '../../extension/models/decoder/critic';
import { parameterSpecs, parseDecoderConfig } from '../../extension/models/decoder/decoder-config';
import type { DecoderConfig } from '../../extension/models/decoder/decoder-config';
import { Generator } from '../../extension/models/generation/generator';
import type { GeneratorOptions } from '../../extension/models/generation/generator-options';
import { trainedNetwork } from '../../extension/models/decoder/networks';
import type { LoadOptions } from '../../extension/engine/load-options';
import type { OptimizerOptions, PolicyLossOptions } from '../../extension/engine/loss-options';
import type { PassBudget, WeightedSample } from '../../extension/engine/training-samples';
import type { SamplingOptions } from '../../extension/engine/generation-calls';
import { HostParameters } from '../../extension/models/weights/parameter-bank';
import { Policy } from '../../extension/models/policy';
import type { PolicyOptions } from '../../extension/models/policy';
import { Weights, initialize } from '../../extension/models/weights/weights';
import { tensorsOf } from '../golden/tensors';

export const goldenFolder = (family: string): string => join('test/golden', family);

export function goldenConfig(family: string): DecoderConfig {
  const file = join(goldenFolder(family), 'config.json');
  return parseDecoderConfig(JSON.parse(readFileSync(file, 'utf8')), file);
}

export function goldenWeights(family: string): Weights {
  const weights = new Weights(parameterSpecs(goldenConfig(family)));
  for (const [name, { data }] of tensorsOf(join(goldenFolder(family), 'model.safetensors')))
    weights.view(name).set(data);
  return weights;
}

/** The batch of a family's golden losses; all tokens except the first are trained on. */
export function goldenSamples(family: string): WeightedSample[] {
  const golden = tensorsOf(join(goldenFolder(family), 'golden.safetensors'));
  const [rows, length] = golden.get('ids')!.dims;
  /** Golden vectors cover tokens 1…length − 1; these arrays also have an entry for token 0. */
  const shifted = (name: string, row: number): Float32Array =>
    Float32Array.from([0, ...golden.get(name)!.data.subarray(row * (length - 1), (row + 1) * (length - 1))]);
  return Array.from({ length: rows }, (_, row) => ({
    ids: Int32Array.from(golden.get('ids')!.data.subarray(row * length, (row + 1) * length)),
    mask: new Uint8Array(length).fill(1, 1),
    old_logprobs: shifted('old', row),
    ref_logprobs: shifted('ref', row),
    advantages: shifted('advantage', row),
    weights: shifted('weight', row),
  }));
}

/** Loss and optimizer options of the golden files. */
export const goldenLoss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0.01,
  use_kl_loss: true,
  kl_loss_coef: 0.05,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 0.7,
};
export const goldenOptimizer: OptimizerOptions = {
  lr: 0.01,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weight_decay: 0.01,
  grad_clip: 0.05,
};

/** A decoder small enough to run hundreds of times in a test. */
export const tinyConfig: DecoderConfig = {
  family: 'qwen2',
  vocabSize: 13,
  hiddenSize: 8,
  intermediateSize: 12,
  layers: 1,
  heads: 2,
  kvHeads: 1,
  headSize: 4,
  maxPositions: 64,
  normEps: 1e-6,
  ropeTheta: 10_000,
  ropeScaling: { rope_type: 'default' },
  tiedHead: true,
  qkvBias: true,
  outputBias: false,
  mlpBias: false,
  qkNorm: false,
};

/** Random weights, large enough that distributions are far from uniform. */
export function randomWeights(config: DecoderConfig, seed: number): Weights {
  const weights = new Weights(parameterSpecs(config));
  initialize(weights, new RandomStream(seed), 0.5);
  return weights;
}

/** Relative error ‖actual − expected‖ / ‖expected‖. */
export function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  let difference = 0;
  let norm = 0;
  for (let i = 0; i < expected.length; i++) {
    difference += (actual[i] - expected[i]) ** 2;
    norm += expected[i] ** 2;
  }
  return Math.sqrt(difference / Math.max(norm, 1e-12));
}

/** A policy whose parameters are all trained. */
export function trainedPolicy(
  config: DecoderConfig,
  weights: Weights,
  options: PolicyOptions = { threads: 1 },
): Policy {
  return new Policy(trainedNetwork(config), new HostParameters(weights, options), options);
}

/** A critic whose parameters are all trained. */
export function trainedCritic(config: DecoderConfig, weights: Weights): Critic {
  const options = { threads: 1 };
  return new Critic(trainedNetwork(config, weights.specs.slice()), new HostParameters(weights, options), options);
}

/** Load options of a model whose weights are all trained, without adapters or quantization. */
export const plainLoad: LoadOptions = {
  modelFolder: goldenFolder('qwen2'),
  adapterFolder: null,
  device: 'cpu',
  threads: 1,
  lora: null,
  rolloutQuantization: 'none',
  baseQuantization: 'none',
  checkpointed: false,
  referenceFolder: null,
  critic: false,
  seed: 1,
  maxPositions: null,
  cacheFolder: join(tmpdir(), 'ragen-test-cache'),
};

/** Sampling options with temperature 1 and without top-k and top-p. */
export const plainSampling: SamplingOptions = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  do_sample: true,
  max_new_tokens: 8,
  stop_token_ids: [],
  stop: [],
  max_model_len: 60,
};

/** Pass budget without limits: a single pass contains the whole batch. */
export const wholeBatch: PassBudget = { maxTokens: Infinity, maxRows: Infinity };

/** A generator on weights that are stored separately. */
export function playing(
  config: DecoderConfig,
  weights: Weights,
  options: GeneratorOptions = { threads: 1 },
): Generator {
  return new Generator(trainedNetwork(config), new HostParameters(weights, options), options);
}
