// Packs the samples of a pass (pass-plan.ts) without padding: creates the feeds of packedAttention (attention.ts), and
// the mapping between per-sample arrays and packed tokens. The results are pure functions of the token ids. Invariant:
// within a pass every required token of a sample is computed once, and gradients are summed over passes.
import { maximum } from '../../common/lists';
import { causalMask, masked } from '../../engine/session/padding';
import { float32, int32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { ShownFeatures } from '../../engine/training-samples';
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
  /**
   * The image features that the packed tokens show; undefined if no sample shows a picture. If defined, the fed
   * positions are the indices of the packed tokens, because the rotation of each token is fed (picture-feeds.ts).
   */
  pictures?: ShownFeatures;
  /** Returns the index of the packed token at `position` of the pass's k-th sample. */
  at(k: number, position: number): number;
  /**
   * Returns the feeds of the last layer, which computes hidden states only at the given positions of each sample. The
   * hidden states are in the order of the samples and positions; a dummy follows them if attention has empty slots.
   */
  last(positions: readonly (readonly number[])[]): Record<string, Tensor>;
}

export function packPass(
  { shared, clusters }: Pass,
  samples: readonly Pick<Sample, 'ids' | 'pictures'>[],
  c: Pick<DecoderConfig, 'heads' | 'kvHeads'>,
): PackedPass {
  const members = clusters.flatMap(cluster => cluster.members);
  const rows = members.length;
  const u = maximum(clusters.map(({ prefix }) => prefix));
  // Each row of t tokens is split into two halves for attention; t is at least 2, because neither half may be empty.
  const t = maximum(
    clusters.flatMap(({ members, prefix }) => members.map(i => samples[i].ids.length - prefix)),
    2,
  );
  const ids: number[] = [];
  const positions: number[] = [];
  const pictured = members.some(member => samples[member].pictures);
  const features: number[] = [];
  const axes: number[][] = [[], [], []];
  const append = ({ ids: source, pictures }: (typeof samples)[number], from: number, to: number): number => {
    const start = ids.length;
    for (let i = from; i < to; i++) {
      ids.push(source[i]);
      positions.push(pictured ? positions.length : i);
      features.push(pictures?.features[i] ?? -1);
      axes.forEach((axis, k) => axis.push(pictures?.positions[k * source.length + i] ?? i));
    }
    return start;
  };
  // Index of the packed token in each slot of the prefix blocks [p, u] and of the row blocks [b, t]; −1 for empty slots.
  const prefixPlaces = new Int32Array(clusters.length * u).fill(-1);
  const rowPlaces = new Int32Array(rows * t).fill(-1);
  const starts: { prefixStart: number; prefix: number; rowStart: number }[] = [];
  const prefixOf = new Int32Array(rows);
  clusters.forEach(({ members, prefix }, p) => {
    const prefixStart = append(samples[members[0]], 0, prefix);
    for (let i = 0; i < prefix; i++) prefixPlaces[p * u + i] = prefixStart + i;
    members.forEach(member => {
      const { ids: own } = samples[member];
      const rowStart = append(samples[member], prefix, own.length);
      const row = starts.length;
      for (let i = 0; i < own.length - prefix; i++) rowPlaces[row * t + i] = rowStart + i;
      prefixOf[row] = p;
      starts.push({ prefixStart, prefix, rowStart });
    });
  });
  // Empty slots are filled with a dummy token. No result depends on the dummy token, so its gradient is zero.
  const padded = prefixPlaces.includes(-1) || rowPlaces.includes(-1);
  const dummyToken = ids.length;
  if (padded) {
    append({ ids: Int32Array.of(0) }, 0, 1);
  }
  const n = ids.length;
  const blocks = [
    ...(shared ? [{ places: prefixPlaces, outer: clusters.length, inner: 1, length: u }] : []),
    { places: rowPlaces, outer: rows, inner: 1, length: t },
  ];
  const groups = c.heads / c.kvHeads;
  const queries = headIndex(blocks, n, dummyToken, c.kvHeads, groups);
  const keys = headIndex(blocks, n, dummyToken, c.kvHeads, 1);
  const rowDims = [rows, c.kvHeads];
  const prefixDims = [clusters.length, c.kvHeads];
  const feeds: Record<string, Tensor> = {
    ids: int64(BigInt64Array.from(ids, BigInt), [n]),
    positions: int64(BigInt64Array.from(positions, BigInt), [n]),
    query_rows: int32(queries.forward.at(-1)!, [...rowDims, groups * t]),
    key_rows: int32(keys.forward.at(-1)!, [...rowDims, t]),
    ...halfMasks(t, u),
    query_places: int32(queries.back, [n * c.heads]),
    key_places: int32(keys.back, [n * c.kvHeads]),
  };
  if (shared) {
    feeds.query_prefixes = int32(queries.forward[0], [...prefixDims, groups * u]);
    feeds.key_prefixes = int32(keys.forward[0], [...prefixDims, u]);
    feeds.prefixes_mask = causalMask(u);
    Object.assign(feeds, prefixFeeds(clusters, prefixOf, t, u));
  }
  const at = (k: number, position: number): number => {
    const { prefixStart, prefix, rowStart } = starts[k];
    return position < prefix ? prefixStart + position : rowStart + position - prefix;
  };
  return {
    feeds,
    members,
    tokens: n,
    pictures: pictured ? { features: Int32Array.from(features), positions: Int32Array.from(axes.flat()) } : undefined,
    at,
    last: positions => {
      const w = maximum(positions.map(({ length }) => length));
      const tokens: number[] = [];
      /** Row of each token in the rotary tables. */
      const inTables: number[] = [];
      const places = new Int32Array(rows * w).fill(-1);
      const reach = new Float32Array(rows * w);
      positions.forEach((wanted, row) => {
        const { prefix } = starts[row];
        wanted.forEach((position, i) => {
          places[row * w + i] = tokens.length;
          reach[row * w + i] = position < prefix ? position : u + position - prefix;
          tokens.push(at(row, position));
          inTables.push(pictured ? at(row, position) : position);
        });
      });
      const dummy = tokens.length;
      // Without empty slots there is no dummy, because the gradient of its query would be that of another query's slot.
      if (places.includes(-1)) {
        tokens.push(0);
        inTables.push(0);
      }
      const blocks = [{ places, outer: rows, inner: 1, length: w }];
      const { forward, back } = headIndex(blocks, tokens.length, dummy, c.kvHeads, groups);
      return {
        last_tokens: int64(BigInt64Array.from(tokens, BigInt), [tokens.length]),
        last_positions: int64(BigInt64Array.from(inTables, BigInt), [tokens.length]),
        last_queries: int32(forward[0], [...rowDims, groups * w]),
        last_places: int32(back, [tokens.length * c.heads]),
        last_reach: float32(reach, [rows, 1, 1, w, 1]),
        slots: float32(
          Float32Array.from({ length: u + t }, (_, slot) => slot),
          [u + t],
        ),
      };
    },
  };
}

