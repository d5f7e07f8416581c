// A policy: a decoder with sessions that score tokens, run optimizer steps on the policy loss, and train on
// demonstrations. Samples are packed into passes (packing.ts). The gradient of a mini-batch is summed over its passes
// before one AdamW step, so apart from rounding the packing does not affect the result.
import type {
  InspectedSample,
  LossPart,
  OptimizerOptions,
  PassBudget,
  PolicyLossOptions,
  TrainingSample,
  UpdateMetrics,
  WeightedSample,
} from '../engine/engine';
import { dispose } from '../engine/device-tensor';
import { RandomStream } from '../engine/random-stream';
import { float32 } from '../engine/session';
import type { SessionOptions, Tensor } from '../engine/session';
import { unwatched } from '../engine/work-units';
import type { WorkUnits } from '../engine/work-units';
import { batchFeeds, chunkFeeds, headChunks, logitsAtATime, maskedTokens, scalarFeeds } from './batch-feeds';
import type { BatchFeeds } from './batch-feeds';
import { withoutDropout } from './networks';
import { PackedSessions, passSize } from './packed-sessions';
import type { PassSize } from './packed-sessions';
import { planPasses } from './packing';
import type { Sample } from './packing';
import type { ParameterBank } from './parameter-bank';
import { headGradientBytes, crossEntropyGraph, inspectGraph, scoreGraph, updateGraph } from './policy-graphs';
import type { Network } from './policy-graphs';
import { updateSums } from './policy-loss-graph';
import type { LossTerms } from './policy-loss-graph';
import { maximum, minimum } from '../../protocol/lists';
import { lossModeOf } from '../algorithms/policy-loss-options';

export interface Scores {
  /** Per sample, with the length of its ids; 0 where mask = 0. */
  logprobs: Float32Array[];
  entropies: Float32Array[];
}

export interface PolicyOptions extends SessionOptions {
  /** Recompute the layers' intermediate values in the backward pass: less memory, about a third more time. */
  checkpointed?: boolean;
}

/**
 * Sums over trained tokens: the outputs of the update graph (losses weighted as in the loss), and the number of tokens.
 */
export type LossSums = Record<(typeof updateSums)[number] | 'tokens', number>;

export const noSums: Readonly<LossSums> = {
  ...(Object.fromEntries(updateSums.map(name => [name, 0])) as Record<(typeof updateSums)[number], number>),
  tokens: 0,
};

/** Returns the loss metrics under RAGEN's keys. */
export function lossMetrics(sums: Readonly<LossSums>, loss: PolicyLossOptions): UpdateMetrics {
  const perToken = (name: (typeof updateSums)[number]): number => sums[name] / Math.max(sums.tokens, 1);
  return {
    pg_loss: sums.pg_loss,
    entropy_loss: sums.entropy_loss,
    ...(loss.use_kl_loss && { kl_loss: sums.kl_loss, kl_coef: loss.kl_loss_coef }),
    entropy: perToken('entropy'),
    pg_clipfrac: perToken('clipped'),
    pg_clipfrac_lower: perToken('clipped_lower'),
    ppo_kl: perToken('minus_log_ratio'),
  };
}

interface PreparedPass<S extends Sample> extends BatchFeeds<S> {
  shared: boolean;
}

export class Policy {
  private readonly training: PackedSessions;
  private readonly scoring: PackedSessions;
  private readonly headGradient: number;

  constructor(
    readonly network: Network,
    readonly bank: ParameterBank,
    { checkpointed = false, ...options }: PolicyOptions,
  ) {
    this.headGradient = headGradientBytes(network);
    this.training = new PackedSessions(network, options, checkpointed);
    this.scoring = new PackedSessions(withoutDropout(network), options, false);
  }

