// What the self-check (self-check.ts) compares for models that read pictures: a small encoder of the model's family
// encodes two pictures, a small decoder scores prompts that show them, and both are trained for one update. The samples
// have a shared prefix with a picture, a picture of their own, and no picture.
import type { OptimizerOptions, PolicyLossOptions } from '../engine/loss-options';
import type { FloatType } from '../engine/graph/graph';
import { RandomStream } from '../engine/sampling/random-stream';
import type { SessionOptions } from '../engine/session/session';
import type { ShownFeatures, WeightedSample } from '../engine/training-samples';
import { parameterSpecs } from './decoder/decoder-config';
import type { DecoderConfig } from './decoder/decoder-config';
import { trainedEncoder, trainedNetwork } from './decoder/networks';
import { Policy } from './policy';
import { encoderSpecs } from './vision/encoder-config';
import type { EncoderConfig } from './vision/encoder-config';
import { patchWidth } from './vision/encoder-shape';
import { featureCount } from './vision/encoder-feeds';
import type { PicturePatches } from './vision/patches';
import { PictureEncoder } from './vision/picture-encoder';
import { showFeatures } from './vision/shown-features';
import { DeviceParameters, openBank } from './weights/device-parameters';
import { Weights } from './weights/weights';

/** How a model shows pictures. */
export interface PictureUse {
  encoder: EncoderConfig['kind'];
  /** Whether the model answers prompts with pictures; otherwise it only scores given texts and trains on them. */
  generates: boolean;
  /** Whether the encoder is trained too. */
  trained: boolean;
}

/** What a computation with pictures returns, by what messages call it. */
export interface PicturedResults {
  values: Record<string, Float32Array>;
  /** Metrics of the update by name. */
  loss: Record<string, number>;
  gradient: Weights;
}

/** A text decoder and the losses that the self-check trains it with. */
export interface CheckedDecoder {
  config: DecoderConfig;
  loss: PolicyLossOptions;
  optimizer: OptimizerOptions;
}

/** Returns a small encoder of a family, for a decoder with `outputSize` hidden units. */
function smallEncoder(kind: EncoderConfig['kind'], outputSize: number): EncoderConfig {
  const shape = {
    ...{ layers: 2, hiddenSize: 32, intermediateSize: 48, heads: 2, headSize: 16 },
    ...{ patchSize: 4, temporalPatchSize: 1, mergeSize: 2, outputSize, normEps: 1e-6 },
  };
  switch (kind) {
    case 'siglip':
      return { ...shape, kind, imageSize: 16, side: 4 };
    case 'qwen2_5_vl':
      return { ...shape, kind, windowSide: 1, fullLayers: new Set([1]), ropeTheta: 10_000 };
    case 'qwen3_vl':
      return { ...shape, kind, side: 4, positions: 16, deepLayers: [0], deepMergers: [0], ropeTheta: 10_000 };
  }
}

/** Returns the decoder as models of the encoder's family have it: positions with axes, and features of early layers. */
function seeing(config: DecoderConfig, kind: EncoderConfig['kind']): DecoderConfig {
  if (kind === 'siglip') return config;
  const rotaryAxes = Array.from({ length: config.headSize / 2 }, (_, i) => i % 3);
  return { ...config, rotaryAxes, ...(kind === 'qwen3_vl' && { deepFeatures: 1 }) };
}

