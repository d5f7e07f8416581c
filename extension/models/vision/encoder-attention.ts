// Attention of vision encoders. Patches are packed without padding; attention copies them into blocks, one per window or
// per picture, and back.
import type { Graph, Value } from '../../engine/graph/graph';
import { matmul, rotary, softmaxProduct } from '../../engine/graph/layer-ops';
import { add, neg, reshape } from '../../engine/graph/ops';
import { arrange, collect } from '../../engine/graph/packed-ops';
import type { EncoderShape } from './encoder-shape';

/** Returns the attention of q over k and v, all [patches, hiddenSize]. */
export type BlockAttention = (q: Value, k: Value, v: Value) => Value;

/**
 * Attention among the patches of each block, without a causal mask. Declares these inputs, for `window` for example:
 * * window_rows [windows, heads, slots]: the row (patch, head) in each slot
 * * window_places [patches·heads]: the slot of each row
 * * window_mask [windows, 1, 1, slots], added to scores
 */
export function blockAttention(g: Graph, c: EncoderShape, name: 'window' | 'picture'): BlockAttention {
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

/**
 * Returns a function that rotates queries or keys [patches, hiddenSize] by each patch's row and column. Declares the
 * inputs patch_rows [patches, 1]: 0, 1, …; and patch_cos, patch_sin [patches, headSize/2].
 */
export function patchRotation(g: Graph, c: EncoderShape): (x: Value) => Value {
  const rows = g.input('patch_rows', 'int64', ['patches', 1]);
  const angles = (name: string): Value => g.input(name, 'float32', ['patches', c.headSize / 2]);
  const [cos, sin] = [angles('patch_cos'), angles('patch_sin')];
  const rotation = { cos, sin, sinNegated: neg(g, sin) };
  return x => reshape(g, rotary(g, reshape(g, x, ['patches', 1, c.hiddenSize]), rows, rotation), x.dims);
}