  /** Returns log-probs and entropies of the masked tokens under the current weights. */
  async score(
    samples: readonly Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    temperature: number,
    units = unwatched,
  ): Promise<Scores> {
    const scores: Scores = { logprobs: [], entropies: [] };
    const { passes, chunks } = this.prepare(samples, budget, 0, units);
    for (const { shared, feeds, count, scatter } of passes) {
      const session = await this.scoring.get('score', { shared, chunks }, scoreGraph, this.size(feeds));
      const { logprob, entropy } = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...chunkFeeds(count, chunks),
        ...scalarFeeds({ inverse_temperature: 1 / temperature }),
      });
      scatter(logprob.data as Float32Array, scores.logprobs);
      scatter(entropy.data as Float32Array, scores.entropies);
    }
    // Samples without a trained token are in no pass.
    samples.forEach(({ ids }, i) => {
      scores.logprobs[i] ??= new Float32Array(ids.length);
      scores.entropies[i] ??= new Float32Array(ids.length);
    });
    return scores;
  }

  /**
   * Returns the distributions at the masked tokens under the current weights, with the `top` most likely tokens of
   * each.
   */
  async inspect(
    samples: readonly Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    temperature: number,
    top: number,
    units = unwatched,
  ): Promise<InspectedSample[]> {
    const count = Math.min(top, this.network.config.vocabSize);
    const zeros = (): Float32Array[] => samples.map(({ ids }) => new Float32Array(ids.length));
    const columns = (): Float32Array[][] => Array.from({ length: count }, zeros);
    const [logprobs, entropies, ranks, topIds, topLogprobs] = [zeros(), zeros(), zeros(), columns(), columns()];
    const { passes, chunks } = this.prepare(samples, budget, 0, units);
    for (const { shared, feeds, count: tokens, scatter } of passes) {
      const session = await this.scoring.get(
        `inspect ${count}`,
        { shared, chunks },
        (...of) => inspectGraph(...of, count),
        this.size(feeds),
      );
      const found = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...chunkFeeds(tokens, chunks),
        ...scalarFeeds({ inverse_temperature: 1 / temperature }),
      });
      const column = (data: Tensor['data'], k: number): Float32Array =>
        Float32Array.from({ length: tokens }, (_, n) => Number(data[n * count + k]));
      scatter(found.logprob.data as Float32Array, logprobs);
      scatter(found.entropy.data as Float32Array, entropies);
      scatter(found.rank.data as Float32Array, ranks);
      for (let k = 0; k < count; k++) {
        scatter(column(found.top_ids.data, k), topIds[k]);
        scatter(column(found.top_logprobs.data, k), topLogprobs[k]);
      }
    }
    return samples.map((_, i) => ({
      logprobs: logprobs[i],
      entropies: entropies[i],
      ranks: ranks[i],
      top: topIds.map((ids, k) => ({ ids: ids[i], logprobs: topLogprobs[k][i] })),
    }));
  }

  /** Runs one optimizer step on the policy loss of a mini-batch; `seed` seeds the adapters' dropout. */
  async update(
    samples: readonly WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
    seed = 0,
    units = unwatched,
  ): Promise<UpdateMetrics> {
    this.bank.clearGradient();
    const sums = await this.addGradient(samples, budget, loss, new RandomStream(seed), 'all', units);
    const metrics = lossMetrics(sums, loss);
    const { norm, applied } = await this.bank.step(optimizer);
    return { ...metrics, grad_norm: norm, lr: optimizer.lr, skipped: applied ? 0 : 1 };
  }

  /**
   * Adds the gradient of the policy loss over `samples`, or of one part of it, to the bank's gradient, without clearing
   * or applying it. Returns the sums of the loss over the samples.
   */
  async addGradient(
    samples: readonly WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    noise: RandomStream,
    part: LossPart | 'all' = 'all',
    units = unwatched,
  ): Promise<LossSums> {
    const terms: LossTerms = {
      mode: lossModeOf(loss),
      kl: loss.use_kl_loss ? loss.kl_loss_type : null,
      entropy: loss.entropy_coeff !== 0,
    };
    const has = (wanted: LossPart): boolean => part === 'all' || part === wanted;
    const scalars = scalarFeeds({
      inverse_temperature: 1 / loss.temperature,
      clip_low: loss.clip_ratio_low,
      clip_high: loss.clip_ratio_high,
      clip_c: loss.clip_ratio_c,
      entropy_coeff: has('entropy') ? loss.entropy_coeff : 0,
      kl_coef: loss.use_kl_loss && has('kl') ? loss.kl_loss_coef : 0,
    });
    const { passes, chunks } = this.prepare(samples, budget, this.headGradient, units);
    const sums: LossSums = { ...noSums };
    for (const { shared, feeds, count, tokens: packed, gather, memberships } of passes) {
      const kind = `update ${Object.values(terms).join(' ')}`;
      const session = await this.training.get(kind, { shared, chunks }, (...of) => updateGraph(...of, terms), {
        ...this.size(feeds),
        kept: true,
      });
      const result = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...chunkFeeds(count, chunks),
        ...this.dropoutFeeds(packed, noise),
        ...scalars,
        old_logprob: gather(s => s.old_logprobs),
        ...(terms.mode === 'gspo' && { memberships: memberships() }),
        ...(terms.kl && { ref_logprob: gather(s => s.ref_logprobs) }),
        advantage: has('task') ? gather(s => s.advantages) : float32(new Float32Array(count), [count]),
        weight: gather(s => s.weights),
      });
      for (const name of updateSums) sums[name] += (result[name].data as Float32Array)[0];
      sums.tokens += count;
      await this.bank.accumulate(result);
    }
    return sums;
  }

  /** Runs one optimizer step on the mean cross-entropy of the masked tokens; returns that loss. */
  async trainSupervised(
    samples: readonly Pick<TrainingSample, 'ids' | 'mask'>[],
    budget: PassBudget,
    optimizer: OptimizerOptions,
    seed = 0,
    units = unwatched,
  ): Promise<number> {
    const { passes, chunks, total } = this.prepare(samples, budget, this.headGradient, units);
    const noise = new RandomStream(seed);
    let loss = 0;
    this.bank.clearGradient();
    for (const pass of passes) {
      const result = await this.crossEntropy(this.training, pass, chunks, noise, 1 / total);
      loss += (result.loss.data as Float32Array)[0];
      await this.bank.accumulate(result);
    }
    await this.bank.step(optimizer);
    return loss;
  }

  /** Computes and discards the gradient of a batch: changes nothing and frees the memory it used. */
  async tryGradient(samples: readonly Sample[], budget: PassBudget, units = unwatched): Promise<void> {
    const { passes, chunks } = this.prepare(samples, budget, this.headGradient, units);
    const sessions = this.training.likewise();
    try {
      for (const pass of passes) {
        const result = await this.crossEntropy(sessions, pass, chunks, new RandomStream(0), 0);
        dispose(Object.values(result));
      }
    } finally {
      await sessions.release();
    }
  }

  /** Returns the gradients of one pass of the cross-entropy, each token weighted by `weight`, and its loss. */
  private async crossEntropy(
    sessions: PackedSessions,
    { shared, feeds, count, tokens }: PreparedPass<Sample>,
    chunks: number,
    noise: RandomStream,
    weight: number,
  ): Promise<Record<string, Tensor>> {
    const session = await sessions.get('imitate', { shared, chunks }, crossEntropyGraph, {
      ...this.size(feeds),
      kept: true,
    });
    return session.run({
      ...this.bank.feeds(),
      ...feeds,
      ...chunkFeeds(count, chunks),
      ...this.dropoutFeeds(tokens, noise),
      ...scalarFeeds({ inverse_temperature: 1 }),
      weight: float32(new Float32Array(count).fill(weight), [count]),
    });
  }

  /**
   * Returns the passes of a batch, and the number of head chunks that the largest pass needs. A pass is packed only
   * when it is reached, because its masks and index arrays take about ten megabytes for 2048 tokens. Each pass is a
   * unit of work. `headGradient`: bytes of the head gradient that each chunk creates, 0 for none.
   */
  private prepare<S extends Sample>(
    samples: readonly S[],
    budget: PassBudget,
    headGradient: number,
    units: WorkUnits,
  ): { passes: Iterable<PreparedPass<S>>; chunks: number; total: number } {
    const { config } = this.network;
    const index = [...samples.keys()].filter(i => samples[i].mask.includes(1, 1));
    const plan = planPasses(
      index.map(i => samples[i]),
      budget,
    ).map(({ shared, clusters }) => ({
      shared,
      clusters: clusters.map(c => ({ ...c, members: c.members.map(i => index[i]) })),
    }));
    const counts = plan.map(({ clusters }) =>
      clusters.reduce((sum, { members }) => sum + members.reduce((n, i) => n + maskedTokens(samples[i]), 0), 0),
    );
    const most = maximum(counts, 0);
    const least = minimum(counts);
    function* packed(): Generator<PreparedPass<S>> {
      for (const [k, pass] of plan.entries()) {
        units.next(k, plan.length);
        yield { shared: pass.shared, ...batchFeeds(pass, samples, config) };
      }
    }
    return {
      passes: packed(),
      chunks: Math.min(headChunks(most, config.vocabSize, logitsAtATime(headGradient)), headChunks(least, Infinity)),
      total: counts.reduce((sum, count) => sum + count, 0),
    };
  }

  private size(feeds: Readonly<Record<string, Tensor>>): PassSize {
    return passSize(feeds, this.network.config);
  }

  private dropoutFeeds(tokens: number, noise: RandomStream): Record<string, Tensor> {
    const { adapter, specs } = this.network.plan;
    if (!adapter || adapter.dropout === 0) return {};
    const features = maximum(specs.map(({ dims }) => dims.at(-1)!));
    const vector = (length: number): Tensor =>
      float32(
        Float32Array.from({ length }, () => 1 + 99 * noise.uniform()),
        [length],
      );
    return { dropout_rows: vector(tokens), dropout_columns: vector(features) };
  }
}
