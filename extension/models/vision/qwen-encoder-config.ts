// Parses the section vision_config of Qwen2.5-VL's config.json: a vision transformer with RMSNorm, SwiGLU, rotary
// positions of two axes, attention within windows in most layers, and a merger of neighbouring patches.
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import type { ParameterSpec } from '../decoder/decoder-config';
import type { EncoderShape } from './encoder-shape';
import { patchWidth } from './encoder-shape';

const positive = z.number().int().positive();

const schema = z.looseObject({
  depth: positive.max(10_000).default(32), // bounds the list of expected tensors
  hidden_size: positive.default(3584),
  hidden_act: z.enum(['silu', 'swish']).default('silu'),
  intermediate_size: positive.default(3420),
  num_heads: positive.default(16),
  in_channels: z.literal(3).default(3),
  patch_size: positive.default(14),
  spatial_merge_size: positive.default(2),
  temporal_patch_size: positive.default(2),
  window_size: positive.default(112),
  out_hidden_size: positive.default(3584),
  fullatt_block_indexes: z.array(z.number().int()).default([7, 15, 23, 31]),
  rope_parameters: z
    .looseObject({ rope_type: z.literal('axial').nullish(), rope_theta: z.number().positive().nullish() })
    .nullish(),
});

export interface QwenEncoderConfig extends EncoderShape {
  kind: 'qwen2_5_vl';
  /** Merged squares along each side of a window. */
  windowSide: number;
  /** Layers whose patches attend to their complete picture instead of their window. */
  fullLayers: ReadonlySet<number>;
  ropeTheta: number;
}

/**
 * Parses the section; `place` is used only in errors.
 * @throws UserError for invalid or unsupported values
 */
export function parseQwenEncoder(json: unknown, place: string): QwenEncoderConfig {
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UserError(
      `${place}: ${issue.path.join('.')}: ${issue.message}: use the config.json of a model of type qwen2_5_vl`,
    );
  }
  const c = parsed.data;
  const headSize = c.hidden_size / c.num_heads;
  if (headSize % 4 !== 0)
    throw new UserError(
      `${place}: hidden_size is ${c.hidden_size} with num_heads ${c.num_heads}, which is not supported: use a model whose head size is a multiple of 4, because rotary positions rotate pairs along two axes`,
    );
  const windowSide = Math.floor(Math.floor(c.window_size / c.spatial_merge_size) / c.patch_size);
  if (windowSide === 0)
    throw new UserError(
      `${place}: window_size is ${c.window_size}, which is not supported: use a model whose windows hold at least one merged patch (${c.patch_size * c.spatial_merge_size} pixels)`,
    );
  return {
    kind: 'qwen2_5_vl',
    layers: c.depth,
    hiddenSize: c.hidden_size,
    intermediateSize: c.intermediate_size,
    heads: c.num_heads,
    headSize,
    patchSize: c.patch_size,
    temporalPatchSize: c.temporal_patch_size,
    mergeSize: c.spatial_merge_size,
    windowSide,
    fullLayers: new Set(c.fullatt_block_indexes),
    outputSize: c.out_hidden_size,
    ropeTheta: c.rope_parameters?.rope_theta ?? 10_000,
    normEps: 1e-6,
  };
}

/** Returns the specs of the encoder's parameters under Hugging Face names, in a fixed order. */
export function qwenEncoderSpecs(c: QwenEncoderConfig): ParameterSpec[] {
  const specs: ParameterSpec[] = [
    {
      name: 'visual.patch_embed.proj.weight',
      dims: [c.hiddenSize, patchWidth(c)],
      stored: [c.hiddenSize, 3, c.temporalPatchSize, c.patchSize, c.patchSize],
    },
  ];
  const linear = (name: string, out: number, from: number): void => {
    specs.push({ name: `visual.${name}.weight`, dims: [out, from] }, { name: `visual.${name}.bias`, dims: [out] });
  };
  for (let i = 0; i < c.layers; i++) {
    const block = `blocks.${i}`;
    specs.push({ name: `visual.${block}.norm1.weight`, dims: [c.hiddenSize] });
    specs.push({ name: `visual.${block}.norm2.weight`, dims: [c.hiddenSize] });
    linear(`${block}.attn.qkv`, 3 * c.hiddenSize, c.hiddenSize);
    linear(`${block}.attn.proj`, c.hiddenSize, c.hiddenSize);
    linear(`${block}.mlp.gate_proj`, c.intermediateSize, c.hiddenSize);
    linear(`${block}.mlp.up_proj`, c.intermediateSize, c.hiddenSize);
    linear(`${block}.mlp.down_proj`, c.hiddenSize, c.intermediateSize);
  }
  const merged = c.hiddenSize * c.mergeSize ** 2;
  specs.push({ name: 'visual.merger.ln_q.weight', dims: [c.hiddenSize] });
  linear('merger.mlp.0', merged, merged);
  linear('merger.mlp.2', c.outputSize, merged);
  return specs;
}
