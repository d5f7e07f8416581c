// Parses the section vision_config of Qwen3-VL's config.json: a vision transformer with LayerNorm, GELU, a table of
// learned positions that is interpolated to the picture's size, rotary positions of two axes, and mergers of
// neighbouring patches after the last and after some earlier layers (DeepStack, arXiv 2406.04334).
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import type { ParameterSpec } from '../decoder/decoder-config';
import { patchWidth } from './encoder-shape';
import type { EncoderShape } from './encoder-shape';

const positive = z.number().int().positive();

const schema = z.looseObject({
  depth: positive.max(10_000).default(27), // bounds the list of expected tensors
  hidden_size: positive.default(1152),
  hidden_act: z.literal('gelu_pytorch_tanh').default('gelu_pytorch_tanh'),
  intermediate_size: positive.default(4304),
  num_heads: positive.default(16),
  in_channels: z.literal(3).default(3),
  patch_size: positive.default(16),
  spatial_merge_size: positive.default(2),
  temporal_patch_size: positive.default(2),
  out_hidden_size: positive.default(3584),
  num_position_embeddings: positive.max(2 ** 24).default(2304),
  deepstack_visual_indexes: z.array(z.number().int().nonnegative()).default([8, 16, 24]),
  rope_parameters: z
    .looseObject({ rope_type: z.literal('axial').nullish(), rope_theta: z.number().positive().nullish() })
    .nullish(),
});

export interface Qwen3EncoderConfig extends EncoderShape {
  kind: 'qwen3_vl';
  /** Positions along each side of the table of learned positions. */
  side: number;
  /** Rows of this table. */
  positions: number;
  /** Layers after which patches are merged to additional features, ascending. */
  deepLayers: readonly number[];
  /** Merger of each of these layers. */
  deepMergers: readonly number[];
  ropeTheta: number;
}

/**
 * Parses the section; `place` is used only in errors. `decoderLayers` is the number of the decoder's layers.
 * @throws UserError for invalid or unsupported values
 */
export function parseQwen3Encoder(json: unknown, place: string, decoderLayers: number): Qwen3EncoderConfig {
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UserError(
      `${place}: ${issue.path.join('.')}: ${issue.message}: use the config.json of a model of type qwen3_vl`,
    );
  }
  const c = parsed.data;
  const headSize = c.hidden_size / c.num_heads;
  if (headSize % 4 !== 0)
    throw new UserError(
      `${place}: hidden_size is ${c.hidden_size} with num_heads ${c.num_heads}, which is not supported: use a model whose head size is a multiple of 4, because rotary positions rotate pairs along two axes`,
    );
  const given = c.deepstack_visual_indexes;
  const deepLayers = [...given].sort((a, b) => a - b);
  if (new Set(given).size < given.length || given.length >= decoderLayers || (deepLayers.at(-1) ?? 0) >= c.depth)
    throw new UserError(
      `${place}: deepstack_visual_indexes is ${JSON.stringify(given)}, which is not supported: use a model with different layers of the encoder (${c.depth} layers), fewer than the decoder has (${decoderLayers} layers)`,
    );
  return {
    kind: 'qwen3_vl',
    layers: c.depth,
    hiddenSize: c.hidden_size,
    intermediateSize: c.intermediate_size,
    heads: c.num_heads,
    headSize,
    patchSize: c.patch_size,
    temporalPatchSize: c.temporal_patch_size,
    mergeSize: c.spatial_merge_size,
    outputSize: c.out_hidden_size,
    normEps: 1e-6,
    side: Math.floor(Math.sqrt(c.num_position_embeddings)),
    positions: c.num_position_embeddings,
    deepLayers,
    deepMergers: deepLayers.map(layer => given.indexOf(layer)),
    ropeTheta: c.rope_parameters?.rope_theta ?? 10_000,
  };
}

/** Returns the specs of the encoder's parameters under Hugging Face names, in a fixed order. */
export function qwen3EncoderSpecs(c: Qwen3EncoderConfig): ParameterSpec[] {
  const specs: ParameterSpec[] = [];
  const { hiddenSize, patchSize } = c;
  const withBias = (name: string, dims: number[], stored?: number[]): void => {
    specs.push({ name: `visual.${name}.weight`, dims, ...(stored && { stored }) });
    specs.push({ name: `visual.${name}.bias`, dims: [dims[0]] });
  };
  const stored = [hiddenSize, 3, c.temporalPatchSize, patchSize, patchSize];
  withBias('patch_embed.proj', [hiddenSize, patchWidth(c)], stored);
  specs.push({ name: 'visual.pos_embed.weight', dims: [c.positions, hiddenSize] });
  for (let i = 0; i < c.layers; i++) {
    const block = `blocks.${i}`;
    for (const name of ['norm1', 'norm2']) withBias(`${block}.${name}`, [hiddenSize]);
    withBias(`${block}.attn.qkv`, [3 * hiddenSize, hiddenSize]);
    withBias(`${block}.attn.proj`, [hiddenSize, hiddenSize]);
    withBias(`${block}.mlp.linear_fc1`, [c.intermediateSize, hiddenSize]);
    withBias(`${block}.mlp.linear_fc2`, [hiddenSize, c.intermediateSize]);
  }
  const merged = hiddenSize * c.mergeSize ** 2;
  const merger = (name: string, normSize: number): void => {
    withBias(`${name}.norm`, [normSize]);
    withBias(`${name}.linear_fc1`, [merged, merged]);
    withBias(`${name}.linear_fc2`, [c.outputSize, merged]);
  };
  merger('merger', hiddenSize);
  c.deepLayers.forEach((_, i) => merger(`deepstack_merger_list.${i}`, merged));
  return specs;
}
