// Splits samples into passes with a maximum number of tokens. Samples of a group share their common prefix within a
// pass. The plan is a pure function of the token ids.
import { maximum, minimum } from '../../common/lists';
import type { PassBudget, TrainingSample } from '../../engine/training-samples';

export type Sample = Pick<TrainingSample, 'ids' | 'mask'>;

/** Samples (by index) whose first `prefix` tokens are equal; the prefix is computed once for all of them. */
export interface Cluster {
  members: number[];
  prefix: number;
}

/**
 * Clusters that are computed in one pass. Either every cluster has a shared prefix, or every cluster is a single
 * sample.
 */
export interface Pass {
  shared: boolean;
  clusters: Cluster[];
}

/** Minimum length of a shared prefix in tokens; a shorter prefix saves less time than its extra matmuls take. */
const leastPrefix = 8;

/**
 * Returns passes over all samples, in a deterministic order. Rows of similar length share a pass, which reduces
 * attention padding.
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
      // Attention pads every cluster of a pass to the largest number of members, so clusters of very different size are
      // not mixed.
      last.clusters[0].members.length * 2 > rows;
    if (fits) {
      last.clusters.push(cluster);
      last.tokens += tokens;
      last.rows += rows;
    } else passes.push({ shared, clusters: [cluster], tokens, rows });
  }
  return passes.map(({ shared, clusters: chosen }) => ({ shared, clusters: chosen }));
}

/** Returns the number of packed tokens of a cluster. */
function tokensOf({ members, prefix }: Cluster, samples: readonly Pick<Sample, 'ids'>[]): number {
  return members.reduce((sum, i) => sum + samples[i].ids.length - prefix, prefix);
}

/** Sorts the samples by their ids and partitions them into the clusters whose shared prefixes save the most tokens. */
function clusterByPrefix(samples: readonly Pick<Sample, 'ids'>[], maxRows: number): Cluster[] {
  const order = [...samples.keys()].sort((a, b) => compareIds(samples[a].ids, samples[b].ids) || a - b);
  const n = order.length;
  /**
   * common[i]: length of the common prefix of samples i−1 and i in sorted order; always less than either sample's
   * length.
   */
  const common = order.map((sample, i) => {
    if (i === 0) return 0;
    const [a, b] = [samples[order[i - 1]].ids, samples[sample].ids];
    const end = Math.min(a.length, b.length) - 1;
    let k = 0;
    while (k < end && a[k] === b[k]) k++;
    return k;
  });
  // best[i]: the maximum number of tokens that can be saved if the first i samples are divided into clusters. from[i]:
  // the index of the first sample in the last of these clusters.
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
 * If a cluster has more tokens than a pass allows, splits it into several clusters, each of which has the shared
 * prefix. Rows of similar length stay in the same cluster.
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
