// The vision encoder of Qwen2.5-VL: patches of several pictures to image features. Patches are packed: activations are
// [patches, width], one row per patch, so every linear layer is one matmul. Only attention copies patches into blocks,
// one block per window or per picture. The inputs are made by encoder-feeds.ts.
import { checkpoint } from '../../engine/graph/autodiff';
import { gelu, splitColumns } from '../../engine/graph/encoder-ops';
import type { Graph, Value } from '../../engine/graph/graph';
import { rmsNorm, swiglu } from '../../engine/graph/layer-ops';
import { add, reshape } from '../../engine/graph/ops';
import type { DecoderParameters } from '../decoder/decoder-parameters';
import { blockAttention, patchRotation } from './encoder-attention';
import { patchWidth } from './encoder-shape';
import type { QwenEncoderConfig } from './qwen-encoder-config';

/**
 * Returns the image features [features, outputSize], one per merged square of patches. Declares these inputs:
 * * patches [patches, patchWidth]
 * * those of patchRotation, and those of blockAttention for `window` and `picture`
 *
 * `checkpointed`: whether each layer's intermediate values are recomputed in the backward pass.
 */
export function qwenFeatures(
  g: Graph,
  c: QwenEncoderConfig,
  parameters: DecoderParameters,
  checkpointed = false,
): Value {
  const patches = g.input('patches', 'float32', ['patches', patchWidth(c)]);
  const norm = (x: Value, name: string): Value => rmsNorm(g, x, parameters.vector(`visual.${name}.weight`), c.normEps);
  const linear = (x: Value, name: string): Value => parameters.linear(`visual.${name}`, x);
  const rotated = patchRotation(g, c);
  const everyLayer = Array.from({ length: c.layers }, (_, i) => c.fullLayers.has(i));
  const within = everyLayer.includes(false) ? blockAttention(g, c, 'window') : undefined;
  const over = everyLayer.includes(true) ? blockAttention(g, c, 'picture') : undefined;

  const layer = (i: number, x: Value): Value => {
    const block = `blocks.${i}`;
    const attend = (everyLayer[i] ? over : within)!;
    const [q, k, v] = splitColumns(g, linear(norm(x, `${block}.norm1`), `${block}.attn.qkv`), 3);
    const attended = add(g, x, linear(attend(rotated(q), rotated(k), v), `${block}.attn.proj`));
    const middle = norm(attended, `${block}.norm2`);
    const inner = swiglu(g, linear(middle, `${block}.mlp.gate_proj`), linear(middle, `${block}.mlp.up_proj`));
    return add(g, attended, linear(inner, `${block}.mlp.down_proj`));
  };
  let x = parameters.base('visual.patch_embed.proj.weight', patches);
  for (let i = 0; i < c.layers; i++) x = checkpointed ? checkpoint(g, x, inner => layer(i, inner)) : layer(i, x);
  // The patches that are merged are consecutive rows.
  const merged = reshape(g, norm(x, 'merger.ln_q'), ['features', c.hiddenSize * c.mergeSize ** 2]);
  return linear(gelu(g, linear(merged, 'merger.mlp.0')), 'merger.mlp.2');
}
