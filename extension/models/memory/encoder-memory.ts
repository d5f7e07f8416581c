// Memory of a vision encoder: what one of its passes needs, without or with gradient, and the image features that are kept
// and copied. The sizes of a pass are those of the picture with the most image tokens.
import { maximum } from '../../common/lists';
import { graphMemory } from '../../engine/graph/graph-memory';
import type { FileTensor } from '../decoder/decoder-parameters';
import { adaptedEncoder, trainedEncoder } from '../decoder/networks';
import { encoderSpecs, featureWidth } from '../vision/encoder-config';
import type { EncoderConfig } from '../vision/encoder-config';
import { encodeGraph, encoderGradientGraph } from '../vision/encoder-graphs';
import type { EncoderNetwork } from '../vision/encoder-graphs';
import { patchWidth } from '../vision/encoder-shape';
import { encoderBatches, mostTogether } from '../vision/picture-encoder';
import { keptFeatureBytes } from '../vision/picture-features';
import type { PatchGrid } from '../vision/patches';
import { measured } from './measured-memory';
import type { PicturePlan, PlanInput } from './plan-input';

/**
 * Returns the bytes of the arena after the largest picture was encoded, with others of its size if the encoder is narrow,
 * and of the patches on the host.
 */
export function encodingBytes({ encoder, stored, grids }: PicturePlan): number {
  const memory = graphMemory(encodeGraph(frozenEncoder(encoder, stored), 'cpu'));
  const together = Array.from({ length: mostTogether(encoder) }, () => grids).flat();
  const pass = encoderBatches(together).map(batch => {
    const { peak, outputs } = memory(encoderSizes(encoder, batch));
    const patches = batch.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    // Each patch is in the picture's patches and in the feeds of its batch.
    return measured.arena * (peak + scoreBytes(encoder, batch)) + outputs + 2 * 4 * patches * patchWidth(encoder);
  });
  return maximum(pass);
}

/**
 * Returns the bytes of the arena after the largest picture's forward and backward pass through the trained encoder, and of
 * its patches. The gradients of the encoder's parameters are counted with those of the policy.
 */
export function encoderGradientBytes(
  { encoder, stored, grids }: PicturePlan,
  { lora, decoder, checkpointed }: Pick<PlanInput, 'lora' | 'decoder' | 'checkpointed'>,
): number {
  const network = lora ? adaptedEncoder(frozenEncoder(encoder, stored), decoder, lora) : trainedEncoder(encoder);
  const memory = graphMemory(encoderGradientGraph(network, 'cpu', checkpointed));
  const pass = encoderBatches(grids).map(batch => {
    const { peak, outputs } = memory(encoderSizes(encoder, batch));
    const patches = batch.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    return measured.arena * (peak + scoreBytes(encoder, batch)) - outputs + 2 * 4 * patches * patchWidth(encoder);
  });
  return maximum(pass);
}

/**
 * Returns the bytes of the largest attention scores of a batch. onnxruntime holds them twice at a time, with and without
 * the mask, which `graphMemory` counts once; measured on pictures of 1024 to 2500 patches.
 */
function scoreBytes(c: EncoderConfig, batch: readonly PatchGrid[]): number {
  const sizes = encoderSizes(c, batch);
  const scores = (blocks: string, slots: string): number => (sizes(blocks) ?? 0) * (sizes(slots) ?? 0) ** 2;
  return 4 * c.heads * Math.max(scores('pictures', 'picture slots'), scores('windows', 'window slots'));
}

/** Returns the bytes of the features that are kept for pictures that are shown again. */
export function keptBytes({ encoder, tokens, pictures }: PicturePlan): number {
  return Math.min(keptFeatureBytes, pictures * tokens * featureWidth(encoder) * 4);
}

/**
 * Returns the bytes of the features that a call of the engine joins for `sequences` sequences, and of their copies for its
 * passes.
 */
export const joinedBytes = ({ encoder, perSequence }: PicturePlan, sequences: number): number =>
  2 * sequences * perSequence * featureWidth(encoder) * 4;

/** An encoder in its files; its graphs are never run, so the file locations are dummies. */
function frozenEncoder(config: EncoderConfig, dtype: FileTensor['dtype']): EncoderNetwork {
  const source = (): FileTensor => ({ kind: 'file', dtype, file: '', offset: 0, bytes: 0 });
  return { config, plan: { specs: encoderSpecs(config), source } };
}

/** Returns the sizes of the graph's dimensions for a batch of pictures or tiles; blocks are padded to the longest. */
function encoderSizes(c: EncoderConfig, batch: readonly PatchGrid[]): (symbol: string) => number | undefined {
  const unit = c.mergeSize ** 2;
  const patches = batch.reduce((sum, { rows, columns }) => sum + rows * columns, 0) + unit;
  const sizes: Record<string, number> = {
    patches,
    features: patches / unit,
    'patches*heads': patches * c.heads,
    pictures: batch.length,
    'picture slots': maximum(batch.map(({ rows, columns }) => rows * columns)) + 1,
  };
  if (c.kind === 'qwen2_5_vl') {
    const side = c.windowSide * c.mergeSize;
    const windows = batch.map(({ rows, columns }) => Math.ceil(rows / side) * Math.ceil(columns / side));
    sizes.windows = windows.reduce((sum, count) => sum + count, 0);
    sizes['window slots'] = side ** 2 + 1;
  }
  return symbol => sizes[symbol];
}
