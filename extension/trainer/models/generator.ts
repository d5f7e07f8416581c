// Batched generation over a key-value cache that rows keep between turns, on the host or on the device (generation-cache.ts). A call
// appends each row's new ids in one chunk (prompts that are equal are computed once), then decodes token by token; a row that has
// stopped makes room for one that waits. Calls overlap: the rows of one that comes while others are decoded join their batch between two
// steps, and each call is answered when its own rows have stopped.
// Invariant: a row's tokens depend on its own ids, seed and the weights alone. On the CPU that holds bit for bit: products compute each
// row by itself, sums over cached tokens run in blocks, and a step never has a single row, for which other kernels are used.
import { appendAll, maximum } from '../../protocol/lists';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../engine/engine';
import { RandomStream } from '../engine/random-stream';
import { RunStopped } from '../engine/run-stopped';
import { Sampler } from '../engine/sampler';
import { NotFiniteError } from '../engine/not-finite';
import { drawToken, isUncut } from '../engine/sampling';
import { dispose } from '../engine/device-tensor';
import { Session, loweringOf } from '../engine/session';
import type { SessionOptions, Tensor } from '../engine/session';
import { Transfer } from '../engine/transfer';
import { DeviceCache } from './device-cache';
import type { CachedRow, GenerationCache } from './generation-cache';
import { HostCache } from './host-cache';
import { laidOutNetwork } from './networks';
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
  /** All weights are trained and few: they become constants of a session of their own whenever they have changed. */
  layOut?: boolean;
  /** Where keys and values are kept; by default on the device where outputs can stay there. */
  cache?: 'host' | 'device';
}

/** A call that is not answered yet. */
interface Call {
  decodings: Decoding[];
  sampling: SamplingOptions;
  onTokens?: (sampled: number) => void;
  answer(): void;
  fail(error: unknown): void;
  /** Resolves when it is over. */
  done: Promise<unknown>;
}

interface Decoding {
  request: GenerationRow;
  cache: CachedRow;
  stream: RandomStream;
  /** Tokens of the row before the first one sampled in this call. */
  prefix: number;
  ids: number[];
  logprobs: number[];
  finish: 'stop' | 'length' | null;
  /** Sampled tokens that whoever watches the row has heard of. */
  told: number;
}

/** Somebody who watches a row: hears of its sampled tokens a few at a time, in order. */
export interface RowWatch {
  row: string;
  onTokens(ids: number[], logprobs: number[]): void;
}

export class Generator {
  private session?: Promise<Session>;
  /** Version of the parameters that the session was made with, where they are constants of it. */
  private version = -1;
  private readonly rows = new Map<string, CachedRow>();
  private readonly where: 'host' | 'device';
  private readonly cache: GenerationCache;
  private readonly transfer: Transfer;
  /** All ids of a row, for the repetition penalty. */
  private readonly history = new Map<string, number[]>();
  private readonly sampler: Sampler;
  private readonly calls = new Set<Call>();
  /** A call has come that was not looked at yet. */
  private arrived = false;
  private serving = false;
  private watched: RowWatch | null = null;
  private stopped = false;

  constructor(
    private readonly network: Network,
    private readonly bank: Pick<ParameterBank, 'feeds' | 'read' | 'version'>,
    private readonly options: GeneratorOptions,
  ) {
    const { config } = network;
    this.where = options.cache ?? (options.provider === 'webgpu' ? 'device' : 'host');
    const run = (feeds: Readonly<Record<string, Tensor>>): Promise<Record<string, Tensor>> => this.run(feeds);
    this.cache = this.where === 'device' ? new DeviceCache(config, options, run) : new HostCache(config, run);
    this.transfer = new Transfer(options);
    // CUDA's logits come to the host, where they may as well be drawn from.
    this.sampler = new Sampler(config.vocabSize, options.provider === 'cuda' ? { threads: options.threads } : options);
  }

