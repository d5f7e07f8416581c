// Batched generation over a key-value cache (generation-cache.ts). The cache is on the host or on a device, and keeps
// each row's keys and values between turns. A call appends each row's new ids in one chunk, then decodes token by
// token. Equal prompts are computed once. When a row finishes, a waiting row takes its slot. Calls overlap: rows of a
// new call join the running batch between two steps, and each call resolves when its rows are finished. Invariant: a
// row's tokens depend only on its ids, its seed and the weights. On the CPU, the logits of a row do not depend on the
// other rows in the batch either: they are bit-identical, because matmuls compute each row independently
// (even-products.ts) and sums over cached tokens run in blocks. A step has at least two rows, because onnxruntime computes matmuls of a single row with
// another kernel, which rounds differently.
import { availableParallelism } from 'node:os';
import { cacheLocation, type GeneratorOptions } from './generator-options';
import { appendAll } from '../../common/lists';
import { UserError } from '../../common/user-error';
import type { GeneratedRow, GenerationRow, PicturedTokens, SamplingOptions } from '../../engine/generation-calls';
import { RandomStream } from '../../engine/sampling/random-stream';
import { RunStopped } from '../../engine/run-stopped';
import { Session, loweringOf } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import { DeviceCache } from './device-cache';
import type { CachedRow, GenerationCache } from './generation-cache';
import { HostCache } from './host-cache';
import { afterToken } from './pictured-chunks';
import { evenNetwork, laidOutNetwork } from '../decoder/networks';
import type { ParameterBank } from '../weights/parameter-bank';
import { appendGraph, generateGraph } from '../graphs/policy-graphs';
import type { Network } from '../graphs/policy-graphs';
import { RowSampler } from './row-sampler';
import type { Call, Decoding, RowWatch } from './decoding';

/** Maximum tokens per prefill call; limits the memory of attention scores. */
export const prefillTokens = 4096;
/** Maximum rows decoded together. */
export const decodedRows = 128;

