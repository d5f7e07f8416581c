// Attention over packed tokens. In training and scoring, tokens attend to each other, and attention is differentiable.
// In generation, new tokens attend to cached keys and values and to each other. Grouped-query attention does not copy
// keys: queries that share a key head are stacked along time, so one matmul per key head computes the scores of all
// these queries. The common prefix of a group of episodes is computed once, and all rows of the group share the keys
// and values of the prefix. Hydragen (arXiv 2402.05099) does the same without gradients.
import type { Dim, Graph, Value } from '../../engine/graph/graph';
import { matmul, softmax, softmaxProduct } from '../../engine/graph/layer-ops';
import { add, compare, reshape, select } from '../../engine/graph/ops';
import { masked } from '../../engine/session/padding';
import {
  arrange,
  collect,
  concatLast,
  joinTimes,
  repeatBlocks,
  splitLast,
  splitTimes,
} from '../../engine/graph/packed-ops';
import type { Attend, LastLayer } from './decoder';
import type { DecoderConfig } from './decoder-config';

const stacked = (size: string, groups: number): Dim => (groups === 1 ? size : `${groups}*${size}`);

/**
 * Causal attention among packed tokens, which form b rows of t tokens. With shared prefixes, there are also p prefixes
 * of u tokens, and each row continues one prefix: its tokens attend to the prefix and to the row itself. Each row is
 * split into e early and l late tokens. Scores of early queries with late keys are not computed, because the causal
 * mask would remove all of them. This saves a quarter of the scores.
 *
 * `last` declares the inputs of the last layer and returns its attention, in which each row has w queries at any of its
 * positions, including those of its prefix.
 */
