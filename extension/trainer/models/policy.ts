// A policy: decoder weights with the sessions that score given tokens, take optimizer steps on the policy loss, and imitate
// demonstrations. Samples arrive in micro-batches; the gradient of a mini-batch is summed over them in flat memory, then AdamW steps
// once, so that the micro-batch size never changes the result beyond rounding.
import { AdamW } from '../engine/adamw';
import type {
  OptimizerOptions,
  PolicyLossOptions,
  TrainingSample,
  UpdateMetrics,
  WeightedSample,
} from '../engine/engine';
import { Session, float32 } from '../engine/session';
import type { SessionOptions } from '../engine/session';
import { accumulate, batchFeeds, scalarFeeds } from './batch-feeds';
import type { DecoderConfig } from './decoder-config';
import { imitateGraph, scoreGraph, updateGraph, updateSums } from './policy-graphs';
import type { Weights } from './weights';

export interface Scores {
  /** Per sample, the length of its ids; 0 where mask = 0. */
  logprobs: Float32Array[];
  entropies: Float32Array[];
}

export class Policy {
  private scoring?: Promise<Session>;
  private updating = new Map<string, Promise<Session>>();
  private imitating?: Promise<Session>;
  private optimizer?: Promise<AdamW>;
  private gradient?: Weights;

  constructor(
    readonly config: DecoderConfig,
    readonly weights: Weights,
    private readonly options: SessionOptions,
  ) {}

  /** Log-probs and entropies of the masked tokens under the present weights. */
  async score(samples: readonly Pick<TrainingSample, 'ids' | 'mask'>[], temperature: number): Promise<Scores> {
    const session = await (this.scoring ??= Session.create(scoreGraph(this.config), this.options));
    const { feeds, scatter } = batchFeeds(samples);
    const { logprob, entropy } = await session.run({
      ...this.weights.feeds(),
      ...feeds,
      ...scalarFeeds({ inverse_temperature: 1 / temperature }),
    });
    return { logprobs: scatter(logprob.data as Float32Array), entropies: scatter(entropy.data as Float32Array) };
  }

  /** One optimizer step on the policy loss of a mini-batch given as micro-batches. */
  async update(
    microBatches: readonly (readonly WeightedSample[])[],
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    const session = await this.updateSession(loss.kl_loss_type);
    const scalars = scalarFeeds({
      inverse_temperature: 1 / loss.temperature,
      clip_low: loss.clip_ratio_low,
      clip_high: loss.clip_ratio_high,
      clip_c: loss.clip_ratio_c,
      entropy_coeff: loss.entropy_coeff,
      kl_coef: loss.use_kl_loss ? loss.kl_loss_coef : 0,
    });
    const sums = Object.fromEntries(updateSums.map(name => [name, 0]));
    let tokens = 0;
    const gradient = this.clearGradient();
    for (const samples of microBatches) {
      const { feeds, gather, count } = batchFeeds(samples);
      const result = await session.run({
        ...this.weights.feeds(),
        ...feeds,
        ...scalars,
        old_logprob: gather(s => s.old_logprobs),
        ref_logprob: gather(s => s.ref_logprobs),
        advantage: gather(s => s.advantages),
        weight: gather(s => s.weights),
      });
      for (const name of updateSums) sums[name] += (result[name].data as Float32Array)[0];
      tokens += count;
      accumulate(gradient, result);
    }
    const { norm, applied } = await this.step(gradient, optimizer);
    const perToken = (name: string): number => sums[name] / Math.max(tokens, 1);
    return {
      pg_loss: sums.pg_loss,
      entropy_loss: sums.entropy_loss,
      ...(loss.use_kl_loss && { kl_loss: sums.kl_loss, kl_coef: loss.kl_loss_coef }),
      entropy: perToken('entropy'),
      pg_clipfrac: perToken('clipped'),
      pg_clipfrac_lower: perToken('clipped_lower'),
      ppo_kl: perToken('minus_log_ratio'),
      grad_norm: norm,
      lr: optimizer.lr,
      skipped: applied ? 0 : 1,
    };
  }

  /** One optimizer step on the mean cross-entropy of the masked tokens; returns it. */
  async imitate(
    samples: readonly Pick<TrainingSample, 'ids' | 'mask'>[],
    optimizer: OptimizerOptions,
  ): Promise<number> {
    const session = await (this.imitating ??= Session.create(imitateGraph(this.config), this.options));
    const { feeds, count } = batchFeeds(samples);
    const weight = float32(new Float32Array(count).fill(1 / count), [count]);
    const result = await session.run({
      ...this.weights.feeds(),
      ...feeds,
      ...scalarFeeds({ inverse_temperature: 1 }),
      weight,
    });
    const gradient = this.clearGradient();
    accumulate(gradient, result);
    await this.step(gradient, optimizer);
    return (result.loss.data as Float32Array)[0];
  }

  /** The optimizer, made on first use; its state belongs into a checkpoint. */
  adamw(): Promise<AdamW> {
    return (this.optimizer ??= AdamW.create(this.weights.flat.length, this.options));
  }

  /** The gradient of the last step, by parameter, before clipping. */
  lastGradient(name: string): Float32Array {
    if (!this.gradient) throw new Error('policy: no step was taken yet');
    return this.gradient.view(name);
  }

  private async step(gradient: Weights, options: OptimizerOptions): Promise<{ norm: number; applied: boolean }> {
    return (await this.adamw()).step(this.weights.flat, gradient.flat, options);
  }

  private updateSession(klType: PolicyLossOptions['kl_loss_type']): Promise<Session> {
    let session = this.updating.get(klType);
    if (!session) this.updating.set(klType, (session = Session.create(updateGraph(this.config, klType), this.options)));
    return session;
  }

  private clearGradient(): Weights {
    this.gradient ??= this.weights.like();
    this.gradient.flat.fill(0);
    return this.gradient;
  }
}
