// Splits samples into passes with a maximum number of tokens. Samples of a group share their common prefix within a
// pass. Attention pads the rows of a pass to the longest row, so rows of very different length are put into different
// passes, as long as the additional passes cost less than the padding. The plan is a pure function of the token ids and
// of the costs.
import { minimum } from '../../common/lists';
import type { PassBudget, TrainingSample } from '../../engine/training-samples';
import type { DecoderConfig } from '../decoder/decoder-config';

export type Sample = Pick<TrainingSample, 'ids' | 'mask' | 'pictures'>;
type Tokens = Pick<Sample, 'ids' | 'pictures'>;

/** Samples (by index) whose first `prefix` tokens are equal; the prefix is computed once for all of them. */
export interface Cluster {
  members: number[];
  prefix: number;
}

/**
 * Clusters that are computed in one pass. If the pass is shared, attention computes prefixes and rows apart. The prefix
 * of a cluster with a single sample then also counts as prefix, so that its row is not longer than the others.
 */
export interface Pass {
  shared: boolean;
  clusters: Cluster[];
}

/** Costs of the parts of a pass. The unit is the cost of one query-key pair of all heads in attention. */
export interface PassCosts {
  /** Products of one token with all weights of a layer. */
  token: number;
  /** Overhead of a pass. */
  pass: number;
}

/**
 * Number of multiply-adds in the time of a layer's share of a pass's overhead: calling operators, whatever their size.
 * Measured on two cores with models of 3 to 6 layers.
 */
const layerOverhead = 2 ** 24;
/** Number of tokens whose products take as long as reading a layer's weights and adding its gradients. */
const tokensPerWeights = 16;

/** Returns the costs of passes through a decoder. */
export function passCosts(
  c: Pick<DecoderConfig, 'hiddenSize' | 'intermediateSize' | 'heads' | 'kvHeads' | 'headSize'>,
): PassCosts {
  const pair = 2 * c.heads * c.headSize;
  const weights = c.hiddenSize * (2 * (c.heads + c.kvHeads) * c.headSize + 3 * c.intermediateSize);
  return { token: weights / pair, pass: (tokensPerWeights * weights + layerOverhead) / pair };
}

/** Minimum length of a shared prefix in tokens; a shorter prefix saves less time than its extra matmuls take. */
const leastPrefix = 8;
/** Rows whose lengths differ by at most this factor belong to the same class of lengths. */
const classRatio = 1.25;

/** A sample after its prefix. `cluster` is the index of the cluster, which determines the prefix. */
interface Row {
  member: number;
  cluster: number;
  prefix: number;
  /** Number of tokens after the prefix. */
  own: number;
}

/**
 * Returns passes over all samples, in a deterministic order. Two orders of the samples are compared: cluster by cluster,
 * which keeps prefixes together, and by class of length, which keeps padding small. For each order, the cheapest cuts
 * are found by dynamic programming; the cheaper order is used.
 */
export function planPasses(samples: readonly Tokens[], budget: PassBudget, costs: PassCosts): Pass[] {
  const rows = clusterByPrefix(samples, budget.maxRows).flatMap(({ members, prefix }, cluster) =>
    members.map((member): Row => ({ member, cluster, prefix, own: samples[member].ids.length - prefix })),
  );
  const longest = new Map<number, number>();
  for (const { cluster, own } of rows) longest.set(cluster, Math.max(own, longest.get(cluster) ?? 0));
  const lengthClass = ({ own }: Row): number => Math.ceil(Math.log(own) / Math.log(classRatio));
  const inCluster = (a: Row, b: Row): number =>
    longest.get(b.cluster)! - longest.get(a.cluster)! || a.cluster - b.cluster || b.own - a.own || a.member - b.member;
  const orders = [
    [...rows].sort(inCluster),
    [...rows].sort(
      (a, b) => Number(b.prefix > 0) - Number(a.prefix > 0) || lengthClass(b) - lengthClass(a) || inCluster(a, b),
    ),
  ];
  const [first, second] = orders.map(order => cheapestCuts(order, budget, costs));
  return (second.cost < first.cost ? second : first).passes.map(passOf);
}

/** Returns the pass over the given rows. Rows of the same cluster must be neighbours. */
function passOf(rows: readonly Row[]): Pass {
  const clusters: Cluster[] = [];
  const shared = rows.some(({ cluster, prefix }, i) => prefix > 0 && rows[i + 1]?.cluster === cluster);
  rows.forEach(({ member, cluster, prefix }, i) => {
    if (i > 0 && rows[i - 1].cluster === cluster) clusters.at(-1)!.members.push(member);
    else clusters.push({ members: [member], prefix: shared ? prefix : 0 });
  });
  return { shared, clusters };
}

/** Cuts the rows into passes, so that the sum of their costs is minimal. */
function cheapestCuts(
  rows: readonly Row[],
  { maxTokens, maxRows }: PassBudget,
  costs: PassCosts,
): { cost: number; passes: Row[][] } {
  // best[i]: the lowest cost of the first i rows. from[i]: the index of the first row in the last of these passes.
  const best = new Float64Array(rows.length + 1).fill(Infinity);
  const from = new Int32Array(rows.length + 1);
  best[0] = 0;
  for (let end = 1; end <= rows.length; end++) {
    let tokens = 0;
    let prefixes = 0;
    let [t, u, whole] = [0, 0, 0];
    for (let start = end - 1; start >= 0 && end - start <= maxRows; start--) {
      const { cluster, prefix, own } = rows[start];
      const isNew = start === end - 1 || rows[start + 1].cluster !== cluster;
      tokens += own + (isNew ? prefix : 0);
      if (start < end - 1 && tokens > maxTokens) break;
      if (isNew) prefixes++;
      t = Math.max(t, own);
      u = Math.max(u, prefix);
      whole = Math.max(whole, prefix + own);
      // Three quarters of t²: packedAttention splits rows into two halves.
      const count = end - start;
      const pairs = prefixes === count ? 0.75 * count * whole ** 2 : prefixes * u ** 2 + count * t * (u + 0.75 * t);
      const cost = best[start] + costs.pass + tokens * costs.token + pairs;
      if (cost < best[end]) {
        best[end] = cost;
        from[end] = start;
      }
    }
  }
  const passes: Row[][] = [];
  for (let end = rows.length; end > 0; end = from[end]) passes.push(rows.slice(from[end], end));
  return { cost: best[rows.length], passes: passes.reverse() };
}

/** Sorts the samples by their ids and partitions them into the clusters whose shared prefixes save the most tokens. */
function clusterByPrefix(samples: readonly Tokens[], maxRows: number): Cluster[] {
  const keys = samples.map(tokenKeys);
  const order = [...samples.keys()].sort((a, b) => compareIds(keys[a], keys[b]) || a - b);
  const n = order.length;
  /**
   * common[i]: length of the common prefix of samples i−1 and i in sorted order; always less than either sample's
   * length.
   */
  const common = order.map((sample, i) => {
    if (i === 0) return 0;
    const [a, b] = [keys[order[i - 1]], keys[sample]];
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

/** Returns the ids, with each token that shows an image feature replaced by a negative number for this feature. */
function tokenKeys({ ids, pictures }: Tokens): Int32Array {
  return pictures ? ids.map((id, i) => (pictures.features[i] < 0 ? id : -1 - pictures.features[i])) : ids;
}

function compareIds(a: Int32Array, b: Int32Array): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