export function packedAttention(
  g: Graph,
  c: DecoderConfig,
  shared: boolean,
): { attend: Attend; last: () => LastLayer } {
  const groups = c.heads / c.kvHeads;
  const batch: Dim[] = ['b', c.kvHeads];
  const [gt, gu] = [stacked('t', groups), stacked('u', groups)];
  const index = (name: string, dims: readonly Dim[]): Value => g.input(name, 'int32', dims);
  const queryRows = index('query_rows', [...batch, gt]);
  const keyRows = index('key_rows', [...batch, 't']);
  const beginning = shared
    ? {
        queries: index('query_prefixes', ['p', c.kvHeads, gu]),
        keys: index('key_prefixes', ['p', c.kvHeads, 'u']),
        causal: g.input('prefixes_mask', 'float32', ['u', 'u']),
        ofRows: index('row_prefixes', ['b']),
        memberships: g.input('prefix_rows', 'float32', ['p', 'b']),
      }
    : undefined;
  /** Mask of one half of each row. A prefix that is shorter than u has a mask for the remaining slots. */
  const slotsOf = (half: string, seen: string): Value | null =>
    shared ? g.input(`${half}_slots`, 'float32', ['b', 1, 1, 1, `u+${seen}`]) : null;
  const [earlySlots, lateSlots] = [slotsOf('early', 'e'), slotsOf('late', 't')];
  const maskOf = (half: string, own: string, seen: string, slots: Value | null): Value => {
    const causal = g.input(`${half}_mask`, 'float32', [own, shared ? `u+${seen}` : seen]);
    return slots ? add(g, slots, causal) : causal;
  };
  const masks = [maskOf('early', 'e', 'e', earlySlots), maskOf('late', 'l', 't', lateSlots)];
  const queryPlaces = index('query_places', ['n*h']);
  const keyPlaces = index('key_places', ['n*k']);
  const alpha = c.headSize ** -0.5;

  /**
   * Returns the attention output of stacked queries [.., groups·t, headSize] over keys and values [.., s, headSize].
   */
  const attended = (q: Value, k: Value, v: Value, mask: Value): Value => {
    const scores = matmul(g, q, k, { transB: true, alpha });
    const apart: Dim[] = [...scores.dims.slice(0, -2), groups, ...mask.dims.slice(-2)];
    return softmaxProduct(g, reshape(g, add(g, reshape(g, scores, apart), mask), scores.dims), v);
  };
  const heads = (x: Value, count: Dim): Value => reshape(g, x, [count, c.headSize]);
  const blocks = (x: Value, places: Value, prefixes: Value | undefined, rows: Value): Value[] =>
    arrange(g, heads(x, places.dims[0]), prefixes ? [prefixes, rows] : [rows], places).toReversed();
  const keyBlocks = (x: Value): Value[] => blocks(x, keyPlaces, beginning?.keys, keyRows);
  /** The keys or values of its prefix, for each row. */
  const before = (prefix: Value | undefined): Value[] =>
    prefix && beginning ? [repeatBlocks(g, prefix, beginning.ofRows, beginning.memberships)] : [];
  const until = (parts: Value[], dim: string): Value =>
    parts.length === 1 ? parts[0] : joinTimes(g, parts, shared ? `u+${dim}` : dim);

  const attend: Attend = (_layer, q, k, v) => {
    const [rowQ, prefixQ] = blocks(q, queryPlaces, beginning?.queries, queryRows);
    const [rowK, prefixK] = keyBlocks(k);
    const [rowV, prefixV] = keyBlocks(v);

    const halves = splitTimes(g, reshape(g, rowQ, [...batch, groups, 't', c.headSize]), ['e', 'l']);
    /**
     * Returns the keys or values that each half of a row attends to: the prefix, and the row up to the end of the half.
     */
    const seen = (row: Value, prefix: Value | undefined): Value[] => {
      const [early, late] = splitTimes(g, row, ['e', 'l']);
      const first = [...before(prefix), early];
      return [until(first, 'e'), until([...first, late], 't')];
    };
    const [keys, values] = [seen(rowK, prefixK), seen(rowV, prefixV)];
    const contexts = halves.map((half, i) => {
      const [time] = half.dims.slice(-2);
      const queries = reshape(g, half, [...batch, stacked(String(time), groups), c.headSize]);
      return reshape(g, attended(queries, keys[i], values[i], masks[i]), half.dims);
    });
    const context = reshape(g, joinTimes(g, contexts, 't'), rowQ.dims);
    const all = beginning ? [attended(prefixQ, prefixK, prefixV, beginning.causal), context] : [context];
    const forward = beginning ? [beginning.queries, queryRows] : [queryRows];
    return reshape(g, collect(g, all, forward, queryPlaces), q.dims);
  };

  const last = (): LastLayer => {
    const forward = index('last_queries', [...batch, stacked('w', groups)]);
    const places = index('last_places', ['last*h']);
    const seen = shared ? 'u+t' : 't';
    const slots = g.input('slots', 'float32', [seen]);
    const reach = g.input('last_reach', 'float32', ['b', 1, 1, 'w', 1]);
    const allowed = compare(g, 'LessOrEqual', slots, reach);
    const causal = select(g, allowed, g.scalar(0), g.scalar(masked));
    const mask = lateSlots ? add(g, causal, lateSlots) : causal;
    return {
      tokens: g.input('last_tokens', 'int64', ['last']),
      positions: g.input('last_positions', 'int64', ['last']),
      attend: (_layer, q, k, v) => {
        const [queries] = arrange(g, heads(q, 'last*h'), [forward], places);
        const [keys, values] = [k, v].map(x => {
          const [row, prefix] = keyBlocks(x);
          return until([...before(prefix), row], 't');
        });
        return reshape(g, collect(g, [attended(queries, keys, values, mask)], [forward], places), q.dims);
      },
    };
  };
  return { attend, last };
}

/**
 * Attention of packed new tokens. Each of b rows has one chunk of new tokens. A token attends to the cached keys and
 * values of its row and to the row's chunk. Declares the inputs past_key.i, past_value.i [b, kvHeads, s, headSize] and
 * past_mask [b, 1, 1, 1, s] (0 for filled slots, large negative otherwise). Declares the outputs key.i, value.i [n,
 * kvHeads·headSize] of the new tokens. Not differentiable.
 */
