// Feeds of the scoring, policy, supervised and critic graphs. They contain the packed tokens of a pass (packing.ts).
// "Masked tokens" are the tokens with mask = 1; only these tokens contribute to the loss. This file maps per-sample
// arrays to the flat list of masked tokens and back. The log-prob of token i is computed at position i − 1, where the
// model predicts this token.
import { maximum } from '../../common/lists';
import { float32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { RotaryShape } from '../decoder/rotary-frequencies';
import { packPass } from './packing';
import type { Pass, Sample } from './pass-plan';
import { pictureFeeds } from './picture-feeds';

export interface BatchFeeds<S extends Sample> {
  /** Packed tokens, rows and targets. */
  feeds: Record<string, Tensor>;
  /**
   * Whether the last layer computes only the tokens that predict masked tokens. True if these are at most half of the
   * tokens and, without shared prefixes, at most half of each row, so that the pass needs no more memory.
   */
  trimmed: boolean;
  /** Whether the pass shows pictures, so that the feed `features` is needed in addition. */
  pictured: boolean;
  /** Number of masked tokens. */
  count: number;
  /** Number of packed tokens. */
  tokens: number;
  /** Returns the masked entries of a per-sample array, in the order of the graph's `n` axis. */
  gather(pick: (sample: S) => Float32Array): Tensor;
  /**
   * Returns the matrix M [samples, count] that assigns masked tokens to samples. An entry is 1/√(number of masked
   * tokens of the sample) if the token belongs to the sample, else 0. For each token, MᵀM·x is then the mean of x over
   * the token's sample.
   */
  memberships(): Tensor;
  /** Inverse of `gather`: sets `into[i]` for each sample i of the pass, with 0 where mask = 0. */
  scatter(flat: Float32Array, into: Float32Array[]): void;
}

export function batchFeeds<S extends Sample>(
  pass: Pass,
  samples: readonly S[],
  config: Pick<DecoderConfig, 'heads' | 'kvHeads'> & RotaryShape,
): BatchFeeds<S> {
  const { feeds, members, tokens, pictures, at, last } = packPass(pass, samples, config);
  /** For each sample of the pass: the positions that predict its masked tokens. */
  const predicting: number[][] = [];
  const targets: number[] = [];
  /** For each sample of the pass: the number of masked tokens in this sample and all samples before it. */
  const ends: number[] = [];
  for (const member of members) {
    const { ids, mask } = samples[member];
    const positions: number[] = [];
    for (let i = 1; i < ids.length; i++) {
      if (!mask[i]) continue;
      positions.push(i - 1);
      targets.push(ids[i]);
    }
    predicting.push(positions);
    ends.push(targets.length);
  }
  const count = targets.length;
  const w = maximum(predicting.map(({ length }) => length));
  const trimmed = 2 * count <= tokens && (pass.shared || 2 * w <= feeds.key_rows.dims.at(-1)!);
  const rows = trimmed ? [...targets.keys()] : predicting.flatMap((of, k) => of.map(position => at(k, position)));
  const vector = (xs: number[]): Tensor => int64(BigInt64Array.from(xs, BigInt), [xs.length]);
  return {
    feeds: {
      ...feeds,
      ...(pictures && pictureFeeds(pictures, config)),
      ...(trimmed && last(predicting)),
      rows: vector(rows),
      targets: vector(targets),
    },
    trimmed,
    pictured: pictures !== undefined,
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

/** Returns the number of a sample's tokens that a pass predicts: all masked tokens except the one at position 0. */
export function maskedTokens({ mask }: Sample): number {
  let count = 0;
  for (let i = 1; i < mask.length; i++) if (mask[i]) count++;
  return count;
}

/** Returns the feed that splits `count` tokens into `chunks` parts of similar length; empty for a single part. */
export function chunkFeeds(count: number, chunks: number): Record<string, Tensor> {
  if (chunks === 1) return {};
  const ends = Array.from({ length: chunks + 1 }, (_, i) => Math.floor((i * count) / chunks));
  const sizes = BigInt64Array.from({ length: chunks }, (_, i) => BigInt(ends[i + 1] - ends[i]));
  return { chunk_sizes: int64(sizes, [chunks]) };
}

/** Maximum bytes of logits in memory at a time. */
const logitBytes = 64 * 2 ** 20;

/**
 * Returns the maximum bytes of logits in memory at a time. `gradientBytes` is the size of the head's gradient, 0 if the
 * head is not trained. Every chunk of tokens allocates such a gradient. Chunks whose logits are smaller than this
 * gradient would therefore cost more memory than they save.
 */
export const logitsAtATime = (gradientBytes: number): number => Math.max(logitBytes, gradientBytes);

/**
 * Returns the number of chunks in which `tokens` tokens pass through a head of `vocab` logits. The number is a power of
 * two, so that there are few different graphs.
 */
export function headChunks(tokens: number, vocab: number, atATime = logitBytes): number {
  const needed = (tokens * vocab * 4) / atATime;
  const chunks = 2 ** Math.max(0, Math.ceil(Math.log2(needed)));
  return Math.min(chunks, 64, 2 ** Math.floor(Math.log2(Math.max(tokens, 1))));
}

/** Returns the maximum number of tokens that pass through a head of `vocab` logits in `chunks` chunks. */
export const headTokens = (chunks: number, vocab: number, atATime = logitBytes): number =>
  Math.floor((chunks * atATime) / (vocab * 4));

export function scalarFeeds(values: Record<string, number>): Record<string, Tensor> {
  return Object.fromEntries(Object.entries(values).map(([name, x]) => [name, float32(new Float32Array([x]), [])]));
}
