// Batched generation over a key-value cache that rows keep between turns. A call appends each row's new ids in one chunk (prompts that
// are equal are computed once), then decodes token by token; a row that has stopped makes room for one that waits.
// Invariant: a row's tokens depend on its own ids, seed and the weights alone. On the CPU that holds bit for bit: products compute each
// row by itself, sums over cached tokens run in blocks, and a step never has a single row, for which other kernels are used.
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../engine/engine';
import { RandomStream } from '../engine/random-stream';
import { Sampler } from '../engine/sampler';
import { drawToken, isUncut } from '../engine/sampling';
import { Session, int64, loweringOf } from '../engine/session';
import type { SessionOptions, Tensor } from '../engine/session';
import { UserError } from '../../protocol/user-error';
import { BatchCache, RowCache, appendChunks, block, pastFeeds } from './key-value-cache';
import { packChunks } from './packing';
import type { ParameterBank } from './parameter-bank';
import { generateGraph } from './policy-graphs';
import type { Network } from './policy-graphs';

/** A prefill call holds at most so many tokens, which bounds the memory of attention scores. */
export const prefillTokens = 4096;
/** Rows that are decoded together at most. */
export const decodedRows = 128;

export interface GeneratorOptions extends SessionOptions {
  /** Rows that are decoded together at most. */
  maxRows?: number;
  /** Text of ids, for stop strings. */
  decode?: (ids: readonly number[]) => string;
}

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
  /** All ids of a row, for the repetition penalty. */
  private readonly history = new Map<string, number[]>();
  private readonly sampler: Sampler;

  constructor(
    private readonly network: Network,
    private readonly bank: Pick<ParameterBank, 'feeds'>,
    private readonly options: GeneratorOptions,
  ) {
    // CUDA's logits come to the host, where they may as well be drawn from.
    this.sampler = new Sampler(network.config.vocabSize, options.provider === 'cuda' ? { threads: options.threads } : options); // prettier-ignore
  }

  /** Generates for all rows; results are in the order of `requests`. `onTokens` hears how many were sampled so far. */
  async generate(
    requests: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<GeneratedRow[]> {
    const { config } = this.network;
    const all = requests.map((request): Decoding => {
      let cache = this.rows.get(request.row);
      if (!cache) this.rows.set(request.row, (cache = new RowCache(config)));
      this.remember(request.row, request.append);
      return { request, cache, stream: new RandomStream(request.seed), prefix: 0, ids: [], logprobs: [], finish: null };
    });
    const session = await this.open();
    await this.prefill(session, all, sampling);
    await this.decode(session, all, sampling, onTokens);
    return all.map(({ request, cache, ids, logprobs, finish }) => {
      cache.pending = ids.at(-1) ?? null;
      this.remember(request.row, ids);
      return { row: request.row, ids, logprobs, finish: finish ?? 'length' };
    });
  }

  /** Forgets rows: their episodes are over, or the weights have changed. */
  release(rows: readonly string[]): void {
    for (const row of rows) {
      this.rows.delete(row);
      this.history.delete(row);
    }
  }

  /** Makes the session, which for large models takes seconds. */
  open(): Promise<Session> {
    return (this.session ??= Session.create(generateGraph(this.network, loweringOf(this.options)), {
      ...this.options,
      folder: this.network.folder,
    }));
  }

  private remember(row: string, ids: readonly number[]): void {
    const known = this.history.get(row);
    if (known) known.push(...ids);
    else this.history.set(row, [...ids]);
  }

  /** Appends each row's new ids and samples its first token. */
  private async prefill(session: Session, all: readonly Decoding[], sampling: SamplingOptions): Promise<void> {
    const chunks = new Map<string, { ids: number[]; members: Decoding[] }>();
    for (const decoding of all) {
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
      const batch = sorted.splice(0, Math.max(1, Math.floor(prefillTokens / sorted[0].ids.length)));
      const caches = batch.map(({ members }) => members[0].cache);
      const counts = batch.map(({ ids }) => ids.length);
      const packed = packChunks(
        batch.map(({ ids }) => ids),
        caches.map(({ length }) => length),
        block,
        this.network.config,
      );
      const ends = packed.starts.map((start, r) => start + counts[r] - 1);
      const outputs = await this.run(session, {
        ...pastFeeds(caches, this.network.config),
        ...packed.feeds,
        rows: wantedRows(ends),
      });
      appendChunks(caches, outputs, packed.starts, counts);
      const heads = batch.flatMap(({ members }, r) => members.map(member => ({ member, r })));
      for (const { members } of batch)
        for (const member of members) {
          if (member !== members[0]) member.cache.copyFrom(members[0].cache);
          member.cache.pending = null;
          member.prefix = member.cache.length;
        }
      await this.sample(
        heads.map(({ member }) => member),
        spreadRows(outputs.logits, heads.map(({ r }) => r)), // prettier-ignore
        sampling,
      );
    }
  }

  private async decode(
    session: Session,
    all: readonly Decoding[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<void> {
    const waiting = all.filter(d => d.finish === null);
    const batch = new BatchCache(this.network.config);
    const active: Decoding[] = [];
    let sampled = all.length;
    while (active.length > 0 || waiting.length > 0) {
      const entering = waiting.splice(0, (this.options.maxRows ?? decodedRows) - active.length);
      batch.enter(entering.map(d => d.cache));
      active.push(...entering);
      const packed = packChunks(
        active.map(d => [d.ids[d.ids.length - 1]]),
        batch.positions,
        1,
        this.network.config,
      );
      const outputs = await this.run(session, {
        ...batch.feeds(),
        ...packed.feeds,
        rows: wantedRows(packed.starts),
      });
      batch.append(outputs);
      await this.sample(active, active.length === 1 ? spreadRows(outputs.logits, [0]) : outputs.logits, sampling);
      sampled += active.length;
      onTokens?.(sampled);
      for (let r = active.length - 1; r >= 0; r--) {
        if (active[r].finish === null) continue;
        batch.leave(r);
        active[r] = active[active.length - 1];
        active.pop();
      }
    }
  }

  private run(session: Session, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
    return session.run({ ...this.bank.feeds(), ...feeds });
  }

  /** Draws the next token of each row from its row of the logits; rows that are finished by it say so. */
  private async sample(rows: readonly Decoding[], logits: Tensor, sampling: SamplingOptions): Promise<void> {
    const vocab = this.network.config.vocabSize;
    const uniforms = Float32Array.from(rows, d => d.stream.uniform());
    const uncut = isUncut(sampling) && (await this.sampler.draw(logits, uniforms, sampling));
    rows.forEach((d, r) => {
      const { token, logprob } = uncut
        ? { token: uncut.tokens[r], logprob: uncut.logprobs[r] }
        : drawToken(logits.data as Float32Array, r * vocab, vocab, sampling, uniforms[r], this.occurred(d));
      if (!Number.isFinite(logprob))
        throw new UserError(
          `engine: the policy's logits are no numbers (row ${d.request.row}): its weights have diverged; resume from an earlier checkpoint with a lower learning rate`,
        );
      d.ids.push(token);
      d.logprobs.push(logprob);
      if (sampling.stop_token_ids.includes(token) || this.completesStop(d, sampling.stop)) d.finish = 'stop';
      else if (d.ids.length >= sampling.max_new_tokens || d.prefix + d.ids.length >= sampling.max_model_len)
        d.finish = 'length';
    });
  }

  private occurred({ request, ids }: Decoding): number[] {
    return [...(this.history.get(request.row) ?? []), ...ids];
  }

  /** Whether the newest token completes one of the texts: only the tail that could hold one is read. */
  private completesStop({ ids }: Decoding, stop: readonly string[]): boolean {
    if (stop.length === 0) return false;
    const { decode } = this.options;
    if (!decode) throw new Error('generator: stop strings need a tokenizer');
    const tail = ids.slice(-1 - Math.max(...stop.map(text => Buffer.byteLength(text))));
    const text = decode(tail);
    const before = decode(tail.slice(0, -1));
    return stop.some(wanted => text.includes(wanted) && !before.includes(wanted));
  }
}

/** Tokens whose logits are wanted; one alone twice, since a product of one row has a kernel of its own. */
function wantedRows(tokens: readonly number[]): Tensor {
  const rows = tokens.length === 1 ? [tokens[0], tokens[0]] : tokens;
  return int64(BigInt64Array.from(rows, BigInt), [rows.length]);
}

/** Rows of `logits` by index, one for each member of a shared prompt. */
function spreadRows(logits: Tensor, rows: readonly number[]): Tensor {
  if (rows.length === logits.dims[0] && rows.every((r, i) => r === i)) return logits;
  const vocab = logits.dims[1];
  const data = new Float32Array(rows.length * vocab);
  rows.forEach((r, i) => data.set((logits.data as Float32Array).subarray(r * vocab, (r + 1) * vocab), i * vocab));
  return { ...logits, dims: [rows.length, vocab], data };
}