  /**
   * Generates for all rows; results are in the order of `requests`. `onTokens` hears how many tokens the calls in hand have sampled so far.
   * A row may be in one call at a time.
   */
  generate(
    requests: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<GeneratedRow[]> {
    const decodings = requests.map((request): Decoding => {
      let cache = this.rows.get(request.row);
      if (!cache) this.rows.set(request.row, (cache = this.cache.row()));
      this.remember(request.row, request.append);
      return {
        request,
        cache,
        stream: new RandomStream(request.seed),
        prefix: 0,
        ids: [],
        logprobs: [],
        finish: null,
        told: 0,
      };
    });
    let end!: Pick<Call, 'answer' | 'fail'>;
    const answer = new Promise<GeneratedRow[]>(
      (resolve, fail) => (end = { answer: () => resolve(this.answered(decodings)), fail }),
    );
    this.calls.add({ decodings, sampling, onTokens, ...end, done: answer.catch(() => undefined) });
    this.arrived = true;
    if (!this.serving) void this.serve();
    return answer;
  }

  /** Has one row watched, or none; of a turn in hand its tokens so far are told first. Nothing is sampled otherwise. */
  watch(watched: RowWatch | null): void {
    this.watched = watched;
    for (const { decodings } of this.calls) for (const decoding of decodings) decoding.told = 0;
    this.tellWatcher();
  }

  /** Ends the calls in hand between two steps of decoding, and those to come at once: they throw RunStopped. What rows hold is lost. */
  stop(): void {
    this.stopped = true;
  }

  private goOn(): void {
    if (this.stopped) throw new RunStopped();
  }

  private answered(decodings: readonly Decoding[]): GeneratedRow[] {
    return decodings.map(({ request, cache, ids, logprobs, finish }) => {
      cache.pending = ids.at(-1) ?? null;
      this.remember(request.row, ids);
      return { row: request.row, ids, logprobs, finish: finish ?? 'length' };
    });
  }

  /** Forgets rows: their episodes are over, or the weights have changed. Waits for calls that have them in hand. */
  async release(rows: readonly string[]): Promise<void> {
    const released = new Set(rows);
    const busy = [...this.calls].filter(call => call.decodings.some(({ request }) => released.has(request.row)));
    if (busy.length > 0) await Promise.all(busy.map(({ done }) => done));
    for (const row of rows) {
      const cached = this.rows.get(row);
      if (cached) this.cache.forget(cached);
      this.rows.delete(row);
      this.history.delete(row);
    }
  }

  /** Makes the session, which for large models takes seconds. */
  async open(): Promise<Session> {
    if (!this.options.layOut) return (this.session ??= this.makeSession(this.network));
    if (this.version === this.bank.version) return this.session!;
    this.version = this.bank.version;
    await (await this.session)?.release();
    return (this.session = this.makeSession(laidOutNetwork(this.network, await this.bank.read())));
  }

  private makeSession(network: Network): Promise<Session> {
    return Session.create(generateGraph(network, loweringOf(this.options), this.where), {
      ...this.options,
      folder: network.folder,
      prepack: this.options.prepack ?? this.options.layOut,
      resident: () => this.where === 'device',
    });
  }

  private remember(row: string, ids: readonly number[]): void {
    const known = this.history.get(row);
    if (known) appendAll(known, ids);
    else this.history.set(row, [...ids]);
  }

  /** Answers calls until none is left; an error is that of all of them. */
  private async serve(): Promise<void> {
    this.serving = true;
    try {
      while (this.calls.size > 0) await this.decode();
    } catch (error) {
      const calls = [...this.calls];
      this.calls.clear();
      for (const call of calls) call.fail(error);
    }
    this.serving = false;
  }

  /** Decodes the calls that sample alike, those that come meanwhile included, until none of them is left. */
  private async decode(): Promise<void> {
    const [{ sampling }] = this.calls;
    const alike = JSON.stringify(sampling);
    const seen = new Set<Call>();
    const waiting: Decoding[] = [];
    const active: Decoding[] = [];
    const batch = this.cache.batch();
    for (this.arrived = true; this.arrived || active.length > 0 || waiting.length > 0;) {
      this.goOn();
      if (this.arrived) {
        this.arrived = false;
        const fresh = [...this.calls].filter(call => !seen.has(call) && JSON.stringify(call.sampling) === alike);
        for (const call of fresh) seen.add(call);
        await batch.settle();
        const rows = fresh.flatMap(({ decodings }) => decodings);
        await this.prefill(rows, sampling);
        appendAll(
          waiting,
          rows.filter(({ finish }) => finish === null),
        );
      }
      if (active.length > 0 || waiting.length > 0) {
        const entering = waiting.splice(0, (this.options.maxRows ?? decodedRows) - active.length);
        await batch.enter(entering.map(d => d.cache));
        appendAll(active, entering);
        const logits = await batch.step(active.map(d => d.ids[d.ids.length - 1]));
        await this.sample(active, logits, sampling);
        this.tell();
        for (let r = active.length - 1; r >= 0; r--) {
          if (active[r].finish === null) continue;
          batch.leave(r);
          active[r] = active[active.length - 1];
          active.pop();
        }
      }
      // Whoever is answered may release the rows, which then leaves nothing behind.
      if (active.length === 0 && waiting.length === 0) await batch.close();
      for (const call of seen) {
        if (call.decodings.some(({ finish }) => finish === null)) continue;
        seen.delete(call);
        this.calls.delete(call);
        call.answer();
      }
    }
  }

  /** Tells how many tokens the calls in hand have sampled. */
  private tell(): void {
    let sampled = 0;
    for (const { decodings } of this.calls) for (const { ids } of decodings) sampled += ids.length;
    for (const onTokens of new Set([...this.calls].map(call => call.onTokens))) onTokens?.(sampled);
    this.tellWatcher();
  }

  private tellWatcher(): void {
    if (!this.watched) return;
    const { row, onTokens } = this.watched;
    for (const { decodings } of this.calls) {
      const decoding = decodings.find(({ request }) => request.row === row);
      if (!decoding || decoding.told === decoding.ids.length) continue;
      const { ids, logprobs, told } = decoding;
      decoding.told = ids.length;
      onTokens(ids.slice(told), logprobs.slice(told));
    }
  }

  /** Appends each row's new ids and samples its first token. */
  private async prefill(all: readonly Decoding[], sampling: SamplingOptions): Promise<void> {
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
      this.goOn();
      const batch = sorted.splice(0, Math.max(1, Math.floor(prefillTokens / sorted[0].ids.length)));
      const logits = await this.cache.prefill(
        batch.map(({ ids, members }) => ({ ids, rows: members.map(({ cache }) => cache) })),
      );
      const members = batch.flatMap(chunk => chunk.members);
      for (const member of members) {
        member.cache.pending = null;
        member.prefix = member.cache.length;
      }
      await this.sample(members, logits, sampling);
    }
  }

