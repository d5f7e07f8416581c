// Parses the section vision_config of Idefics3's and SmolVLM's config.json: a SigLIP vision transformer (LayerNorm,
// GELU, learned positions) of square tiles, whose neighbouring patches are merged (pixel shuffle) and projected.
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import type { ParameterSpec } from '../decoder/decoder-config';
import { patchWidth } from './encoder-shape';
import type { EncoderShape } from './encoder-shape';

const positive = z.number().int().positive();

const schema = z.looseObject({
  hidden_size: positive.default(1152),
  intermediate_size: positive.default(3072),
  num_hidden_layers: positive.max(10_000).default(12), // bounds the list of expected tensors
  num_attention_heads: positive.default(16),
  num_channels: z.literal(3).default(3),
  image_size: positive.max(16_384).default(224),
  patch_size: positive.default(32),
  hidden_act: z.literal('gelu_pytorch_tanh').default('gelu_pytorch_tanh'),
  layer_norm_eps: z.number().positive().default(1e-6),
});

export interface SiglipConfig extends EncoderShape {
  kind: 'siglip';
  /** Side of a tile in pixels. */
  imageSize: number;
  /** Patches along each side of a tile. */
  side: number;
}

/**
 * Parses the section; `place` is used only in errors. `mergeSize` is scale_factor, and `outputSize` the decoder's hidden
 * size.
 * @throws UserError for invalid or unsupported values
 */
export function parseSiglip(json: unknown, place: string, mergeSize: number, outputSize: number): SiglipConfig {
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UserError(
      `${place}: ${issue.path.join('.')}: ${issue.message}: use the config.json of a model of type idefics3 or smolvlm`,
    );
  }
  const c = parsed.data;
  if (c.hidden_size % c.num_attention_heads !== 0)
    throw new UserError(
      `${place}: hidden_size is ${c.hidden_size}, which is not supported: use a model whose hidden_size is a multiple of num_attention_heads (${c.num_attention_heads})`,
    );
  const side = Math.floor(c.image_size / c.patch_size);
  if (side === 0 || side % mergeSize !== 0)
    throw new UserError(
      `${place}: image_size is ${c.image_size} with patch_size ${c.patch_size}, which is not supported: use a model whose tiles have a multiple of scale_factor (${mergeSize}) patches along each side`,
    );
  return {
    kind: 'siglip',
    layers: c.num_hidden_layers,
    hiddenSize: c.hidden_size,
    intermediateSize: c.intermediate_size,
    heads: c.num_attention_heads,
    headSize: c.hidden_size / c.num_attention_heads,
    patchSize: c.patch_size,
    temporalPatchSize: 1,
    mergeSize,
    outputSize,
    normEps: c.layer_norm_eps,
    imageSize: c.image_size,
    side,
  };
}

/** Returns the specs of the encoder's and the projection's parameters under Hugging Face names, in a fixed order. */
export function siglipSpecs(c: SiglipConfig): ParameterSpec[] {
  const tower = 'model.vision_model';
  const specs: ParameterSpec[] = [];
  const withBias = (name: string, dims: number[], stored?: number[]): void => {
    specs.push({ name: `${tower}.${name}.weight`, dims, ...(stored && { stored }) });
    specs.push({ name: `${tower}.${name}.bias`, dims: [dims[0]] });
  };
  const { hiddenSize, intermediateSize, patchSize } = c;
  withBias('embeddings.patch_embedding', [hiddenSize, patchWidth(c)], [hiddenSize, 3, patchSize, patchSize]);
  specs.push({ name: `${tower}.embeddings.position_embedding.weight`, dims: [c.side ** 2, hiddenSize] });
  for (let i = 0; i < c.layers; i++) {
    const layer = `encoder.layers.${i}`;
    for (const name of ['layer_norm1', 'layer_norm2']) withBias(`${layer}.${name}`, [hiddenSize]);
    for (const name of ['q_proj', 'k_proj', 'v_proj', 'out_proj'])
      withBias(`${layer}.self_attn.${name}`, [hiddenSize, hiddenSize]);
    withBias(`${layer}.mlp.fc1`, [intermediateSize, hiddenSize]);
    withBias(`${layer}.mlp.fc2`, [hiddenSize, intermediateSize]);
  }
  withBias('post_layernorm', [hiddenSize]);
  const merged = hiddenSize * c.mergeSize ** 2;
  specs.push({ name: 'model.connector.modality_projection.proj.weight', dims: [c.outputSize, merged] });
  return specs;
}
