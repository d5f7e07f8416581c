// The vision encoder of Qwen3-VL. Patches are packed: activations are [patches, width], one row per patch. The inputs are
// made by encoder-feeds.ts.
import { checkpoint } from '../../engine/graph/autodiff';
import { gelu, geluTanh, layerNorm, splitColumns } from '../../engine/graph/encoder-ops';
import type { Graph, Value } from '../../engine/graph/graph';
import { matmul } from '../../engine/graph/layer-ops';
import { add, reshape } from '../../engine/graph/ops';
import { concatLast } from '../../engine/graph/packed-ops';
import type { DecoderParameters } from '../decoder/decoder-parameters';
import { blockAttention, patchRotation } from './encoder-attention';
import { patchWidth } from './encoder-shape';
import type { Qwen3EncoderConfig } from './qwen3-encoder-config';

/**
 * Returns the image features [features, outputSize · (1 + deepLayers)], one per merged square of patches: the feature
 * that replaces a token's embedding, and those that are added after the decoder's first layers. Declares these inputs:
 * * patches [patches, patchWidth]
 * * position_taps [patches, 4] and position_weights [patches, 1, 4]: rows of the table of learned positions, and their
 *   weights
 * * those of patchRotation, and those of blockAttention for `picture`
 *
 * `checkpointed`: whether each layer's intermediate values are recomputed in the backward pass.
 */
export function qwen3Features(
  g: Graph,
  c: Qwen3EncoderConfig,
  parameters: DecoderParameters,
  checkpointed = false,
): Value {
  const patches = g.input('patches', 'float32', ['patches', patchWidth(c)]);
  const taps = g.input('position_taps', 'int64', ['patches', 4]);
  const weights = g.input('position_weights', 'float32', ['patches', 1, 4]);
  const rotated = patchRotation(g, c);
  const attend = blockAttention(g, c, 'picture');
  const linear = (x: Value, name: string): Value => parameters.linear(`visual.${name}`, x);
  const norm = (x: Value, name: string): Value => {
    const [weight, bias] = ['weight', 'bias'].map(part => parameters.vector(`visual.${name}.${part}`));
    return layerNorm(g, x, weight, bias, c.normEps);
  };
  const layer = (i: number, x: Value): Value => {
    const block = `blocks.${i}`;
    const [q, k, v] = splitColumns(g, linear(norm(x, `${block}.norm1`), `${block}.attn.qkv`), 3);
    const attended = add(g, x, linear(attend(rotated(q), rotated(k), v), `${block}.attn.proj`));
    const inner = geluTanh(g, linear(norm(attended, `${block}.norm2`), `${block}.mlp.linear_fc1`));
    return add(g, attended, linear(inner, `${block}.mlp.linear_fc2`));
  };
  // The patches that are merged are consecutive rows.
  const inSquares = (x: Value): Value => reshape(g, x, ['features', c.hiddenSize * c.mergeSize ** 2]);
  const projected = (x: Value, name: string): Value =>
    linear(gelu(g, linear(x, `${name}.linear_fc1`)), `${name}.linear_fc2`);

  const table = matmul(g, weights, parameters.embed('visual.pos_embed.weight', taps));
  let x = add(g, linear(patches, 'patch_embed.proj'), reshape(g, table, ['patches', c.hiddenSize]));
  const deep: Value[] = [];
  for (let i = 0; i < c.layers; i++) {
    x = checkpointed ? checkpoint(g, x, inner => layer(i, inner)) : layer(i, x);
    const level = c.deepLayers.indexOf(i);
    if (level < 0) continue;
    const name = `deepstack_merger_list.${c.deepMergers[level]}`;
    deep.push(projected(norm(inSquares(x), `${name}.norm`), name));
  }
  const first = projected(inSquares(norm(x, 'merger.norm')), 'merger');
  return deep.reduce((all, level) => concatLast(g, all, level, Number(all.dims[1]) + c.outputSize), first);
}
