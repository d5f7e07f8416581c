// Two ways in which a query attends: over its own whole sequence (training and scoring, differentiable), and over a cache of past
// keys and values plus the tokens of this call (generation). Grouped-query attention without copying keys: the queries that share a
// key head are stacked along time, so one product per key head serves them all.
import type { Dim, Graph, Value } from '../engine/graph';
import { matmul, softmax } from '../engine/layer-ops';
import { add, reshape } from '../engine/ops';
import type { Attend } from './decoder';
import type { DecoderConfig } from './decoder-config';

/** Causal attention within right-padded sequences. `mask` [t, t] holds 0 where a query may look and −inf-like values elsewhere. */
export function causalAttention(g: Graph, c: DecoderConfig, mask: Value): Attend {
  const groups = c.heads / c.kvHeads;
  return (_layer, q, k, v) => {
    const [b, , t] = q.dims;
    const stacked: Dim[] = [b, c.kvHeads, stackedTime(t, groups), c.headSize];
    const scores = matmul(g, reshape(g, q, stacked), k, { transB: true, alpha: c.headSize ** -0.5 });
    const masked = add(g, reshape(g, scores, [b, c.kvHeads, groups, t, t]), mask);
    const weights = reshape(g, softmax(g, masked), scores.dims);
    return reshape(g, matmul(g, weights, v), [b, c.heads, t, c.headSize]);
  };
}

export interface PastInputs {
  /** Per layer, [b, kvHeads, s, headSize]. */
  keys: Value[];
  values: Value[];
  /** [b, 1, 1, 1, s]: 0 for filled slots of the row, −inf-like elsewhere. */
  pastMask: Value;
  /** [t, t]: causal within this call's tokens. */
  newMask: Value;
}

/** Attention over cached keys and values and the new ones; the new keys and values become outputs `key.i`, `value.i`. */
export function cachedAttention(g: Graph, c: DecoderConfig, past: PastInputs): Attend {
  const groups = c.heads / c.kvHeads;
  return (layer, q, k, v) => {
    g.output(`key.${layer}`, k);
    g.output(`value.${layer}`, v);
    const [b, , t] = q.dims;
    const s = past.keys[layer].dims[2];
    const stacked: Dim[] = [b, c.kvHeads, stackedTime(t, groups), c.headSize];
    const queries = reshape(g, q, stacked);
    const scored = (keys: Value, mask: Value, length: Dim): Value => {
      const scores = matmul(g, queries, keys, { transB: true, alpha: c.headSize ** -0.5 });
      return add(g, reshape(g, scores, [b, c.kvHeads, groups, t, length]), mask);
    };
    const all = g.emit(
      'Concat',
      [scored(past.keys[layer], past.pastMask, s), scored(k, past.newMask, t)],
      'float32',
      [b, c.kvHeads, groups, t, 's+t'],
      { axis: 4 },
    );
    const weights = g.emit('Softmax', [all], 'float32', all.dims, { axis: 4 });
    const sizes = g.emit('Concat', [g.symbolSize(String(s)), g.symbolSize(String(t))], 'int64', [2], { axis: 0 });
    const [onPast, onNew] = g.emitMany(
      'Split',
      [weights, sizes],
      [
        { type: 'float32', dims: [b, c.kvHeads, groups, t, s] },
        { type: 'float32', dims: [b, c.kvHeads, groups, t, t] },
      ],
      { axis: 4 },
    );
    const context = add(
      g,
      matmul(g, reshape(g, onPast, [b, c.kvHeads, stackedTime(t, groups), s]), past.values[layer]),
      matmul(g, reshape(g, onNew, [b, c.kvHeads, stackedTime(t, groups), t]), v),
    );
    return reshape(g, context, [b, c.heads, t, c.headSize]);
  };
}

const stackedTime = (t: Dim, groups: number): Dim =>
  typeof t === 'number' ? t * groups : groups === 1 ? t : `${groups}*${t}`;
