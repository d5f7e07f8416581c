// Packs the new tokens of several rows into the feeds of the generate graph, one chunk per row, without padding between
// chunks. Attention needs blocks of equal length; the empty slots of these blocks contain a dummy token.
import { maximum } from '../../common/lists';
import { causalMask } from '../../engine/session/padding';
import { int32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';
import { headIndex } from './head-index';

/** Chunks of new tokens, one per row, as feeds of the generate graph. The tokens of row r begin at `starts[r]`. */
export interface PackedChunks {
  feeds: Record<string, Tensor>;
  starts: number[];
}

/** Packs the chunks. Each attention block is as long as the longest chunk, rounded up to a multiple of `multiple`. */
export function packChunks(
  chunks: readonly (readonly number[])[],
  pasts: readonly number[],
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
      positions[at++] = BigInt(pasts[r] + i);
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
