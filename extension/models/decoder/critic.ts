// PPO's critic: a decoder of the actor's architecture with a value head [1, hidden] instead of the output head.
// Initially, the critic has the actor's weights, and its value head is near zero. Loss: ½ · max of the unclipped and
// the clipped squared error (Schulman et al. 2017; verl's compute_value_loss). The value of token t is computed at
// position t − 1, so it does not depend on the token itself. Pictures are shown by the frozen encoder's features.
import type { CriticLossOptions, OptimizerOptions, UpdateMetrics } from '../../engine/loss-options';
import type { CriticSample, PassBudget } from '../../engine/training-samples';
import { unwatched } from '../../engine/work-units';
import { Graph } from '../../engine/graph/graph';
import type { Value } from '../../engine/graph/graph';
import {
  add,
  compare,
  gatherRows,
  maximum,
  minimum,
  mul,
  reshape,
  scale,
  sub,
  sumAll,
  toFloat,
} from '../../engine/graph/ops';
import { batchFeeds, scalarFeeds } from '../graphs/batch-feeds';
import { parameterSpecs } from './decoder-config';
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import type { DecoderParameters } from './decoder-parameters';
import { PackedSessions, passSize } from '../graphs/packed-sessions';
import { featureFeeds } from '../graphs/picture-feeds';
import { passCosts, planPasses } from '../graphs/pass-plan';
import type { Sample } from '../graphs/pass-plan';
import type { ParameterBank } from '../weights/parameter-bank';
import { outputGradients, packedHidden } from '../graphs/policy-graphs';
import type { Network, PackedShape } from '../graphs/policy-graphs';
import type { ImageFeatures, PolicyOptions } from '../policy';
import type { RandomStream } from '../../engine/sampling/random-stream';
import { Weights } from '../weights/weights';

const valueHead = 'value_head.weight';

/** Returns the decoder's parameters with the value head instead of the output head. */
export function criticSpecs(config: DecoderConfig): ParameterSpec[] {
  const trunk = parameterSpecs(config).filter(({ name }) => name !== 'lm_head.weight');
  return [...trunk, valueHeadSpec(config)];
}

/** Returns the parameter spec of the value head. */
export const valueHeadSpec = (config: DecoderConfig): ParameterSpec => ({
  name: valueHead,
  dims: [1, config.hiddenSize],
});

/** Fills a new value head with normally distributed random numbers of small standard deviation. */
export function initializeValueHead(weights: Weights, stream: RandomStream): void {
  weights.view(valueHead).forEach((_, i, head) => (head[i] = 0.001 * stream.normal()));
}

/** Returns the initial weights of a critic: the actor's decoder layers and a new value head. */
export function criticWeights(config: DecoderConfig, actor: Weights, stream: RandomStream): Weights {
  const weights = new Weights(criticSpecs(config));
  for (const { name } of weights.specs) if (name !== valueHead) weights.view(name).set(actor.view(name));
  initializeValueHead(weights, stream);
  return weights;
}

export class Critic {
  private readonly sessions: PackedSessions;

  constructor(
    readonly network: Network,
    readonly bank: ParameterBank,
    { checkpointed = false, ...options }: PolicyOptions,
  ) {
    this.sessions = new PackedSessions(network, options, checkpointed);
  }

