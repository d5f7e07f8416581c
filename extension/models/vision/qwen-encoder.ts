// The vision encoder of Qwen2.5-VL: patches of several pictures to image features. Patches are packed: activations are
// [patches, width], one row per patch, so every linear layer is one matmul. Only attention copies patches into blocks,
// one block per window or per picture. The inputs are made by encoder-feeds.ts.
import { checkpoint } from '../../engine/graph/autodiff';
import { gelu, splitColumns } from '../../engine/graph/encoder-ops';
import type { Graph, Value } from '../../engine/graph/graph';
import { matmul, rmsNorm, rotary, softmaxProduct, swiglu } from '../../engine/graph/layer-ops';
import { add, neg, reshape } from '../../engine/graph/ops';
import { arrange, collect } from '../../engine/graph/packed-ops';
import type { DecoderParameters } from '../decoder/decoder-parameters';
import { patchWidth } from './qwen-encoder-config';
import type { EncoderConfig } from './qwen-encoder-config';

/**
 * Returns the image features [features, outputSize], one per merged square of patches. Declares these inputs:
 * * patches [patches, patchWidth], and patch_rows [patches, 1]: 0, 1, …
 * * patch_cos, patch_sin [patches, headSize/2]: the rotation of each patch
 * * for `window` and `picture`: window_rows [windows, heads, slots], the row (patch, head) in each slot;
 *   window_places [patches·heads], the slot of each row; window_mask [windows, 1, 1, slots], added to scores
 *
 * `checkpointed`: whether each layer's intermediate values are recomputed in the backward pass.
 */
export function imageFeatures(g: Graph, c: EncoderConfig, parameters: DecoderParameters, checkpointed = false): Value {
  const patches = g.input('patches', 'float32', ['patches', patchWidth(c)]);
  const rows = g.input('patch_rows', 'int64', ['patches', 1]);
  const angles = (name: string): Value => g.input(name, 'float32', ['patches', c.headSize / 2]);
  const [cos, sin] = [angles('patch_cos'), angles('patch_sin')];
  const rotation = { cos, sin, sinNegated: neg(g, sin) };
  const norm = (x: Value, name: string): Value => rmsNorm(g, x, parameters.vector(`visual.${name}.weight`), c.normEps);
  const linear = (x: Value, name: string): Value => parameters.linear(`visual.${name}`, x);
  const rotated = (x: Value): Value =>
    reshape(g, rotary(g, reshape(g, x, ['patches', 1, c.hiddenSize]), rows, rotation), x.dims);
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

type BlockAttention = (q: Value, k: Value, v: Value) => Value;

/** Attention among the patches of each block. All three operands are [patches, hiddenSize], as is the result. */
function blockAttention(g: Graph, c: EncoderConfig, name: string): BlockAttention {
  const [blocks, slots] = [`${name}s`, `${name} slots`];
  const rows = g.input(`${name}_rows`, 'int32', [blocks, c.heads, slots]);
  const places = g.input(`${name}_places`, 'int32', ['patches*heads']);
  const mask = g.input(`${name}_mask`, 'float32', [blocks, 1, 1, slots]);
  const arranged = (x: Value): Value => {
    const [block] = arrange(g, reshape(g, x, ['patches*heads', c.headSize]), [rows], places);
    return block;
  };
  return (q, k, v) => {
    const scores = matmul(g, arranged(q), arranged(k), { transB: true, alpha: c.headSize ** -0.5 });
    const context = softmaxProduct(g, add(g, scores, mask), arranged(v));
    return reshape(g, collect(g, [context], [rows], places), q.dims);
  };
}