export function cachedAttention(g: Graph, c: DecoderConfig): Attend {
  const { pastMask, newMask, heads } = cachedInputs(g, c, 't', ['t', 't']);
  return (layer, q, k, v) => {
    g.output(`key.${layer}`, k);
    g.output(`value.${layer}`, v);
    const past = pastOf(g, c, layer);
    const chunk = { keys: heads.keys(k), values: heads.keys(v), mask: newMask };
    return heads.back(overBoth(g, c, heads.queries(q), { ...past, mask: pastMask }, chunk, 't'), q);
  };
}

/**
 * Attention of packed chunks of new tokens that continue cached tokens, one chunk per row. One gather puts the cached
 * and the new keys of a row into s slots, in the order of their positions, so a single softmax covers both. Declares the
 * inputs past_key.i and past_value.i [past, headSize], the cached tokens of all rows, and these inputs:
 * * key_slots [b, kvHeads, s], int32: the index of each slot's key among the cached and, after them, the new ones
 * * slots [s]: 0, 1, …; reach [b, 1, 1, t, 1] and last_reach [b, 1, 1, 1, 1]: the last slot that a query sees
 * * last_tokens, last_positions, int64 [last]: the token of each row whose logits are needed
 * Declares the outputs key.i and value.i [n, kvHeads·headSize] of the new tokens. Not differentiable.
 */
export function appendedAttention(g: Graph, c: DecoderConfig): { attend: Attend; last: LastLayer } {
  const groups = c.heads / c.kvHeads;
  const index = (name: string, dims: readonly Dim[]): Value => g.input(name, 'int32', dims);
  const keySlots = index('key_slots', ['b', c.kvHeads, 's']);
  const slots = g.input('slots', 'float32', ['s']);
  /** Attention of t queries per row; `rows` and `places` arrange the queries, of which there are `count`. */
  const attendFrom = (t: Dim, rows: Value, places: Value, count: string, reach: Value): Attend => {
    const mask = select(g, compare(g, 'LessOrEqual', slots, reach), g.scalar(0), g.scalar(masked));
    return (layer, q, k, v) => {
      const [keys, values] = [k, v].map((x, i) => {
        const stem = i === 0 ? 'key' : 'value';
        g.output(`${stem}.${layer}`, x);
        const past = g.input(`past_${stem}.${layer}`, 'float32', ['past', c.headSize]);
        const both = [past, reshape(g, x, ['n*k', c.headSize])];
        const joined = g.emit('Concat', both, 'float32', ['past+n*k', c.headSize], { axis: 0 });
        return g.emit('Gather', [joined, keySlots], 'float32', [...keySlots.dims, c.headSize], { axis: 0 });
      });
      const [queries] = arrange(g, reshape(g, q, [count, c.headSize]), [rows], places);
      const scores = matmul(g, queries, keys, { transB: true, alpha: c.headSize ** -0.5 });
      const seen = add(g, reshape(g, scores, ['b', c.kvHeads, groups, t, 's']), mask);
      const context = matmul(g, softmax(g, reshape(g, seen, scores.dims)), values);
      return reshape(g, collect(g, [context], [rows], places), q.dims);
    };
  };
  const queryRows = index('query_rows', ['b', c.kvHeads, stacked('t', groups)]);
  const lastQueries = index('last_queries', ['b', c.kvHeads, groups]);
  const reach = (name: string, t: Dim): Value => g.input(name, 'float32', ['b', 1, 1, t, 1]);
  return {
    attend: attendFrom('t', queryRows, index('query_places', ['n*h']), 'n*h', reach('reach', 't')),
    last: {
      tokens: g.input('last_tokens', 'int64', ['last']),
      positions: g.input('last_positions', 'int64', ['last']),
      attend: attendFrom(1, lastQueries, index('last_places', ['last*h']), 'last*h', reach('last_reach', 1)),
    },
  };
}

/**
 * Does the same as `cachedAttention`, for keys and values that stay on a device. The chunk of each row has t slots: [b,
 * kvHeads, t, headSize]. A run writes either all t slots or one slot. The input `written` [1, 1, t, 1] is 1 for the
 * slots that the run writes. All other slots are copied from the inputs held_key.i and held_value.i [b, kvHeads, c,
 * headSize]. The dimension c equals t, or 1 if the chunk has no earlier slots. The outputs key.i and value.i contain
 * all t slots. The input new_mask [1, 1, 1, q, t] is the additive mask of the chunk for q new tokens per row.
 */
