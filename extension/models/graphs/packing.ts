// Plans how samples pass through a graph: tokens packed without padding, samples of a group sharing their common
// prefix, in passes with a maximum number of tokens. Pure functions of token ids; they produce the feeds of
// packedAttention (attention.ts) and the mapping between per-sample arrays and packed tokens. Invariant: every needed
// token of a sample is computed once in each pass that needs it, and gradients add up.
import { maximum, minimum } from '../../common/lists';
import type { PassBudget, TrainingSample } from '../../engine/training-samples';
import { causalMask, masked } from '../../engine/session/padding';
import { float32, int32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';

export type Sample = Pick<TrainingSample, 'ids' | 'mask'>;

/** Samples (by index) with the same first `prefix` tokens, which are computed once for all of them. */
export interface Cluster {
  members: number[];
  prefix: number;
}

/** Clusters that pass through a graph together: all with a shared prefix, or all single samples without one. */
export interface Pass {
  shared: boolean;
  clusters: Cluster[];
}

/** Minimum length of a shared prefix; shorter ones do not pay for the extra matmuls. */
const leastPrefix = 8;

/**
 * Returns passes over all samples, in a deterministic order; rows of similar length are grouped, to keep attention
 * padding small.
 */
export function planPasses(samples: readonly Pick<Sample, 'ids'>[], { maxTokens, maxRows }: PassBudget): Pass[] {
  const clusters = clusterByPrefix(samples, maxRows).flatMap(cluster => cutToSize(cluster, samples, maxTokens));
  const longest = ({ members }: Cluster): number => maximum(members.map(i => samples[i].ids.length));
  const sorted = clusters
    .map((cluster, order) => ({ cluster, order, rows: cluster.members.length, longest: longest(cluster) }))
    .sort((a, b) => a.rows - b.rows || b.longest - a.longest || a.order - b.order);
  const passes: (Pass & { tokens: number; rows: number })[] = [];
  for (const { cluster, rows } of sorted) {
    const shared = cluster.prefix > 0;
    const tokens = tokensOf(cluster, samples);
    const last = passes.at(-1);
    const fits =
      last !== undefined &&
      last.shared === shared &&
      last.tokens + tokens <= maxTokens &&
      last.rows + rows <= maxRows &&
      // Rows of a pass form a rectangle of clusters × members, so large clusters beside small ones would cause padding.
      last.clusters[0].members.length * 2 > rows;
    if (fits) {
      last.clusters.push(cluster);
      last.tokens += tokens;
      last.rows += rows;
    } else passes.push({ shared, clusters: [cluster], tokens, rows });
  }
  return passes.map(({ shared, clusters: chosen }) => ({ shared, clusters: chosen }));
}

/** Returns the packed tokens of a cluster. */
function tokensOf({ members, prefix }: Cluster, samples: readonly Pick<Sample, 'ids'>[]): number {
  return members.reduce((sum, i) => sum + samples[i].ids.length - prefix, prefix);
}

/** Partitions the samples, sorted by their ids, into the clusters whose shared prefixes save the most tokens. */
function clusterByPrefix(samples: readonly Pick<Sample, 'ids'>[], maxRows: number): Cluster[] {
  const order = [...samples.keys()].sort((a, b) => compareIds(samples[a].ids, samples[b].ids) || a - b);
  const n = order.length;
  /** common[i]: length of the common prefix of samples i−1 and i (sorted), shorter than either sample. */
  const common = order.map((sample, i) => {
    if (i === 0) return 0;
    const [a, b] = [samples[order[i - 1]].ids, samples[sample].ids];
    const end = Math.min(a.length, b.length) - 1;
    let k = 0;
    while (k < end && a[k] === b[k]) k++;
    return k;
  });
  // best[i]: maximum tokens saved among the first i samples; from[i]: start of the last cluster.
  const best = new Float64Array(n + 1);
  const from = new Int32Array(n + 1);
  for (let i = 1; i <= n; i++) {
    best[i] = best[i - 1];
    from[i] = i - 1;
    let prefix = Infinity;
    for (let start = i - 1; start > 0 && i - start < maxRows; start--) {
      prefix = Math.min(prefix, common[start]);
      if (prefix < leastPrefix) break;
      const saved = best[start - 1] + (i - start) * prefix;
      if (saved <= best[i]) continue;
      best[i] = saved;
      from[i] = start - 1;
    }
  }
  const clusters: Cluster[] = [];
  for (let end = n; end > 0; end = from[end]) {
    const members = order.slice(from[end], end);
    clusters.push({ members, prefix: members.length > 1 ? minimum(common.slice(from[end] + 1, end)) : 0 });
  }
  return clusters.reverse();
}

function compareIds(a: Int32Array, b: Int32Array): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

/**
 * Splits a cluster with more tokens than a pass allows into several, each with the prefix; rows of similar length stay
 * together.
 */
function cutToSize(cluster: Cluster, samples: readonly Pick<Sample, 'ids'>[], maxTokens: number): Cluster[] {
  if (tokensOf(cluster, samples) <= maxTokens || cluster.members.length === 1) return [cluster];
  const parts: number[][] = [];
  let tokens = Infinity;
  const length = (member: number): number => samples[member].ids.length;
  for (const member of cluster.members.toSorted((a, b) => length(b) - length(a) || a - b)) {
    const own = samples[member].ids.length - cluster.prefix;
    if (tokens + own > maxTokens) {
      parts.push([]);
      tokens = cluster.prefix;
    }
    parts.at(-1)!.push(member);
    tokens += own;
  }
  return parts.map(members => ({ members, prefix: members.length > 1 ? cluster.prefix : 0 }));
}

/** A pass as feeds, with the mapping from samples to its packed tokens. */
export interface PackedPass {
  /** ids, positions [n] and the inputs of packedAttention. */
  feeds: Record<string, Tensor>;
  /** Sample indices in the order of all per-member lists and of `at`. */
  members: number[];
  /** Number of packed tokens, including the dummy token for padding. */
  tokens: number;
  /** Returns the index of the packed token at `position` of the k-th member. */
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
  // Rows attend in two halves, and neither may be empty.
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
  // Packed token of each block slot, −1 for empty slots: prefixes [p, u], rows [p, m, t].
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
  // Empty slots read a dummy token. No result depends on it, so its gradient is zero.
  const padded = prefixPlaces.includes(-1) || rowPlaces.includes(-1);
  const standIn = ids.length;
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
  const queries = headIndex(blocks, n, standIn, c.kvHeads, groups);
  const keys = headIndex(blocks, n, standIn, c.kvHeads, 1);
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
 * Returns the additive masks of rows of t tokens: of the early half over itself, and of the late half over the whole
 * row; with clusters, also over their prefixes of at most u tokens, which come first.
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

/** Chunks of new tokens, one per row, as feeds of the generate graph; row r's tokens begin at `starts[r]`. */
export interface PackedChunks {
  feeds: Record<string, Tensor>;
  starts: number[];
}

/** Packs the chunks; attention blocks have the length of the longest chunk, rounded up to a multiple of `multiple`. */
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
  // A dummy token fills empty slots. Also added for a single token, because single-row matmuls use other kernels.
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

interface Block {
  /** Packed token of each slot [outer, inner, length], −1 for empty slots. */
  places: Int32Array;
  outer: number;
  inner: number;
  length: number;
}

/**
 * Returns index arrays over the rows (token, head) of a projection: `forward` of each block in the order [outer,
 * kvHeads, inner, groups, length], and `back` [n·heads] with the slot of each row, counted over all blocks.
 */
export function headIndex(
  blocks: readonly Block[],
  n: number,
  standIn: number,
  kvHeads: number,
  groups: number,
): { forward: Int32Array[]; back: Int32Array } {
  const heads = kvHeads * groups;
  const back = new Int32Array(n * heads);
  let offset = 0;
  const forward = blocks.map(({ places, outer, inner, length }) => {
    const index = new Int32Array(places.length * heads);
    let at = 0;
    for (let o = 0; o < outer; o++)
      for (let k = 0; k < kvHeads; k++)
        for (let i = 0; i < inner; i++)
          for (let j = 0; j < groups; j++) {
            const head = k * groups + j;
            const row = (o * inner + i) * length;
            for (let s = 0; s < length; s++, at++) {
              const place = places[row + s];
              const token = (place < 0 ? standIn : place) * heads + head;
              index[at] = token;
              // Any empty slot may represent the dummy token, because none has a gradient.
              back[token] = offset + at;
            }
          }
    offset += at;
    return index;
  });
  return { forward, back };
}
