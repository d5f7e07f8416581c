// What scoring, policy, imitation and critic graphs are fed: the packed tokens of a pass (packing.ts), and the maps between per-sample
// arrays and the flat list of its masked tokens. Masked token i of a sample is read at token i − 1, which predicts it.
import { float32, int64 } from '../engine/session';
import type { Tensor } from '../engine/session';
import type { DecoderConfig } from './decoder-config';
import { packPass } from './packing';
import type { Pass, Sample } from './packing';

export interface BatchFeeds<S extends Sample> {
  /** Packed tokens, rows, targets. */
  feeds: Record<string, Tensor>;
  /** Number of masked tokens. */
  count: number;
  /** Number of packed tokens. */
  tokens: number;
  /** The masked entries of a per-sample array, in the order of the graph's `n` axis. */
  gather(pick: (sample: S) => Float32Array): Tensor;
  /** Which masked token is whose: [samples, count], 1/√length where the token is the sample's, so that MᵀM·x is each sample's mean of x. */
  memberships(): Tensor;
  /** The inverse of gather: each member's array goes to its sample's place in `into`; zeros where nothing is masked. */
  scatter(flat: Float32Array, into: Float32Array[]): void;
}

export function batchFeeds<S extends Sample>(
  pass: Pass,
  samples: readonly S[],
  config: Pick<DecoderConfig, 'heads' | 'kvHeads'>,
): BatchFeeds<S> {
  const { feeds, members, tokens, at } = packPass(pass, samples, config);
  const rows: number[] = [];
  const targets: number[] = [];
  /** Number of masked tokens up to the end of each member. */
  const ends: number[] = [];
  members.forEach((member, k) => {
    const { ids, mask } = samples[member];
    for (let i = 1; i < ids.length; i++) {
      if (!mask[i]) continue;
      rows.push(at(k, i - 1));
      targets.push(ids[i]);
    }
    ends.push(rows.length);
  });
  const count = rows.length;
  const vector = (xs: number[]): Tensor => int64(BigInt64Array.from(xs, BigInt), [xs.length]);
  return {
    feeds: { ...feeds, rows: vector(rows), targets: vector(targets) },
    count,
    tokens,
    gather(pick) {
      const out = new Float32Array(count);
      let n = 0;
      for (const member of members) {
        const { ids, mask } = samples[member];
        const values = pick(samples[member]);
        for (let i = 1; i < ids.length; i++) if (mask[i]) out[n++] = values[i];
      }
      return float32(out, [count]);
    },
    memberships() {
      const matrix = new Float32Array(members.length * count);
      ends.forEach((end, k) => {
        const begin = k === 0 ? 0 : ends[k - 1];
        matrix.fill(1 / Math.sqrt(end - begin), k * count + begin, k * count + end);
      });
      return float32(matrix, [members.length, count]);
    },
    scatter(flat, into) {
      let n = 0;
      for (const member of members) {
        const { ids, mask } = samples[member];
        const out = new Float32Array(ids.length);
        for (let i = 1; i < ids.length; i++) if (mask[i]) out[i] = flat[n++];
        into[member] = out;
      }
    },
  };
}

/** Tokens of a sample that a pass predicts: the masked ones but its first. */
export function maskedTokens({ mask }: Sample): number {
  let count = 0;
  for (let i = 1; i < mask.length; i++) if (mask[i]) count++;
  return count;
}

/** The feed that cuts `count` tokens into `chunks` parts of like length; none where there is one part. */
export function chunkFeeds(count: number, chunks: number): Record<string, Tensor> {
  if (chunks === 1) return {};
  const ends = Array.from({ length: chunks + 1 }, (_, i) => Math.floor((i * count) / chunks));
  const sizes = BigInt64Array.from({ length: chunks }, (_, i) => BigInt(ends[i + 1] - ends[i]));
  return { chunk_sizes: int64(sizes, [chunks]) };
}

/** Bytes of logits that may live at a time. */
const logitBytes = 64 * 2 ** 20;

/**
 * Bytes of logits that may live at a time where the head's gradient takes `gradientBytes` (0: it is not trained). Each part of the tokens
 * makes such a gradient, so that logits smaller than it would save less than they cost.
 */
export const logitsAtATime = (gradientBytes: number): number => Math.max(logitBytes, gradientBytes);

/** Parts in which so many tokens go through a head of `vocab` logits: a power of two, so that few graphs are made. */
export function headChunks(tokens: number, vocab: number, atATime = logitBytes): number {
  const needed = (tokens * vocab * 4) / atATime;
  const chunks = 2 ** Math.max(0, Math.ceil(Math.log2(needed)));
  return Math.min(chunks, 64, 2 ** Math.floor(Math.log2(Math.max(tokens, 1))));
}

/** Most tokens that go through a head of `vocab` logits in so many parts. */
export const headTokens = (chunks: number, vocab: number, atATime = logitBytes): number =>
  Math.floor((chunks * atATime) / (vocab * 4));

export function scalarFeeds(values: Record<string, number>): Record<string, Tensor> {
  return Object.fromEntries(Object.entries(values).map(([name, x]) => [name, float32(new Float32Array([x]), [])]));
}
