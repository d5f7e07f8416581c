// Training and generation at shape S: a Qwen2 decoder of 0.8 million parameters with random weights. Training is an optimizer step of
// the policy loss on one micro-batch, forward, backward and AdamW; generation samples from equal-length, distinct prompts.
import type { OptimizerOptions, PolicyLossOptions } from '../../extension/trainer/engine/engine';
import { RandomStream } from '../../extension/trainer/engine/random-stream';
import { parameterSpecs } from '../../extension/trainer/models/decoder-config';
import type { DecoderConfig } from '../../extension/trainer/models/decoder-config';
import { Generator } from '../../extension/trainer/models/generator';
import { trainedNetwork } from '../../extension/trainer/models/networks';
import { HostParameters } from '../../extension/trainer/models/parameter-bank';
import { Policy } from '../../extension/trainer/models/policy';
import { Weights, initialize } from '../../extension/trainer/models/weights';
import { rate } from './benchmark';
import type { Benchmark } from './benchmark';

const config: DecoderConfig = {
  family: 'qwen2',
  vocabSize: 256,
  hiddenSize: 128,
  intermediateSize: 384,
  layers: 4,
  heads: 4,
  kvHeads: 2,
  headSize: 32,
  maxPositions: 512,
  normEps: 1e-6,
  ropeTheta: 10_000,
  ropeScaling: { rope_type: 'default' },
  tiedHead: true,
  qkvBias: true,
  outputBias: false,
  mlpBias: false,
  qkNorm: false,
};
const shape = {
  vocab: config.vocabSize,
  hidden: config.hiddenSize,
  intermediate: config.intermediateSize,
  layers: config.layers,
  heads: config.heads,
  kv_heads: config.kvHeads,
};
const whole = { maxTokens: Infinity, maxRows: Infinity };
const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0,
  use_kl_loss: false,
  kl_loss_coef: 0,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 1,
};
const optimizer: OptimizerOptions = { lr: 1e-5, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.01, grad_clip: 1 };

function randomWeights(): Weights {
  const weights = new Weights(parameterSpecs(config));
  initialize(weights, new RandomStream(1));
  return weights;
}

function training(threads: number): Benchmark {
  const [rows, length, steps] = [32, 128, 5];
  const policy = new Policy(trainedNetwork(config), new HostParameters(randomWeights(), { threads }), { threads });
  const stream = new RandomStream(2);
  const bare = Array.from({ length: rows }, () => ({
    ids: Int32Array.from({ length }, () => stream.integer(config.vocabSize)),
    mask: new Uint8Array(length).fill(1, 1),
  }));
  const samples = policy.score(bare, whole, 1).then(({ logprobs }) =>
    bare.map((sample, row) => ({
      ...sample,
      old_logprobs: logprobs[row],
      ref_logprobs: logprobs[row],
      advantages: new Float32Array(length).map(() => stream.normal()),
      weights: new Float32Array(length).fill(1 / (rows * (length - 1))),
    })),
  );
  return {
    name: 'training',
    unit: 'tokens/s',
    settings: { ...shape, rows, length, steps, threads },
    run: async () => {
      const batch = await samples;
      return rate(async () => {
        for (let step = 0; step < steps; step++) await policy.update(batch, whole, loss, optimizer);
        return steps * rows * length;
      });
    },
  };
}

function generation(rows: number, threads: number): Benchmark {
  const [prompt, tokens] = [32, 64];
  const generator = new Generator(trainedNetwork(config), new HostParameters(randomWeights(), { threads }), {
    threads,
  });
  const stream = new RandomStream(3);
  let runs = 0;
  const sampling = {
    temperature: 1,
    top_p: 1,
    top_k: -1,
    min_p: 0,
    repetition_penalty: 1,
    stop: [],
    do_sample: true,
    max_new_tokens: tokens,
    stop_token_ids: [],
    max_model_len: config.maxPositions,
  };
  return {
    name: `generation, batch ${rows}`,
    unit: 'tokens/s',
    settings: { ...shape, rows, prompt, tokens, threads },
    run: () => {
      const requests = Array.from({ length: rows }, (_, row) => ({
        row: `r${row}`,
        append: Array.from({ length: prompt }, () => stream.integer(config.vocabSize)),
        seed: 1000 * runs + row,
      }));
      runs++;
      return rate(async () => {
        const generated = await generator.generate(requests, sampling);
        generator.release(requests.map(({ row }) => row));
        return generated.reduce((n, { ids }) => n + ids.length, 0);
      });
    },
  };
}

export const engineBenchmarks = (threads: number): Benchmark[] => [
  training(threads),
  generation(32, threads),
  generation(64, threads),
];
