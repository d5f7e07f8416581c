// A policy: a decoder with sessions that score tokens, make optimizer steps on the policy loss, and train on
// demonstrations. Samples are packed into passes (packing.ts). The gradient of a mini-batch is summed over its passes
// before one AdamW step, so the packing changes the result only by rounding.
import type { PreparedPass } from './graphs/prepared-passes';
import type { InspectedSample, PassBudget, WeightedSample } from '../engine/training-samples';
import type { LossPart, OptimizerOptions, PolicyLossOptions, UpdateMetrics } from '../engine/loss-options';
import type { Graph } from '../engine/graph/graph';
import { dispose } from '../engine/session/device-tensor';
import { RandomStream } from '../engine/sampling/random-stream';
import { float32 } from '../engine/session/session';
import type { SessionOptions, Tensor } from '../engine/session/session';
import { unwatched } from '../engine/work-units';
import type { WorkUnits } from '../engine/work-units';
import { chunkFeeds, scalarFeeds } from './graphs/batch-feeds';
import { addFeatureGradient, featureFeeds, featuresInput } from './graphs/picture-feeds';
import { withoutDropout } from './decoder/networks';
import { PackedSessions, passSize } from './graphs/packed-sessions';
import type { PassSize } from './graphs/packed-sessions';
import type { Sample } from './graphs/pass-plan';
import type { ParameterBank } from './weights/parameter-bank';
import {
  headGradientBytes,
  crossEntropyGraph,
  gradientName,
  inspectGraph,
  scoreGraph,
  updateGraph,
} from './graphs/policy-graphs';
import { updateSums } from './graphs/policy-loss-graph';
import type { LossTerms } from './graphs/policy-loss-graph';
import type { Network, PackedShape } from './graphs/policy-graphs';
import { lossMetrics, noSums } from './loss-sums';
import type { LossSums } from './loss-sums';
import { preparePasses, dropoutFeeds } from './graphs/prepared-passes';
import { selectedTokens } from '../algorithms/covariance';
import { covarianceOf, gateOf, lossModeOf, selectsTokens, usesSequenceRatios } from '../algorithms/policy-loss-options';

export interface Scores {
  /** One array per sample, as long as the sample's ids; 0 where mask = 0. */
  logprobs: Float32Array[];
  entropies: Float32Array[];
  /** Sums of the squared probabilities of the distributions; only if asked for. */
  squares?: Float32Array[];
}

/** The image features that the samples of a call show (ShownFeatures). */
export interface ImageFeatures {
  /** [features, width], float32 on the host */
  values: Tensor;
  /**
   * Receives the gradient of the features, [features, width], if the encoder is trained, and adds the gradients of the
   * encoder's parameters to the policy's bank.
   */
  backward?(gradient: Float32Array): Promise<void>;
}

/** What `score` needs besides samples, and what it returns besides log-probs and entropies. */
export interface ScoreExtras {
  withSquares?: boolean;
  images?: ImageFeatures | undefined;
}

export interface PolicyOptions extends SessionOptions {
  /**
   * Whether the layers' intermediate values are recomputed in the backward pass. This needs less memory and about a
   * third more time.
   */
  checkpointed?: boolean;
}

