// How packed tokens attend: among themselves (training and scoring, differentiable), or over a cache of past keys and values plus the
// tokens of this call (generation). Grouped-query attention without copying keys: the queries that share a key head are stacked
// along time, so one product per key head serves them all. In a group of episodes the common beginning is computed once: its keys and
// values are shared by all rows, whose queries against it are one product (cf. Hydragen, arXiv 2402.05099, here with gradients).
import type { Dim, Graph, Value } from '../engine/graph';
import { matmul, softmax } from '../engine/layer-ops';
import { add, reshape, transpose } from '../engine/ops';
import { arrange, collect, concatLast, splitLast } from '../engine/packed-ops';
import type { Attend } from './decoder';
import type { DecoderConfig } from './decoder-config';

/** Names of the inputs that arrange packed tokens into blocks, see packing.ts; those of `prefix` only where beginnings are shared. */
export const layoutInputs = {
  rows: ['query_rows', 'key_rows', 'rows_mask'],
  prefix: ['query_prefixes', 'key_prefixes', 'prefixes_mask', 'prefix_mask'],
  back: ['query_places', 'key_places'],
} as const;

const stacked = (size: string, groups: number): Dim => (groups === 1 ? size : `${groups}*${size}`);

/**
 * Causal attention among packed tokens. Without shared beginnings: blocks of b rows of t tokens. With them: p beginnings of u tokens,
 * each continued by m rows of t tokens, which see the beginning and themselves.
 */
export function packedAttention(g: Graph, c: DecoderConfig, shared: boolean): Attend {
  const groups = c.heads / c.kvHeads;
  const batch: Dim[] = shared ? ['p', c.kvHeads, 'm'] : ['b', c.kvHeads];
  const [gt, gu] = [stacked('t', groups), stacked('u', groups)];
  const index = (name: string, dims: readonly Dim[]): Value => g.input(name, 'int32', dims);
  const queryRows = index('query_rows', [...batch, gt]);
  const keyRows = index('key_rows', [...batch, 't']);
  const rowsMask = g.input('rows_mask', 'float32', ['t', 't']);
  const beginning = shared && {
    queries: index('query_prefixes', ['p', c.kvHeads, gu]),
    keys: index('key_prefixes', ['p', c.kvHeads, 'u']),
    causal: g.input('prefixes_mask', 'float32', ['u', 'u']),
    seen: g.input('prefix_mask', 'float32', ['p', 1, 1, 'u']),
  };
  const queryPlaces = index('query_places', ['n*h']);
  const keyPlaces = index('key_places', ['n*k']);
  const alpha = c.headSize ** -0.5;

  /** Scores of each row's own tokens, masked. */
  const ownScores = (q: Value, k: Value, mask: Value, size: string): Value => {
    const scores = matmul(g, q, k, { transB: true, alpha });
    const lead = scores.dims.slice(0, -2);
    return reshape(g, add(g, reshape(g, scores, [...lead, groups, size, size]), mask), scores.dims);
  };
  return (_layer, q, k, v) => {
    const heads = (x: Value, places: Value): Value => reshape(g, x, [places.dims[0], c.headSize]);
    const back = (blocks: Value[], forward: Value[]): Value =>
      reshape(g, collect(g, blocks, forward, queryPlaces), q.dims);
    if (!beginning) {
      const [queries] = arrange(g, heads(q, queryPlaces), [queryRows], queryPlaces);
      const [keys] = arrange(g, heads(k, keyPlaces), [keyRows], keyPlaces);
      const [values] = arrange(g, heads(v, keyPlaces), [keyRows], keyPlaces);
      return back([matmul(g, softmax(g, ownScores(queries, keys, rowsMask, 't')), values)], [queryRows]);
    }
    const [prefixQ, rowQ] = arrange(g, heads(q, queryPlaces), [beginning.queries, queryRows], queryPlaces);
    const [prefixK, rowK] = arrange(g, heads(k, keyPlaces), [beginning.keys, keyRows], keyPlaces);
    const [prefixV, rowV] = arrange(g, heads(v, keyPlaces), [beginning.keys, keyRows], keyPlaces);
    const onPrefixes = matmul(g, softmax(g, ownScores(prefixQ, prefixK, beginning.causal, 'u')), prefixV);

    const joined: Dim[] = ['p', c.kvHeads, `m*${gt}`];
    const flatQ = reshape(g, rowQ, [...joined, c.headSize]);
    const toPrefix = add(g, matmul(g, flatQ, prefixK, { transB: true, alpha }), beginning.seen);
    const toRow = ownScores(rowQ, rowK, rowsMask, 't');
    const weights = softmax(g, concatLast(g, toPrefix, reshape(g, toRow, [...joined, 't']), 'u+t'));
    const [onPrefix, onRow] = splitLast(g, weights, toPrefix, toRow);
    const own = matmul(g, reshape(g, onRow, toRow.dims), rowV);
    const context = add(g, reshape(g, matmul(g, onPrefix, prefixV), own.dims), own);
    return back([onPrefixes, context], [beginning.queries, queryRows]);
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

/**
 * Attention of n = b·t tokens over cached keys and values and the new ones, which become outputs `key.i`, `value.i`
 * [n, kvHeads·headSize]. Not differentiable.
 */
export function cachedAttention(g: Graph, c: DecoderConfig, past: PastInputs): Attend {
  const groups = c.heads / c.kvHeads;
  const gt = stacked('t', groups);
  const alpha = c.headSize ** -0.5;
  return (layer, q, k, v) => {
    g.output(`key.${layer}`, k);
    g.output(`value.${layer}`, v);
    const blocks = (x: Value): Value =>
      transpose(g, reshape(g, x, ['b', 't', c.kvHeads, c.headSize]), [0, 2, 1, 3]);
    const spread = transpose(g, reshape(g, q, ['b', 't', c.kvHeads, groups, c.headSize]), [0, 2, 3, 1, 4]);
    const queries = reshape(g, spread, ['b', c.kvHeads, gt, c.headSize]);
    const scored = (keys: Value, mask: Value, length: Dim): Value => {
      const scores = matmul(g, queries, keys, { transB: true, alpha });
      return add(g, reshape(g, scores, ['b', c.kvHeads, groups, 't', length]), mask);
    };
    const toPast = scored(past.keys[layer], past.pastMask, 's');
    const toNew = scored(blocks(k), past.newMask, 't');
    const [onPast, onNew] = splitLast(g, softmax(g, concatLast(g, toPast, toNew, 's+t')), toPast, toNew);
    const flat = (weights: Value, length: Dim): Value => reshape(g, weights, ['b', c.kvHeads, gt, length]);
    const context = add(
      g,
      matmul(g, flat(onPast, 's'), past.values[layer]),
      matmul(g, flat(onNew, 't'), blocks(v)),
    );
    const perToken = transpose(g, reshape(g, context, spread.dims), [0, 3, 1, 2, 4]);
    return reshape(g, perToken, q.dims);
  };
}