export function residentAttention(g: Graph, c: DecoderConfig): Attend {
  const { pastMask, newMask, heads } = cachedInputs(g, c, 'q', [1, 1, 1, 'q', 't']);
  const written = g.emit('Greater', [g.input('written', 'float32', [1, 1, 't', 1]), g.scalar(0)], 'bool', [
    1,
    1,
    't',
    1,
  ]);
  return (layer, q, k, v) => {
    const slots = (stem: string, x: Value): Value => {
      const held = g.input(`held_${stem}.${layer}`, 'float32', ['b', c.kvHeads, 'c', c.headSize]);
      const all = g.emit('Where', [written, heads.keys(x), held], 'float32', ['b', c.kvHeads, 't', c.headSize]);
      g.output(`${stem}.${layer}`, all);
      return all;
    };
    const past = pastOf(g, c, layer);
    const chunk = { keys: slots('key', k), values: slots('value', v), mask: newMask };
    return heads.back(overBoth(g, c, heads.queries(q), { ...past, mask: pastMask }, chunk, 'q'), q);
  };
}

/** Keys and values [b, kvHeads, slots, headSize] and the additive mask of their slots. */
interface Segment {
  keys: Value;
  values: Value;
  mask: Value;
}

/**
 * Declares the inputs shared by all layers, for `t` new tokens per row, and returns the mappings between packed tokens
 * and blocks.
 */
function cachedInputs(g: Graph, c: DecoderConfig, t: string, newDims: readonly Dim[]) {
  const pastMask = g.input('past_mask', 'float32', ['b', 1, 1, 1, 's']);
  const newMask = g.input('new_mask', 'float32', newDims);
  const queryRows = g.input('query_rows', 'int32', ['b', c.kvHeads, stacked(t, c.heads / c.kvHeads)]);
  const keyRows = g.input('key_rows', 'int32', ['b', c.kvHeads, t]);
  const queryPlaces = g.input('query_places', 'int32', ['n*h']);
  const block = (x: Value, rows: Value, places: Dim): Value =>
    g.emit('Gather', [reshape(g, x, [places, c.headSize]), rows], 'float32', [...rows.dims, c.headSize], { axis: 0 });
  return {
    pastMask,
    newMask,
    heads: {
      queries: (q: Value): Value => block(q, queryRows, 'n*h'),
      keys: (k: Value): Value => block(k, keyRows, 'n*k'),
      back: (context: Value, q: Value): Value => reshape(g, collect(g, [context], [queryRows], queryPlaces), q.dims),
    },
  };
}

function pastOf(g: Graph, c: DecoderConfig, layer: number): Pick<Segment, 'keys' | 'values'> {
  const past = (stem: string): Value => g.input(`past_${stem}.${layer}`, 'float32', ['b', c.kvHeads, 's', c.headSize]);
  return { keys: past('key'), values: past('value') };
}

/** Returns the attention output of `t` queries per row over the past (s slots) and the row's chunk. */
function overBoth(g: Graph, c: DecoderConfig, queries: Value, past: Segment, chunk: Segment, t: string): Value {
  const groups = c.heads / c.kvHeads;
  const alpha = c.headSize ** -0.5;
  const scored = ({ keys, mask }: Segment): Value => {
    const scores = matmul(g, queries, keys, { transB: true, alpha });
    return add(g, reshape(g, scores, ['b', c.kvHeads, groups, t, keys.dims[2]]), mask);
  };
  const toPast = scored(past);
  const toNew = scored(chunk);
  const [onPast, onNew] = splitLast(g, softmax(g, concatLast(g, toPast, toNew, 's+t')), toPast, toNew);
  const read = (weights: Value, { keys, values }: Segment): Value =>
    matmul(g, reshape(g, weights, ['b', c.kvHeads, stacked(t, groups), keys.dims[2]]), values);
  return add(g, read(onPast, past), read(onNew, chunk));
}
