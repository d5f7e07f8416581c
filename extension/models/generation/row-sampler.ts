// Samples the next token of each row from its logits and marks finished rows. A row's token depends only on its logits,
// its random stream, its earlier ids and the sampling options, not on the other rows of the batch.
import { appendAll } from '../../common/lists';
import type { SamplingOptions } from '../../engine/generation-calls';
import { Sampler } from '../../engine/sampling/graph-sampler';
import { NotFiniteError } from '../../engine/optimizer/not-finite';
import { drawToken, isUncut } from '../../engine/sampling/host-sampler';
import { dispose } from '../../engine/session/device-tensor';
import type { SessionOptions, Tensor } from '../../engine/session/session';
import { Transfer } from '../../engine/session/transfer';
import { completesStop } from './stop-strings';
import type { GeneratorOptions } from './generator-options';
import type { Decoding } from './decoding';

export class RowSampler {
  private readonly transfer: Transfer;
  /** All ids of a row, for the repetition penalty. */
  private readonly history = new Map<string, number[]>();
  private readonly sampler: Sampler;

  constructor(
    private readonly vocabSize: number,
    private readonly options: SessionOptions & Pick<GeneratorOptions, 'decode'>,
  ) {
    this.transfer = new Transfer(options);
    // With CUDA, the logits are returned to the host, so tokens are sampled on the host.
    this.sampler = new Sampler(vocabSize, options.provider === 'cuda' ? { threads: options.threads } : options);
  }

  /** Adds ids to a row's history, for the repetition penalty. */
  remember(row: string, ids: readonly number[]): void {
    const known = this.history.get(row);
    if (known) appendAll(known, ids);
    else this.history.set(row, [...ids]);
  }

  forget(row: string): void {
    this.history.delete(row);
  }

  /** Samples each row's next token from its row of the logits, disposes of the logits, and marks finished rows. */
  async sample(rows: readonly Decoding[], logits: Tensor, sampling: SamplingOptions): Promise<void> {
    const vocab = this.vocabSize;
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
          `engine: the policy's logits are not finite (row ${d.request.row}), because the policy's weights have diverged: resume from an earlier checkpoint with a lower learning rate`,
        );
      d.ids.push(token);
      d.logprobs.push(logprob);
      if (sampling.stop_token_ids.includes(token) || completesStop(d.ids, sampling.stop, this.decode))
        d.finish = 'stop';
      else if (d.ids.length >= sampling.max_new_tokens || d.prefix + d.ids.length >= sampling.max_model_len)
        d.finish = 'length';
    });
  }

  private readonly decode = (ids: readonly number[]): string => {
    const { decode } = this.options;
    if (!decode) throw new Error('generator: stop strings need a tokenizer');
    return decode(ids);
  };

  private occurred({ request, ids }: Decoding): number[] {
    return [...(this.history.get(request.row) ?? []), ...ids];
  }
}