export class Generator {
  private session?: Promise<Session>;
  /** With `layOut`, the session that appends chunks. It is created only once, because it reads weights from the bank. */
  private appending?: Promise<Session>;
  /** The session that appends chunks that show pictures. */
  private picturing?: Promise<Session>;
  /**
   * Version of the parameters that were copied into the session as constants; −1 if the parameters are not constants.
   */
  private version = -1;
  private readonly rows = new Map<string, CachedRow>();
  private readonly where: 'host' | 'device';
  private readonly cache: GenerationCache;
  private readonly sampler: RowSampler;
  private readonly calls = new Set<Call>();
  /** Whether a new call is waiting to join the running batch. */
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
    this.where = cacheLocation(options);
    const run = (feeds: Readonly<Record<string, Tensor>>): Promise<Record<string, Tensor>> => this.run(feeds);
    if (this.where === 'device') this.cache = new DeviceCache(config, options, run);
    else
      this.cache = new HostCache(
        config,
        run,
        feeds => this.append(feeds, true),
        options.layOut ? feeds => this.append(feeds, false) : undefined,
      );
    this.sampler = new RowSampler(config.vocabSize, options);
  }

  /**
   * Generates for all rows; results are in the order of `requests`. `onTokens` receives the number of tokens that all
   * running calls have sampled so far. `onRows` receives the rows of running calls for which the last token has been
   * sampled. A row may be in only one call at a time.
   */
  generate(
    requests: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
    onRows?: (rows: readonly string[]) => void,
  ): Promise<GeneratedRow[]> {
    const decodings = requests.map((request): Decoding => {
      let cache = this.rows.get(request.row);
      if (!cache) this.rows.set(request.row, (cache = this.cache.row()));
      this.sampler.remember(request.row, request.append);
      return {
        request,
        cache,
        stream: new RandomStream(request.seed),
        prefix: 0,
        ids: [],
        logprobs: [],
        finish: null,
        reported: 0,
      };
    });
    let end!: Pick<Call, 'answer' | 'fail'>;
    const answer = new Promise<GeneratedRow[]>(
      (resolve, fail) => (end = { answer: () => resolve(this.answered(decodings)), fail }),
    );
    this.calls.add({ decodings, sampling, onTokens, onRows, ...end, done: answer.catch(() => undefined) });
    this.arrived = true;
    if (!this.serving) void this.serve();
    return answer;
  }

  /** Position of the next id that is appended to a row that is in no call; 0 for a new row. */
  nextPosition(row: string): number {
    const cached = this.rows.get(row);
    return cached ? cached.nextPosition + Number(cached.pending !== null) : 0;
  }

  /**
   * Sets the watched row; null for none. The watcher first receives the tokens that were sampled earlier in the current
   * turn. Watching does not affect sampling.
   */
  watch(watched: RowWatch | null): void {
    this.watched = watched;
    for (const { decodings } of this.calls) for (const decoding of decodings) decoding.reported = 0;
    this.reportToWatcher();
  }

  /**
   * Stops running calls between two decoding steps. Running and later calls reject with RunStopped. The cached data of
   * rows is lost.
   */
  stop(): void {
    this.stopped = true;
  }

  private decodeOn(): void {
    if (this.stopped) throw new RunStopped();
  }

  private answered(decodings: readonly Decoding[]): GeneratedRow[] {
    return decodings.map(({ request, cache, ids, logprobs, finish }) => {
      cache.pending = ids.at(-1) ?? null;
      this.sampler.remember(request.row, ids);
      return { row: request.row, ids, logprobs, finish: finish ?? 'length' };
    });
  }

  /**
   * Frees the cached data of rows. Called when the episodes of the rows have ended or the weights have changed. Waits
   * for running calls that use the rows.
   */
  async release(rows: readonly string[]): Promise<void> {
    const released = new Set(rows);
    const busy = [...this.calls].filter(call => call.decodings.some(({ request }) => released.has(request.row)));
    if (busy.length > 0) await Promise.all(busy.map(({ done }) => done));
    for (const row of rows) {
      const cached = this.rows.get(row);
      if (cached) this.cache.forget(cached);
      this.rows.delete(row);
      this.sampler.forget(row);
    }
  }

  /** Creates the session, which takes seconds for large models. */
  async open(): Promise<Session> {
    if (!this.options.layOut) return (this.session ??= this.makeSession(this.network));
    if (this.version === this.bank.version) return this.session!;
    this.version = this.bank.version;
    await (await this.session)?.release();
    return (this.session = this.makeSession(laidOutNetwork(this.network, await this.bank.read())));
  }

  private makeSession(network: Network): Promise<Session> {
    const prepack = this.options.prepack ?? this.options.layOut;
    return Session.create(generateGraph(this.even(network, prepack), loweringOf(this.options), this.where), {
      ...this.options,
      folder: network.folder,
      prepack,
      resident: () => this.where === 'device',
    });
  }

  /** Processes calls until none is pending; an error rejects all of them. */
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

  /**
   * Decodes all pending calls that have the same sampling options as the first pending call. Such calls also join if
   * they arrive during the decoding.
   */
  private async decode(): Promise<void> {
    const [{ sampling }] = this.calls;
    const alike = JSON.stringify(sampling);
    const seen = new Set<Call>();
    const waiting: Decoding[] = [];
    const active: Decoding[] = [];
    const batch = this.cache.batch();
    for (this.arrived = true; this.arrived || active.length > 0 || waiting.length > 0;) {
      this.decodeOn();
      if (this.arrived) {
        this.arrived = false;
        const fresh = [...this.calls].filter(call => !seen.has(call) && JSON.stringify(call.sampling) === alike);
        for (const call of fresh) seen.add(call);
        await batch.settle();
        const rows = fresh.flatMap(({ decodings }) => decodings);
        await this.prefill(rows, sampling);
        this.reportFinished(rows);
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
        await this.sampler.sample(active, logits, sampling);
        this.report();
        this.reportFinished(active);
        for (let r = active.length - 1; r >= 0; r--) {
          if (active[r].finish === null) continue;
          batch.releaseRow(r);
          active[r] = active[active.length - 1];
          active.pop();
        }
      }
      // The batch is closed before calls are resolved, because callers may release the rows as soon as their call
      // resolves.
      if (active.length === 0 && waiting.length === 0) await batch.close();
      for (const call of seen) {
        if (call.decodings.some(({ finish }) => finish === null)) continue;
        seen.delete(call);
        this.calls.delete(call);
        call.answer();
      }
    }
  }

  /** Reports the number of tokens that the running calls have sampled. */
  private report(): void {
    let sampled = 0;
    for (const { decodings } of this.calls) for (const { ids } of decodings) sampled += ids.length;
    for (const onTokens of new Set([...this.calls].map(call => call.onTokens))) onTokens?.(sampled);
    this.reportToWatcher();
  }

  /** Reports the rows whose last token has been sampled. */
  private reportFinished(decodings: readonly Decoding[]): void {
    const rows = decodings.filter(({ finish }) => finish !== null).map(({ request }) => request.row);
    if (rows.length > 0) for (const onRows of new Set([...this.calls].map(call => call.onRows))) onRows?.(rows);
  }

  private reportToWatcher(): void {
    if (!this.watched) return;
    const { row, onTokens } = this.watched;
    for (const { decodings } of this.calls) {
      const decoding = decodings.find(({ request }) => request.row === row);
      if (!decoding || decoding.reported === decoding.ids.length) continue;
      const { ids, logprobs, reported } = decoding;
      decoding.reported = ids.length;
      onTokens(ids.slice(reported), logprobs.slice(reported));
    }
  }

  /** Appends each row's new ids and samples its first token. */
  private async prefill(all: readonly Decoding[], sampling: SamplingOptions): Promise<void> {
    const chunks = new Map<string, { ids: number[]; pictures?: PicturedTokens; members: Decoding[] }>();
    /** Numbers of the arrays of image features: prompts are equal only if they show the same array. */
    const shown = new Map<Float32Array | undefined, number>();
    for (const decoding of all) {
      const { cache, request } = decoding;
      const ids = cache.pending === null ? request.append : [cache.pending, ...request.append];
      if (ids.length === 0) throw new Error(`generator: row ${request.row} has nothing to append`);
      const given = request.pictures;
      const pictures = given && cache.pending !== null ? afterToken(given, cache.nextPosition) : given;
      if (pictures && this.where === 'device')
        throw new UserError(
          'generation: pictures need the key-value cache on the host, but it is on the device: set workbench.device to cpu',
        );
      if (!shown.has(given?.values)) shown.set(given?.values, shown.size);
      const what = [shown.get(given?.values), ...(given?.features ?? [])].join();
      const key = cache.length === 0 ? `prompt:${ids.join()}:${what}` : `row:${request.row}`;
      const chunk = chunks.get(key);
      if (chunk) chunk.members.push(decoding);
      else chunks.set(key, { ids, pictures, members: [decoding] });
    }
    const sorted = [...chunks.values()].sort((a, b) => b.ids.length - a.ids.length);
    while (sorted.length > 0) {
      this.decodeOn();
      const batch = sorted.splice(0, Math.max(1, Math.floor(prefillTokens / sorted[0].ids.length)));
      const logits = await this.cache.prefill(
        batch.map(({ ids, pictures, members }) => ({ ids, pictures, rows: members.map(({ cache }) => cache) })),
      );
      const members = batch.flatMap(chunk => chunk.members);
      for (const member of members) {
        member.cache.pending = null;
        member.prefix = member.cache.length;
      }
      await this.sampler.sample(members, logits, sampling);
    }
  }

  private async append(feeds: Readonly<Record<string, Tensor>>, pictured: boolean): Promise<Record<string, Tensor>> {
    const { network, options } = this;
    const create = (): Promise<Session> =>
      Session.create(appendGraph(this.even(network, options.prepack), loweringOf(options), pictured), {
        ...options,
        folder: network.folder,
      });
    const session = await (pictured ? (this.picturing ??= create()) : (this.appending ??= create()));
    return session.run({ ...this.bank.feeds(), ...feeds });
  }

  /** Returns the network as the provider samples from it. On a GPU, sums depend on the batch anyway. */
  private even(network: Network, packed = false): Network {
    const { threads } = this.options;
    if (loweringOf(this.options) !== 'cpu') return network;
    return evenNetwork(network, { threads: threads || availableParallelism(), packed });
  }

  private async run(feeds: Readonly<Record<string, Tensor>>): Promise<Record<string, Tensor>> {
    return (await this.open()).run(this.options.layOut ? feeds : { ...this.bank.feeds(), ...feeds });
  }
}
