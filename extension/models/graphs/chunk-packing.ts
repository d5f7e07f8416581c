// Packs the new tokens of several rows into the feeds of the generate graph, one chunk per row, without padding between
// chunks. Attention needs blocks of equal length; the empty slots of these blocks contain a dummy token.
import { maximum } from '../../common/lists';
import { causalMask } from '../../engine/session/padding';
import { float32, int32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';
import { headIndex } from './head-index';

/** Chunks of new tokens, one per row, as feeds of the generate graph. The tokens of row r begin at `starts[r]`. */
export interface PackedChunks {
  feeds: Record<string, Tensor>;
  starts: number[];
}

/**
 * Packs the chunks; `firsts` are the positions of their first tokens. Each attention block is as long as the longest chunk, rounded up to a multiple of
 * `multiple`.
 */
export function packChunks(
  chunks: readonly (readonly number[])[],
  firsts: readonly number[],
  multiple: number,
  c: Pick<DecoderConfig, 'heads' | 'kvHeads'>,
): PackedChunks {
  const t = Math.ceil(maximum(chunks.map(ids => ids.length)) / multiple) * multiple;
  const total = chunks.reduce((sum, ids) => sum + ids.length, 0);
  const places = new Int32Array(chunks.length * t).fill(-1);
  const starts: number[] = [];
  // A dummy token fills empty slots. If there is only one new token, a dummy token is appended, because onnxruntime
  // computes matmuls of a single row with another kernel, which rounds differently.
  const n = places.length > total || total === 1 ? total + 1 : total;
  const ids = new BigInt64Array(n);
  const positions = new BigInt64Array(n);
  let at = 0;
  chunks.forEach((chunk, r) => {
    starts.push(at);
    chunk.forEach((id, i) => {
      places[r * t + i] = at;
      ids[at] = BigInt(id);
      positions[at++] = BigInt(firsts[r] + i);
    });
  });
  const layout = [{ places, outer: chunks.length, inner: 1, length: t }];
  const groups = c.heads / c.kvHeads;
  const queries = headIndex(layout, n, total, c.kvHeads, groups);
  const keys = headIndex(layout, n, total, c.kvHeads, 1);
  return {
    starts,
    feeds: {
      ids: int64(ids, [n]),
      positions: int64(positions, [n]),
      new_mask: causalMask(t),
      query_rows: int32(queries.forward[0], [chunks.length, c.kvHeads, groups * t]),
      key_rows: int32(keys.forward[0], [chunks.length, c.kvHeads, t]),
      query_places: int32(queries.back, [n * c.heads]),
    },
  };
}

/**
 * Packs the chunks as feeds of the append graph. Keys have as many slots as the longest row has tokens with its chunk,
 * rounded up to a multiple of `multiple`. Slot i of a row is its i-th token. `firsts` are the positions of the first new
 * tokens; by default, the numbers of past tokens.
 */
export function packAppended(
  chunks: readonly (readonly number[])[],
  pasts: readonly number[],
  multiple: number,
  c: Pick<DecoderConfig, 'heads' | 'kvHeads'>,
  firsts = pasts,
): PackedChunks {
  const b = chunks.length;
  // With several query heads per key head or several tokens, a matmul never has a single row.
  const { feeds, starts } = packChunks(chunks, firsts, 2, c);
  const t = Math.ceil(maximum(chunks.map(ids => ids.length)) / 2) * 2;
  const s = Math.ceil(maximum(chunks.map((ids, r) => pasts[r] + ids.length)) / multiple) * multiple;
  const cached = pasts.reduce((sum, past) => sum + past, 0) * c.kvHeads;
  const keys = new Int32Array(b * c.kvHeads * s).fill(cached); // the dummy after the cached keys
  const reach = new Float32Array(b * t);
  const lastReach = new Float32Array(b);
  let before = 0;
  chunks.forEach((ids, r) => {
    const past = pasts[r];
    for (let h = 0; h < c.kvHeads; h++) {
      const at = (r * c.kvHeads + h) * s;
      for (let i = 0; i < past; i++) keys[at + i] = before + h * past + i;
      for (let i = 0; i < ids.length; i++) keys[at + past + i] = cached + 1 + (starts[r] + i) * c.kvHeads + h;
    }
    before += past * c.kvHeads;
    for (let i = 0; i < t; i++) reach[r * t + i] = past + i;
    lastReach[r] = past + ids.length - 1;
  });
  const ends = starts.map((start, r) => start + chunks[r].length - 1);
  // A single row occurs twice, because onnxruntime computes matmuls of a single row with another kernel.
  const rows = b === 1 ? [0, 0] : [...ends.keys()];
  const last = headIndex(
    [{ places: Int32Array.from(ends.keys()), outer: b, inner: 1, length: 1 }],
    rows.length,
    0,
    c.kvHeads,
    c.heads / c.kvHeads,
  );
  const numbers = (all: readonly number[]): Tensor => int64(BigInt64Array.from(all, BigInt), [all.length]);
  const { ids, positions, query_rows, query_places } = feeds;
  return {
    starts,
    feeds: {
      ...{ ids, positions, query_rows, query_places },
      key_slots: int32(keys, [b, c.kvHeads, s]),
      slots: float32(
        Float32Array.from({ length: s }, (_, slot) => slot),
        [s],
      ),
      reach: float32(reach, [b, 1, 1, t, 1]),
      last_reach: float32(lastReach, [b, 1, 1, 1, 1]),
      last_tokens: numbers(rows.map(r => ends[r])),
      last_positions: numbers(rows.map(r => firsts[r] + chunks[r].length - 1)),
      last_queries: int32(last.forward[0], [b, c.kvHeads, c.heads / c.kvHeads]),
      last_places: int32(last.back, [rows.length * c.heads]),
    },
  };
}
