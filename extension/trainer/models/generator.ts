// Batched generation over a key-value cache that rows keep between turns. A call appends each row's new ids in one chunk
// (prompts that are equal are computed once), then decodes token by token until each row has stopped.
// Invariant: a row's tokens depend on its own ids, seed and the weights, up to rounding, never on which rows are generated beside it.
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../engine/engine';
import { causalMask, padRows } from '../engine/padding';
import { RandomStream } from '../engine/random-stream';
import { drawToken } from '../engine/sampling';
import { Session, int64 } from '../engine/session';
import type { SessionOptions } from '../engine/session';
import type { DecoderConfig } from './decoder-config';
import { BatchCache, RowCache, appendChunk } from './key-value-cache';
import { generateGraph } from './policy-graphs';
import type { Weights } from './weights';

/** A prefill call holds at most so many tokens, which bounds the memory of attention scores. */
const prefillTokens = 8192;

interface Decoding {
  request: GenerationRow;
  cache: RowCache;
  stream: RandomStream;
  /** Tokens of the row before the first one sampled in this call. */
  prefix: number;
  ids: number[];
  logprobs: number[];
  finish: 'stop' | 'length' | null;
}

export class Generator {
  private session?: Promise<Session>;
  private readonly rows = new Map<string, RowCache>();

  constructor(
    private readonly config: DecoderConfig,
    private readonly weights: Weights,
    private readonly options: SessionOptions,
  ) {}

  /** Generates for all rows; results are in the order of `requests`. `onTokens` hears how many were sampled so far. */
  async generate(
    requests: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<GeneratedRow[]> {
    const session = await (this.session ??= Session.create(generateGraph(this.config), this.options));
    const decodings = requests.map((request): Decoding => {
      let cache = this.rows.get(request.row);
      if (!cache) this.rows.set(request.row, (cache = new RowCache(this.config)));
      return { request, cache, stream: new RandomStream(request.seed), prefix: 0, ids: [], logprobs: [], finish: null };
    });
    await this.prefill(session, decodings, sampling);
    await this.decode(session, decodings, sampling, onTokens);
    return decodings.map(({ request, cache, ids, logprobs, finish }) => {
      cache.pending = ids.at(-1) ?? null;
      return { row: request.row, ids, logprobs, finish: finish ?? 'length' };
    });
  }

  /** Forgets rows: their episodes are over, or the weights have changed. */
  release(rows: readonly string[]): void {
    for (const row of rows) this.rows.delete(row);
  }

  /** Appends each row's new ids and samples its first token. */
  private async prefill(session: Session, decodings: readonly Decoding[], sampling: SamplingOptions): Promise<void> {
    const chunks = new Map<string, { ids: number[]; members: Decoding[] }>();
    for (const decoding of decodings) {
      const { cache, request } = decoding;
      const ids = cache.pending === null ? request.append : [cache.pending, ...request.append];
      if (ids.length === 0) throw new Error(`generator: row ${request.row} has nothing to append`);
      const key = cache.length === 0 ? `prompt:${ids.join()}` : `row:${request.row}`;
      const chunk = chunks.get(key);
      if (chunk) chunk.members.push(decoding);
      else chunks.set(key, { ids, members: [decoding] });
    }
    const sorted = [...chunks.values()].sort((a, b) => b.ids.length - a.ids.length);
    while (sorted.length > 0) {
      const t = sorted[0].ids.length;
      const batch = sorted.splice(0, Math.max(1, Math.floor(prefillTokens / t)));
      const caches = batch.map(({ members }) => members[0].cache);
      const past = new BatchCache(caches, this.config);
      const counts = batch.map(({ ids }) => ids.length);
      const outputs = await session.run({
        ...this.weights.feeds(),
        ...past.feeds(),
        ...padRows(
          batch.map(({ ids }) => ids),
          t,
          past.lengths,
        ),
        new_mask: causalMask(t),
        rows: int64(
          BigInt64Array.from(counts, (count, r) => BigInt(r * t + count - 1)),
          [batch.length],
        ),
      });
      appendChunk(caches, outputs, t, counts);
      batch.forEach(({ members }, r) => {
        for (const member of members) {
          if (member !== members[0]) member.cache.copyFrom(members[0].cache);
          member.cache.pending = null;
          member.prefix = member.cache.length;
          this.sample(member, outputs.logits.data as Float32Array, r, sampling);
        }
      });
    }
  }

  private async decode(
    session: Session,
    all: readonly Decoding[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<void> {
    let active = all.filter(d => d.finish === null);
    while (active.length > 0) {
      const batch = active;
      const past = new BatchCache(
        batch.map(d => d.cache),
        this.config,
      );
      let alive = batch.map(() => true);
      let living = batch.length;
      // The same batch goes on while it has room and enough of its rows are alive.
      while (living > 0 && !past.full && (living > batch.length / 2 || living === batch.length)) {
        const outputs = await session.run({
          ...this.weights.feeds(),
          ...past.feeds(),
          ...padRows(
            batch.map(d => [d.ids[d.ids.length - 1]]),
            1,
            past.lengths,
          ),
          new_mask: causalMask(1),
          rows: int64(
            BigInt64Array.from(batch, (_, r) => BigInt(r)),
            [batch.length],
          ),
        });
        past.append(outputs, alive);
        alive = alive.map((on, r) => on && this.sample(batch[r], outputs.logits.data as Float32Array, r, sampling));
        living = alive.filter(Boolean).length;
      }
      past.unpack();
      active = batch.filter(d => d.finish === null);
      onTokens?.(all.reduce((n, d) => n + d.ids.length, 0));
    }
  }

  /** Draws the next token of a row from row `r` of the logits; false when the row is finished by it. */
  private sample(d: Decoding, logits: Float32Array, r: number, sampling: SamplingOptions): boolean {
    const vocab = this.config.vocabSize;
    const { token, logprob } = drawToken(logits, r * vocab, vocab, sampling, d.stream.uniform());
    d.ids.push(token);
    d.logprobs.push(logprob);
    if (sampling.stop_token_ids.includes(token)) d.finish = 'stop';
    else if (d.ids.length >= sampling.max_new_tokens || d.prefix + d.ids.length >= sampling.max_model_len)
      d.finish = 'length';
    return d.finish === null;
  }
}
