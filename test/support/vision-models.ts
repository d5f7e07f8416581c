// Golden vision-language models (test/golden/make/vision_models.py), their pictures and conversations, and passes of
// their decoder over conversations.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Session } from '../../extension/engine/session/session';
import type { Tensor } from '../../extension/engine/session/session';
import type { ShownFeatures } from '../../extension/engine/training-samples';
import type { ParameterPlan } from '../../extension/models/decoder/decoder-parameters';
import { batchFeeds, scalarFeeds } from '../../extension/models/graphs/batch-feeds';
import type { Pass, Sample } from '../../extension/models/graphs/pass-plan';
import type { Network, PackedShape } from '../../extension/models/graphs/policy-graphs';
import type { Graph } from '../../extension/engine/graph/graph';
import { encoderFeeds, featureCount } from '../../extension/models/vision/encoder-feeds';
import { encodeGraph } from '../../extension/models/vision/encoder-graphs';
import type { EncoderNetwork } from '../../extension/models/vision/encoder-graphs';
import type { PicturePatches } from '../../extension/models/vision/patches';
import { showFeatures } from '../../extension/models/vision/shown-features';
import type { PlacedPicture } from '../../extension/models/vision/shown-features';
import { tilePatches } from '../../extension/models/vision/tile-patches';
import { readVisionModel } from '../../extension/models/vision/vision-folder';
import type { VisionModel } from '../../extension/models/vision/vision-folder';
import type { Weights } from '../../extension/models/weights/weights';
import { tensorsOf } from '../golden/tensors';

/** Name of a parameter in the golden files. */
export function goldenName(family: string, name: string): string {
  if (name.startsWith('visual.')) return `model.${name}`;
  if (name.startsWith('model.vision_model') || name.startsWith('model.connector')) return name;
  return name.replace('model.', family.startsWith('qwen') ? 'model.language_model.' : 'model.text_model.');
}

export const inputPlan = ({ specs }: Weights): ParameterPlan => ({ specs, source: () => ({ kind: 'input' }) });

/** A picture's patches: one part, or one per tile. */
interface GoldenPicture {
  parts: PicturePatches[];
  /** Number of image features. */
  features: number;
}

export interface GoldenVision {
  model: VisionModel;
  network: Network;
  encoder: EncoderNetwork;
  pictures: GoldenPicture[];
  /** The golden conversations; all tokens except the first are trained on. */
  samples: Sample[];
  /** Indices of the pictures that each conversation shows. */
  shown: number[][];
  /** Three turns of one conversation. */
  turns: Turn[];
  showing(ids: readonly number[], pictures: readonly number[]): ShownFeatures;
  of(name: string): Float32Array;
}

interface Turn {
  append: number[];
  pictures: number[];
  /** Greedy tokens and their log-probs. */
  tokens: number[];
  logprobs: number[];
}

interface Conversations {
  shown: number[][];
  turns: Turn[];
}

export async function goldenVision(family: string): Promise<GoldenVision> {
  const folder = join('test/golden/vision', family);
  const golden = tensorsOf(join(folder, 'golden.safetensors'));
  const of = (name: string): Float32Array => golden.get(name)!.data;
  const model = await readVisionModel(folder);
  const { decoder, encoder, imageToken } = model.config;
  const pictures = [0, 1].map((i): GoldenPicture => {
    const values = of(`pixels.${i}`);
    const parts =
      encoder.kind === 'siglip'
        ? tilePatches({ count: golden.get(`pixels.${i}`)!.dims[0], values }, encoder)
        : [{ rows: of(`grid.${i}`)[0], columns: of(`grid.${i}`)[1], values }];
    return { parts, features: parts.reduce((sum, part) => sum + featureCount(part, encoder), 0) };
  });
  const { shown, turns } = JSON.parse(readFileSync(join(folder, 'conversations.json'), 'utf8')) as Conversations;
  /** What the tokens of a conversation show that shows these pictures. */
  const showing = (ids: readonly number[], indices: readonly number[]): ShownFeatures => {
    const starts = [...ids.keys()].filter(i => ids[i] === imageToken && ids[i - 1] !== imageToken);
    const placed = indices.flatMap(index => {
      let feature = index === 0 ? 0 : pictures[0].features;
      return pictures[index].parts.map((part): PlacedPicture => {
        const [count, start] = [featureCount(part, encoder), starts.shift()!];
        const columns = decoder.rotaryAxes ? part.columns / encoder.mergeSize : undefined;
        feature += count;
        return { start, feature: feature - count, count, columns };
      });
    });
    return showFeatures(ids.length, placed);
  };
  const samples = shown.map((indices, row): Sample => {
    const ids = Int32Array.from(of(`ids.${row}`));
    const pictures = indices.length > 0 ? showing([...ids], indices) : undefined;
    return { ids, mask: new Uint8Array(ids.length).fill(1, 1), pictures };
  });
  return {
    model,
    network: { config: decoder, plan: inputPlan(model.decoder) },
    encoder: { config: encoder, plan: inputPlan(model.encoder) },
    pictures,
    samples,
    shown,
    turns,
    showing,
    of,
  };
}

/** Runs a graph once and releases it. */
export async function runOnce(graph: Graph, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
  const session = await Session.create(graph, { threads: 1 });
  try {
    return await session.run(feeds);
  } finally {
    await session.release();
  }
}

/** Encodes all golden pictures together. */
export async function encodeAll({ encoder, model, pictures }: GoldenVision): Promise<Tensor> {
  const { feeds } = encoderFeeds(
    encoder.config,
    pictures.flatMap(({ parts }) => parts),
  );
  const { features } = await runOnce(encodeGraph(encoder, 'cpu'), { ...feeds, ...model.encoder.feeds() });
  return features;
}

/** Runs a graph of the decoder over one pass at the golden files' temperature. */
export async function runPass(
  { network, model }: GoldenVision,
  build: (network: Network, shape: PackedShape) => Graph,
  pass: Pass,
  samples: readonly Sample[],
  features: Tensor,
) {
  const batch = batchFeeds(pass, samples, network.config);
  const { shared } = pass;
  const { trimmed, pictured } = batch;
  const pictures = pictured ? 'shown' : undefined;
  const outputs = await runOnce(
    build(network, { lowering: 'cpu', shared, trimmed, pictures, chunks: 1, checkpointed: false }),
    {
      ...batch.feeds,
      ...scalarFeeds({ inverse_temperature: 1 / 0.7 }),
      features,
      ...model.decoder.feeds(),
    },
  );
  const scattered = (output: string): Float32Array[] => {
    const into: Float32Array[] = [];
    batch.scatter(outputs[output].data as Float32Array, into);
    return into;
  };
  return { outputs, trimmed, pictured, scattered };
}
