// Packs the samples of a pass (pass-plan.ts) without padding: creates the feeds of packedAttention (attention.ts), and
// the mapping between per-sample arrays and packed tokens. The results are pure functions of the token ids. Invariant:
// within a pass every required token of a sample is computed once, and gradients are summed over passes.
import { maximum } from '../../common/lists';
import { causalMask, masked } from '../../engine/session/padding';
import { float32, int32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { Pass, Sample, Cluster } from './pass-plan';
import { headIndex } from './head-index';

/** The feeds of a pass, and the mapping from positions in samples to packed tokens. */
export interface PackedPass {
  /** ids, positions [n] and the inputs of packedAttention. */
  feeds: Record<string, Tensor>;
  /**
   * Indices of the pass's samples. All lists with one entry per sample of the pass are in this order. The argument `k`
   * of `at` is an index into this list.
   */
  members: number[];
  /** Number of packed tokens, including the dummy token if there is one. */
  tokens: number;
  /** Returns the index of the packed token at `position` of the pass's k-th sample. */
  at(k: number, position: number): number;
}

export function packPass(
  { shared, clusters }: Pass,
  samples: readonly Pick<Sample, 'ids'>[],
  c: Pick<DecoderConfig, 'heads' | 'kvHeads'>,
): PackedPass {
  const members = clusters.flatMap(cluster => cluster.members);
  const rows = maximum(clusters.map(cluster => cluster.members.length));
  const u = maximum(clusters.map(({ prefix }) => prefix));
  // Each row of t tokens is split into two halves for attention; t is at least 2, because neither half may be empty.
  const t = maximum(
    clusters.flatMap(({ members, prefix }) => members.map(i => samples[i].ids.length - prefix)),
    2,
  );
  const ids: number[] = [];
  const positions: number[] = [];
  const append = (source: Int32Array, from: number, to: number): number => {
    const start = ids.length;
    for (let i = from; i < to; i++) {
      ids.push(source[i]);
      positions.push(i);
    }
    return start;
  };
  // Index of the packed token in each slot of the prefix blocks [p, u] and of the row blocks [p, m, t]; −1 for empty
  // slots.
  const prefixPlaces = new Int32Array(clusters.length * u).fill(-1);
  const rowPlaces = new Int32Array(clusters.length * rows * t).fill(-1);
  const starts: { prefixStart: number; prefix: number; rowStart: number }[] = [];
  clusters.forEach(({ members, prefix }, p) => {
    const prefixStart = append(samples[members[0]].ids, 0, prefix);
    for (let i = 0; i < prefix; i++) prefixPlaces[p * u + i] = prefixStart + i;
    members.forEach((member, m) => {
      const { ids: own } = samples[member];
      const rowStart = append(own, prefix, own.length);
      for (let i = 0; i < own.length - prefix; i++) rowPlaces[(p * rows + m) * t + i] = rowStart + i;
      starts.push({ prefixStart, prefix, rowStart });
    });
  });
  // Empty slots are filled with a dummy token. No result depends on the dummy token, so its gradient is zero.
  const padded = prefixPlaces.includes(-1) || rowPlaces.includes(-1);
  const dummyToken = ids.length;
  if (padded) {
    ids.push(0);
    positions.push(0);
  }
  const n = ids.length;
  const blocks = [
    ...(shared ? [{ places: prefixPlaces, outer: clusters.length, inner: 1, length: u }] : []),
    {
      places: rowPlaces,
      outer: shared ? clusters.length : clusters.length * rows,
      inner: shared ? rows : 1,
      length: t,
    },
  ];
  const groups = c.heads / c.kvHeads;
  const queries = headIndex(blocks, n, dummyToken, c.kvHeads, groups);
  const keys = headIndex(blocks, n, dummyToken, c.kvHeads, 1);
  const rowDims = shared ? [clusters.length, c.kvHeads, rows] : [clusters.length * rows, c.kvHeads];
  const prefixDims = [clusters.length, c.kvHeads];
  const feeds: Record<string, Tensor> = {
    ids: int64(BigInt64Array.from(ids, BigInt), [n]),
    positions: int64(BigInt64Array.from(positions, BigInt), [n]),
    query_rows: int32(queries.forward.at(-1)!, [...rowDims, groups * t]),
    key_rows: int32(keys.forward.at(-1)!, [...rowDims, t]),
    ...halfMasks(t, u, shared ? clusters : null),
    query_places: int32(queries.back, [n * c.heads]),
    key_places: int32(keys.back, [n * c.kvHeads]),
  };
  if (shared) {
    feeds.query_prefixes = int32(queries.forward[0], [...prefixDims, groups * u]);
    feeds.key_prefixes = int32(keys.forward[0], [...prefixDims, u]);
    feeds.prefixes_mask = causalMask(u);
  }
  return {
    feeds,
    members,
    tokens: n,
    at: (k, position) => {
      const { prefixStart, prefix, rowStart } = starts[k];
      return position < prefix ? prefixStart + position : rowStart + position - prefix;
    },
  };
}

/**
 * Returns the additive masks of the two halves of a row of t tokens. Tokens of the early half attend to the early half;
 * tokens of the late half attend to the complete row. If there are clusters, each mask starts with u slots for the
 * shared prefix of a cluster. If this prefix has fewer than u tokens, the remaining slots are masked.
 */
function halfMasks(t: number, u: number, clusters: readonly Cluster[] | null): Record<string, Tensor> {
  const early = Math.ceil(t / 2);
  const mask = (from: number, to: number): Tensor => {
    const width = u + to;
    const data = new Float32Array((clusters?.length ?? 1) * (to - from) * width);
    let at = 0;
    for (const { prefix } of clusters ?? [{ prefix: 0 }])
      for (let i = from; i < to; i++, at += width) {
        data.fill(masked, at + prefix, at + u);
        data.fill(masked, at + u + i + 1, at + width);
      }
    return float32(data, clusters ? [clusters.length, 1, 1, 1, to - from, width] : [to - from, width]);
  };
  return { early_mask: mask(0, early), late_mask: mask(early, t) };
}