  /** Returns the values of the masked tokens, per sample. */
  async values(
    samples: readonly Sample[],
    budget: PassBudget,
    units = unwatched,
    images?: ImageFeatures,
  ): Promise<Float32Array[]> {
    const found: Float32Array[] = [];
    const passes = planPasses(samples, budget, passCosts(this.network.config));
    for (const [k, pass] of passes.entries()) {
      units.next(k, passes.length);
      const { feeds, trimmed, pictured, scatter } = batchFeeds(pass, samples, this.network.config);
      const size = passSize(feeds, this.network.config);
      const shape = { shared: pass.shared, trimmed, pictures: shownIf(pictured), chunks: 1 };
      const session = await this.sessions.get('values', shape, valuesGraph, size);
      const { values } = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...featureFeeds(feeds, images?.values),
      });
      scatter(values.data as Float32Array, found);
    }
    return found;
  }

  /** Runs one optimizer step on a mini-batch. */
  async update(
    samples: readonly CriticSample[],
    budget: PassBudget,
    { cliprange_value }: CriticLossOptions,
    optimizer: OptimizerOptions,
    units = unwatched,
    images?: ImageFeatures,
  ): Promise<UpdateMetrics> {
    this.bank.clearGradient();
    const sums = { loss: 0, clipped: 0, predicted: 0 };
    let tokens = 0;
    const passes = planPasses(samples, budget, passCosts(this.network.config));
    for (const [k, pass] of passes.entries()) {
      units.next(k, passes.length);
      const { feeds, trimmed, pictured, gather, count } = batchFeeds(pass, samples, this.network.config);
      const size = passSize(feeds, this.network.config);
      const shape = { shared: pass.shared, trimmed, pictures: shownIf(pictured), chunks: 1 };
      const session = await this.sessions.get('update', shape, criticGraph, {
        ...size,
        kept: true,
      });
      const result = await session.run({
        ...this.bank.feeds(),
        ...feeds,
        ...featureFeeds(feeds, images?.values),
        ...scalarFeeds({ clip_value: cliprange_value }),
        old_value: gather(s => s.old_values),
        return: gather(s => s.returns),
        weight: gather(s => s.weights),
      });
      for (const name of ['loss', 'clipped', 'predicted'] as const)
        sums[name] += (result[name].data as Float32Array)[0];
      tokens += count;
      await this.bank.accumulate(result);
    }
    const { norm } = await this.bank.step(optimizer);
    const perToken = Math.max(tokens, 1);
    return {
      vf_loss: sums.loss,
      vf_clipfrac: sums.clipped / perToken,
      vpred_mean: sums.predicted / perToken,
      grad_norm: norm,
      lr: optimizer.lr,
    };
  }
}

/** The critic does not train the encoder, so its passes need no gradient of the features. */
const shownIf = (pictured: boolean): PackedShape['pictures'] => (pictured ? 'shown' : undefined);

/** Graph that computes the critic's values. Inputs: packed tokens, rows [n']. Output: `values` [n']. */
export function valuesGraph(network: Network, shape: PackedShape): Graph {
  const g = new Graph('values', shape.lowering);
  g.output('values', tokenValues(g, network, { ...shape, checkpointed: false }).value);
  return g;
}

/**
 * Graph that computes the gradient of the critic's loss. Inputs: packed tokens, rows, old_value, return, weight [n'],
 * clip_value. Outputs: one gradient per trained parameter, and the sums of loss and metrics.
 */
export function criticGraph(network: Network, shape: PackedShape): Graph {
  const g = new Graph('critic', shape.lowering);
  const { value, parameters } = tokenValues(g, network, shape);
  const [old, target, weight] = ['old_value', 'return', 'weight'].map(name => g.input(name, 'float32', ['n']));
  const range = g.input('clip_value', 'float32', []);
  const held = minimum(g, maximum(g, value, sub(g, old, range)), add(g, old, range));
  const squared = (v: Value): Value => {
    const error = sub(g, v, target);
    return mul(g, error, error);
  };
  const plain = squared(value);
  const clipped = squared(held);
  const loss = scale(g, sumAll(g, mul(g, maximum(g, plain, clipped), weight)), 0.5);
  const sums = { clipped: sumAll(g, toFloat(g, compare(g, 'Greater', clipped, plain))), predicted: sumAll(g, value) };
  outputGradients(g, loss, parameters);
  g.output('loss', loss);
  g.output('clipped', sums.clipped);
  g.output('predicted', sums.predicted);
  return g;
}

function tokenValues(g: Graph, network: Network, shape: PackedShape): { value: Value; parameters: DecoderParameters } {
  const { hidden, parameters } = packedHidden(g, network, shape);
  const rows = g.input('rows', 'int64', ['n']);
  return { value: reshape(g, parameters.base(valueHead, gatherRows(g, hidden, rows)), ['n']), parameters };
}
