// How packed tokens attend: among themselves (training and scoring, differentiable), or over a cache of past keys and values plus the
// tokens of this call (generation). Grouped-query attention without copying keys: the queries that share a key head are stacked
// along time, so one product per key head serves them all. In a group of episodes the common beginning is computed once: its keys and
// values are shared by all rows, whose queries against it are one product (cf. Hydragen, arXiv 2402.05099, here with gradients).
import type { Dim, Graph, Value } from '../engine/graph';
import { matmul, softmax } from '../engine/layer-ops';
import { add, reshape } from '../engine/ops';
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

/**
 * Attention of packed new tokens, a chunk for each of b rows, over cached keys and values and the chunk itself. Declares the past as
 * inputs past_key.i, past_value.i [b, kvHeads, s, headSize] with past_mask [b, 1, 1, 1, s] (0 for filled slots, far below else); the
 * new keys and values become outputs key.i, value.i [n, kvHeads·headSize]. Not differentiable.
 */
export function cachedAttention(g: Graph, c: DecoderConfig): Attend {
  const groups = c.heads / c.kvHeads;
  const gt = stacked('t', groups);
  const alpha = c.headSize ** -0.5;
  const pastMask = g.input('past_mask', 'float32', ['b', 1, 1, 1, 's']);
  const newMask = g.input('new_mask', 'float32', ['t', 't']);
  const queryRows = g.input('query_rows', 'int32', ['b', c.kvHeads, gt]);
  const keyRows = g.input('key_rows', 'int32', ['b', c.kvHeads, 't']);
  const queryPlaces = g.input('query_places', 'int32', ['n*h']);
  return (layer, q, k, v) => {
    g.output(`key.${layer}`, k);
    g.output(`value.${layer}`, v);
    const past = (stem: string): Value =>
      g.input(`past_${stem}.${layer}`, 'float32', ['b', c.kvHeads, 's', c.headSize]);
    const block = (x: Value, rows: Value, places: Dim): Value =>
      g.emit('Gather', [reshape(g, x, [places, c.headSize]), rows], 'float32', [...rows.dims, c.headSize], { axis: 0 });
    const queries = block(q, queryRows, 'n*h');
    const newKeys = block(k, keyRows, 'n*k');
    const newValues = block(v, keyRows, 'n*k');
    const scored = (keys: Value, mask: Value, length: Dim): Value => {
      const scores = matmul(g, queries, keys, { transB: true, alpha });
      return add(g, reshape(g, scores, ['b', c.kvHeads, groups, 't', length]), mask);
    };
    const toPast = scored(past('key'), pastMask, 's');
    const toNew = scored(newKeys, newMask, 't');
    const [onPast, onNew] = splitLast(g, softmax(g, concatLast(g, toPast, toNew, 's+t')), toPast, toNew);
    const flat = (weights: Value, length: Dim): Value => reshape(g, weights, ['b', c.kvHeads, gt, length]);
    const context = add(g, matmul(g, flat(onPast, 's'), past('value')), matmul(g, flat(onNew, 't'), newValues));
    return reshape(g, collect(g, [context], [queryRows], queryPlaces), q.dims);
  };
}