  private async run(feeds: Readonly<Record<string, Tensor>>): Promise<Record<string, Tensor>> {
    return (await this.open()).run(this.options.layOut ? feeds : { ...this.bank.feeds(), ...feeds });
  }

  /** Draws the next token of each row from its row of the logits, which are disposed of; rows that are finished by it say so. */
  private async sample(rows: readonly Decoding[], logits: Tensor, sampling: SamplingOptions): Promise<void> {
    const vocab = this.network.config.vocabSize;
    const uniforms = Float32Array.from(rows, d => d.stream.uniform());
    const drawn = isUncut(sampling) ? await this.sampler.draw(logits, uniforms, sampling) : null;
    const numbers = drawn ? null : ((await this.transfer.download(logits)).data as Float32Array);
    dispose([logits]);
    rows.forEach((d, r) => {
      const { token, logprob } = drawn
        ? { token: drawn.tokens[r], logprob: drawn.logprobs[r] }
        : drawToken(numbers!, r * vocab, vocab, sampling, uniforms[r], this.occurred(d));
      if (!Number.isFinite(logprob))
        throw new NotFiniteError(
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
    const tail = ids.slice(-1 - maximum(stop.map(text => Buffer.byteLength(text))));
    const text = decode(tail);
    const before = decode(tail.slice(0, -1));
    return stop.some(wanted => text.includes(wanted) && !before.includes(wanted));
  }
}
