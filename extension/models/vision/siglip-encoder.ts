// The vision encoder of Idefics3 and SmolVLM (SigLIP) and the projection of its patches to image features. Patches are
// packed: activations are [patches, width], one row per patch. The inputs are made by encoder-feeds.ts.
import { checkpoint } from '../../engine/graph/autodiff';
import { geluTanh, layerNorm } from '../../engine/graph/encoder-ops';
import type { Graph, Value } from '../../engine/graph/graph';
import { add, reshape } from '../../engine/graph/ops';
import type { DecoderParameters } from '../decoder/decoder-parameters';
import { blockAttention } from './encoder-attention';
import { patchWidth } from './encoder-shape';
import type { SiglipConfig } from './siglip-config';

/**
 * Returns the image features [features, outputSize], one per merged square of patches. Declares these inputs:
 * * patches [patches, patchWidth], and patch_positions [patches], rows of the table of learned positions
 * * those of blockAttention for `picture`; each block is a tile
 *
 * `checkpointed`: whether each layer's intermediate values are recomputed in the backward pass.
 */
export function siglipFeatures(g: Graph, c: SiglipConfig, parameters: DecoderParameters, checkpointed = false): Value {
  const patches = g.input('patches', 'float32', ['patches', patchWidth(c)]);
  const positions = g.input('patch_positions', 'int64', ['patches']);
  const tower = 'model.vision_model';
  const norm = (x: Value, name: string): Value => {
    const [weight, bias] = ['weight', 'bias'].map(part => parameters.vector(`${tower}.${name}.${part}`));
    return layerNorm(g, x, weight, bias, c.normEps);
  };
  const linear = (x: Value, name: string): Value => parameters.linear(`${tower}.${name}`, x);
  const attend = blockAttention(g, c, 'picture');
  const layer = (i: number, x: Value): Value => {
    const prefix = `encoder.layers.${i}`;
    const normed = norm(x, `${prefix}.layer_norm1`);
    const [q, k, v] = ['q', 'k', 'v'].map(name => linear(normed, `${prefix}.self_attn.${name}_proj`));
    const attended = add(g, x, linear(attend(q, k, v), `${prefix}.self_attn.out_proj`));
    const inner = geluTanh(g, linear(norm(attended, `${prefix}.layer_norm2`), `${prefix}.mlp.fc1`));
    return add(g, attended, linear(inner, `${prefix}.mlp.fc2`));
  };
  const table = parameters.embed(`${tower}.embeddings.position_embedding.weight`, positions);
  let x = add(g, linear(patches, 'embeddings.patch_embedding'), table);
  for (let i = 0; i < c.layers; i++) x = checkpointed ? checkpoint(g, x, inner => layer(i, inner)) : layer(i, x);
  // Pixel shuffle: the patches of a merged square are consecutive rows.
  const merged = reshape(g, norm(x, 'post_layernorm'), ['features', c.hiddenSize * c.mergeSize ** 2]);
  return parameters.linear('model.connector.modality_projection.proj', merged);
}