/** A sample whose selected tokens are marked with 1. */
type SelectedSample = WeightedSample & { selected?: Float32Array };

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

  /**
   * Returns log-probs and entropies of the masked tokens under the current weights, and with `withSquares` the sums of
   * squared probabilities.
   */
  async score(
    samples: readonly Sample[],
    budget: PassBudget,
    temperature: number,
    units = unwatched,
    { withSquares = false, images }: ScoreExtras = {},
  ): Promise<Scores> {
    const scores: Scores = { logprobs: [], entropies: [], ...(withSquares && { squares: [] }) };
    const build = (...of: [Network, PackedShape]): Graph => scoreGraph(...of, withSquares);
    const kind = withSquares ? 'score with squares' : 'score';
    const { passes, chunks } = preparePasses(this.network, samples, budget, 0, units);
    for (const { shared, trimmed, pictured, feeds, count, scatter } of passes) {
      const shape = { shared, trimmed, pictures: pictured ? ('shown' as const) : undefined, chunks };
      const session = await this.scoring.get(kind, shape, build, this.size(feeds));
      const { logprob, entropy, squares } = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...featureFeeds(feeds, images?.values),
        ...chunkFeeds(count, chunks),
        ...scalarFeeds({ inverse_temperature: 1 / temperature }),
      });
      scatter(logprob.data as Float32Array, scores.logprobs);
      scatter(entropy.data as Float32Array, scores.entropies);
      if (scores.squares) scatter(squares.data as Float32Array, scores.squares);
    }
    // Samples without a masked token are in no pass.
    samples.forEach(({ ids }, i) => {
      scores.logprobs[i] ??= new Float32Array(ids.length);
      scores.entropies[i] ??= new Float32Array(ids.length);
      if (scores.squares) scores.squares[i] ??= new Float32Array(ids.length);
    });
    return scores;
  }

  /**
   * Returns data about the distribution at each masked token under the current weights, including the `top` most likely
   * tokens.
   */
  async inspect(
    samples: readonly Sample[],
    budget: PassBudget,
    temperature: number,
    top: number,
    units = unwatched,
    images?: ImageFeatures,
  ): Promise<InspectedSample[]> {
    const count = Math.min(top, this.network.config.vocabSize);
    const zeros = (): Float32Array[] => samples.map(({ ids }) => new Float32Array(ids.length));
    const columns = (): Float32Array[][] => Array.from({ length: count }, zeros);
    const [logprobs, entropies, ranks, topIds, topLogprobs] = [zeros(), zeros(), zeros(), columns(), columns()];
    const { passes, chunks } = preparePasses(this.network, samples, budget, 0, units);
    for (const { shared, trimmed, pictured, feeds, count: tokens, scatter } of passes) {
      const session = await this.scoring.get(
        `inspect ${count}`,
        { shared, trimmed, pictures: pictured ? 'shown' : undefined, chunks },
        (...of) => inspectGraph(...of, count),
        this.size(feeds),
      );
      const found = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...featureFeeds(feeds, images?.values),
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

  /** Runs one optimizer step on the policy loss of a mini-batch; `seed` determines the adapters' dropout. */
  async update(
    samples: readonly WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
    seed = 0,
    units = unwatched,
    images?: ImageFeatures,
  ): Promise<UpdateMetrics> {
    this.bank.clearGradient();
    const sums = await this.addGradient(samples, budget, loss, new RandomStream(seed), 'all', units, images);
    const metrics = lossMetrics(sums, loss);
    const { norm, applied } = await this.bank.step(optimizer);
    return { ...metrics, grad_norm: norm, lr: optimizer.lr, skipped: applied ? 0 : 1 };
  }

  /**
   * Adds the gradient of the policy loss over `samples`, or of one part of this loss, to the bank's gradient. The
   * bank's gradient is neither cleared before nor applied afterwards. Returns the sums of the loss over the samples.
   */
  async addGradient(
    samples: readonly WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    noise: RandomStream,
    part: LossPart | 'all' = 'all',
    units = unwatched,
    images?: ImageFeatures,
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
      ...gateOf(loss),
      ppo_kl_coef: covarianceOf(loss).ppo_kl_coef,
      entropy_coeff: has('entropy') ? loss.entropy_coeff : 0,
      kl_coef: loss.use_kl_loss && has('kl') ? loss.kl_loss_coef : 0,
    });
    const marked: readonly SelectedSample[] = selectsTokens(terms.mode)
      ? await this.selectTokens(samples, budget, loss, images, units)
      : samples;
    const { passes, chunks } = preparePasses(this.network, marked, budget, this.headGradient, units);
    const sums: LossSums = { ...noSums };
    const ofFeatures = featureGradient(images);
    for (const { shared, trimmed, pictured, feeds, count, tokens: packed, gather, memberships } of passes) {
      const kind = `update ${Object.values(terms).join(' ')}`;
      const shape = { shared, trimmed, pictures: pictured ? picturesOf(images) : undefined, chunks };
      const session = await this.training.get(kind, shape, (...of) => updateGraph(...of, terms), {
        ...this.size(feeds),
        kept: true,
      });
      const result = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...chunkFeeds(count, chunks),
        ...dropoutFeeds(this.network, packed, noise),
        ...scalars,
        ...featureFeeds(feeds, images?.values),
        old_logprob: gather(s => s.old_logprobs),
        ...(usesSequenceRatios(terms.mode) && { memberships: memberships() }),
        ...(selectsTokens(terms.mode) && { selected: gather(s => s.selected!) }),
        ...(terms.kl && { ref_logprob: gather(s => s.ref_logprobs) }),
        advantage: has('task') ? gather(s => s.advantages) : float32(new Float32Array(count), [count]),
        weight: gather(s => s.weights),
      });
      for (const name of updateSums) sums[name] += (result[name].data as Float32Array)[0];
      sums.tokens += count;
      if (pictured && ofFeatures) addFeatureGradient(feeds, ofFeatures, result[gradientName(featuresInput)]);
      await this.bank.accumulate(result);
    }
    if (ofFeatures) await images!.backward!(ofFeatures);
    return sums;
  }

  /** Marks the tokens that Clip-Cov and KL-Cov select, by the log-probs under the current weights. */
  private async selectTokens(
    samples: readonly WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    images: ImageFeatures | undefined,
    units: WorkUnits,
  ): Promise<SelectedSample[]> {
    const { logprobs } = await this.score(samples, budget, loss.temperature, units, { images });
    const sequences = samples.map((sample, i) => ({ ...sample, logprobs: logprobs[i] }));
    const marks = selectedTokens(sequences, loss);
    return samples.map((sample, i) => ({ ...sample, selected: Float32Array.from(marks![i]) }));
  }

  /** Runs one optimizer step on the mean cross-entropy of the masked tokens; returns the mean cross-entropy. */
  async trainSupervised(
    samples: readonly Sample[],
    budget: PassBudget,
    optimizer: OptimizerOptions,
    seed = 0,
    units = unwatched,
    images?: ImageFeatures,
  ): Promise<number> {
    const { passes, chunks, total } = preparePasses(this.network, samples, budget, this.headGradient, units);
    const noise = new RandomStream(seed);
    let loss = 0;
    this.bank.clearGradient();
    const ofFeatures = featureGradient(images);
    for (const pass of passes) {
      const result = await this.crossEntropy(this.training, pass, chunks, noise, 1 / total, images);
      loss += (result.loss.data as Float32Array)[0];
      if (pass.pictured && ofFeatures) addFeatureGradient(pass.feeds, ofFeatures, result[gradientName(featuresInput)]);
      await this.bank.accumulate(result);
    }
    if (ofFeatures) await images!.backward!(ofFeatures);
    await this.bank.step(optimizer);
    return loss;
  }

  /** Computes the gradient of a batch and discards it. Changes no weights, and frees the memory of the computation. */
  async tryGradient(samples: readonly Sample[], budget: PassBudget, units = unwatched): Promise<void> {
    const { passes, chunks } = preparePasses(this.network, samples, budget, this.headGradient, units);
    const sessions = this.training.withSameOptions();
    try {
      for (const pass of passes) {
        const result = await this.crossEntropy(sessions, pass, chunks, new RandomStream(0), 0);
        dispose(Object.values(result));
      }
    } finally {
      await sessions.release();
    }
  }

  /** Returns the cross-entropy of one pass and its gradients. Each token has the weight `weight`. */
  private async crossEntropy(
    sessions: PackedSessions,
    { shared, trimmed, pictured, feeds, count, tokens }: PreparedPass<Sample>,
    chunks: number,
    noise: RandomStream,
    weight: number,
    images?: ImageFeatures,
  ): Promise<Record<string, Tensor>> {
    const pictures = pictured ? picturesOf(images) : undefined;
    const session = await sessions.get('imitate', { shared, trimmed, pictures, chunks }, crossEntropyGraph, {
      ...this.size(feeds),
      kept: true,
    });
    return session.run({
      ...this.bank.feeds(),
      ...feeds,
      ...chunkFeeds(count, chunks),
      ...featureFeeds(feeds, images?.values),
      ...dropoutFeeds(this.network, tokens, noise),
      ...scalarFeeds({ inverse_temperature: 1 }),
      weight: float32(new Float32Array(count).fill(weight), [count]),
    });
  }

  private size(feeds: Readonly<Record<string, Tensor>>): PassSize {
    return passSize(feeds, this.network.config);
  }
}

/** Whether a pass that shows pictures computes the gradient of their features. */
const picturesOf = (images: ImageFeatures | undefined): PackedShape['pictures'] =>
  images?.backward ? 'trained' : 'shown';

/** Returns zeros for the gradient of the features; undefined if the encoder is not trained. */
const featureGradient = (images: ImageFeatures | undefined): Float32Array | undefined =>
  images?.backward && new Float32Array(images.values.data.length);