/** Encodes, scores and trains with pictures on a provider; `products` is the precision of the decoder's matmuls. */
export async function computePictured(
  { encoder: kind, trained }: Pick<PictureUse, 'encoder' | 'trained'>,
  { config, loss, optimizer }: CheckedDecoder,
  options: SessionOptions,
  products: FloatType = 'float32',
): Promise<PicturedResults> {
  const stream = new RandomStream(29);
  const encoding = smallEncoder(kind, config.hiddenSize);
  const decoder = seeing(config, kind);
  const own = randomWeights(parameterSpecs(decoder), stream);
  const seen = randomWeights(encoderSpecs(encoding), stream);
  const specs = trained ? [...own.specs, ...seen.specs] : own.specs;
  const all = new Weights(specs, Float32Array.from(trained ? [...own.flat, ...seen.flat] : own.flat));
  const bank = await openBank(all, options);
  const network = trainedNetwork(decoder);
  const policy = new Policy({ ...network, plan: { ...network.plan, products } }, bank, options);
  const frozen = {
    config: encoding,
    plan: { specs: seen.specs, source: (name: string) => ({ kind: 'memory' as const, data: seen.view(name) }) },
  };
  const encoder = new PictureEncoder(trained ? trainedEncoder(encoding) : frozen, trained ? bank : undefined, options);
  const pictures = [4, kind === 'siglip' ? 4 : 6].map(columns => randomPatches(4, columns, encoding, stream));
  const images = await encoder.features(pictures);
  const samples = picturedSamples(pictures, encoding, decoder, stream);
  const budget = { maxTokens: 60, maxRows: 4 };
  const { logprobs } = await policy.score(samples, budget, loss.temperature, undefined, { images });
  const metrics = await policy.update(samples, budget, loss, optimizer, 0, undefined, images);
  const gradient = await bank.readGradient();
  await encoder.release();
  if (bank instanceof DeviceParameters) await bank.release();
  const { pg_loss, kl_loss, entropy, grad_norm } = metrics;
  return {
    values: {
      'image features': Float32Array.from(images.values.data as Float32Array),
      'log-probs of prompts with pictures': Float32Array.from(logprobs.flatMap(row => [...row])),
    },
    loss: Object.fromEntries(
      Object.entries({ pg_loss, kl_loss, entropy, grad_norm }).map(([name, x]) => [`${name} with pictures`, x]),
    ),
    gradient,
  };
}

/** Returns random weights; those of norms are near 1. */
export function randomWeights(specs: Weights['specs'], stream: RandomStream): Weights {
  const weights = new Weights(specs);
  for (const { name, dims } of specs) {
    const view = weights.view(name);
    const isNorm = dims.length === 1 && name.endsWith('.weight');
    for (let i = 0; i < view.length; i++)
      view[i] = (isNorm ? 1 : 0) + (dims.length === 1 ? 0.1 : 0.2) * stream.normal();
  }
  return weights;
}

const randomPatches = (rows: number, columns: number, c: EncoderConfig, stream: RandomStream): PicturePatches => ({
  rows,
  columns,
  values: Float32Array.from({ length: rows * columns * patchWidth(c) }, () => stream.normal()),
});

/** Returns samples: two share a prefix that shows the first picture, the third shows the second one, the last shows none. */
function picturedSamples(
  pictures: readonly PicturePatches[],
  c: EncoderConfig,
  { vocabSize, rotaryAxes }: DecoderConfig,
  stream: RandomStream,
): (WeightedSample & { pictures?: ShownFeatures })[] {
  const ids = (n: number): number[] => Array.from({ length: n }, () => stream.integer(vocabSize));
  const counts = pictures.map(picture => featureCount(picture, c));
  const start = 3;
  const prompts = [ids(start + counts[0] + 3), ids(start + counts[1] + 2), ids(7)];
  return [0, 0, 1, undefined].map(shown => {
    const prompt = prompts[shown ?? 2];
    const own = Int32Array.from([...prompt, ...ids(6)]);
    const vector = (draw: () => number): Float32Array => Float32Array.from(own, draw);
    return {
      ids: own,
      mask: Uint8Array.from(own, (_, t) => Number(t >= prompt.length)),
      old_logprobs: vector(() => -4.5 + 0.5 * stream.normal()),
      ref_logprobs: vector(() => -4.5 + 0.5 * stream.normal()),
      advantages: vector(() => stream.normal()),
      weights: vector(() => 0.05),
      ...(shown !== undefined && {
        pictures: showFeatures(own.length, [
          {
            ...{ start, count: counts[shown], feature: shown === 0 ? 0 : counts[0] },
            columns: rotaryAxes && pictures[shown].columns / c.mergeSize,
          },
        ]),
      }),
    };
  });
}