/**
 * Returns the additive causal masks of the two halves of a row of t tokens that continues a prefix of u tokens. Tokens
 * of the early half attend to the prefix and the early half; tokens of the late half attend to the prefix and the
 * complete row.
 */
function halfMasks(t: number, u: number): Record<string, Tensor> {
  const mask = (from: number, to: number): Tensor => {
    const width = u + to;
    const data = new Float32Array((to - from) * width);
    for (let i = from; i < to; i++) data.fill(masked, (i - from) * width + u + i + 1, (i - from + 1) * width);
    return float32(data, [to - from, width]);
  };
  const early = Math.ceil(t / 2);
  return { early_mask: mask(0, early), late_mask: mask(early, t) };
}

/**
 * Returns the feeds that connect rows to prefixes: the prefix of each row, as an index and as a matrix, and the masks
 * of the slots that each half of a row sees. If a prefix has fewer than u tokens, its remaining slots are masked.
 */
function prefixFeeds(clusters: readonly Cluster[], prefixOf: Int32Array, t: number, u: number): Record<string, Tensor> {
  const rows = prefixOf.length;
  const memberships = new Float32Array(clusters.length * rows);
  prefixOf.forEach((p, row) => (memberships[p * rows + row] = 1));
  const slots = (to: number): Tensor => {
    const width = u + to;
    const data = new Float32Array(rows * width);
    prefixOf.forEach((p, row) => data.fill(masked, row * width + clusters[p].prefix, row * width + u));
    return float32(data, [rows, 1, 1, 1, width]);
  };
  return {
    row_prefixes: int32(prefixOf, [rows]),
    prefix_rows: float32(memberships, [clusters.length, rows]),
    early_slots: slots(Math.ceil(t / 2)),
    late_slots: slots(t),
  };
}
