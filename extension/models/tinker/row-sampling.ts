// Samples the responses of rows from published versions of the actor, and reports the sampled tokens and the finished
// rows. The number of rows that are sampled at the same time is limited by the number of connections. If the server
// does not return log-probs with a sample, a forward pass computes them.
import pMap from 'p-map';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import { RequestSlots, samplingSlots } from './request-slots';
import { seedMask, type MaskedSample } from './server-model';
import type { SampleRequests, SamplingParams } from './server-session';
import type { StoppableCalls } from './stoppable-calls';
import { hasLogprobs, TinkerRows } from './tinker-rows';
import type { SampledSequence } from './tinker-wire';

export interface RowSamplingOptions {
  /** Maximum number of concurrent HTTP requests to the server. */
  connections: number;
  /** Decodes ids, for stop strings. */
  decode(ids: readonly number[]): string;
  /** Called with the number of tokens that all running calls of `generate` have sampled so far. */
  onTokens(sampled: number): void;
  /** Called with rows whose responses have become complete. */
  onRows(rows: readonly string[]): void;
}

/** The weights from which a call of `generate` samples. */
export interface SampledWeights {
  /** Resolves with the sampling session. */
  session: Promise<string>;
  /** Computes the log-probs of a sample under the same weights; null if the server always returns log-probs. */
  logprobs: ((sample: MaskedSample) => Promise<Float32Array>) | null;
}

export class RowSampling {
  /**
   * Limits the number of rows that are sampled at the same time. Each such row occupies one HTTP connection until its
   * response has arrived.
   */
  private readonly slots: RequestSlots;
  private readonly rows: TinkerRows;
  private watched: { row: string; onTokens: (ids: number[], logprobs: number[]) => void } | null = null;
  /** Number of running calls of `generate`, and number of tokens that these calls have sampled. */
  private sampled = { tokens: 0, calls: 0 };

  constructor(
    private readonly requests: SampleRequests,
    private readonly calls: StoppableCalls,
    private readonly options: RowSamplingOptions,
  ) {
    this.slots = new RequestSlots(samplingSlots(options.connections));
    this.rows = new TinkerRows(options.decode);
  }

  /** Appends ids to rows and samples a response for each row. Calls `weights` after it has appended the ids. */
  async generate(
    rows: readonly GenerationRow[],
    sampling: SamplingOptions,
    weights: () => SampledWeights,
  ): Promise<GeneratedRow[]> {
    const prompts = rows.map(row => this.rows.append(row));
    const { session, logprobs } = weights();
    const version = await this.calls.result(session);
    this.sampled.calls++;
    try {
      const one = async ({ row, seed }: GenerationRow, i: number): Promise<GeneratedRow> => {
        const params = samplingParams(sampling, prompts[i].length, seed);
        const sequence = await this.slots.run(() => {
          this.calls.units.check();
          return this.requests.sample(version, prompts[i], params);
        });
        const complete = logprobs ? await withLogprobs(prompts[i], sequence, logprobs) : sequence;
        const generated = this.rows.accept(row, complete, sampling);
        this.sampled.tokens += generated.ids.length;
        this.options.onTokens(this.sampled.tokens);
        this.options.onRows([row]);
        if (this.watched?.row === row) this.watched.onTokens(generated.ids, generated.logprobs);
        return generated;
      };
      return await this.calls.result(pMap(rows, one, { concurrency: this.slots.count }));
    } finally {
      if (--this.sampled.calls === 0) this.sampled.tokens = 0;
    }
  }

  release(rows: readonly string[]): void {
    this.rows.release(rows);
  }

  /** Selects the row whose tokens are reported to `onTokens`; null for no row. */
  watch(row: string | null, onTokens: (ids: number[], logprobs: number[]) => void): void {
    this.watched = row === null ? null : { row, onTokens };
  }
}

/**
 * Returns the sequence with log-probs. If the server has returned the sample without log-probs, `read` computes them.
 */
async function withLogprobs(
  prompt: readonly number[],
  sequence: SampledSequence,
  read: (sample: MaskedSample) => Promise<Float32Array>,
): Promise<SampledSequence> {
  if (hasLogprobs(sequence)) return sequence;
  const ids = Int32Array.from([...prompt, ...sequence.tokens]);
  const mask = Uint8Array.from(ids, (_, i) => Number(i >= prompt.length));
  const logprobs = await read({ ids, mask });
  return { ...sequence, logprobs: Array.from(logprobs.subarray(prompt.length)) };
}

/**
 * Returns the sampling options in the format of the API. Options that the API lacks, such as min_p, are rejected when
 * the configuration is checked.
 */
function samplingParams(sampling: SamplingOptions, length: number, seed: number): SamplingParams {
  const { temperature, top_p, top_k, do_sample, max_new_tokens, max_model_len, stop_token_ids } = sampling;
  return {
    max_tokens: Math.max(1, Math.min(max_new_tokens, max_model_len - length)),
    seed: seed & seedMask,
    temperature: do_sample ? temperature : 0,
    top_p,
    top_k: top_k > 0 ? top_k : -1,
    stop: stop_token_ids,
  };
}
