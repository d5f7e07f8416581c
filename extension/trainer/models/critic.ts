// The critic of PPO: a decoder of the actor's family with a value head [1, hidden] in place of the output head, started from the
// actor's weights with a head near zero. Loss: ½ · max of the plain and the clipped squared error (Schulman et al. 2017; verl's
// compute_value_loss). The value at token t is read where token t is predicted, before it is known.
import { AdamW } from '../engine/adamw';
import { gradients } from '../engine/autodiff';
import type {
  CriticLossOptions,
  CriticSample,
  OptimizerOptions,
  TrainingSample,
  UpdateMetrics,
} from '../engine/engine';
import { Graph } from '../engine/graph';
import type { Value } from '../engine/graph';
import { linear } from '../engine/layer-ops';
import { add, compare, gatherRows, maximum, minimum, mul, reshape, scale, sub, sumAll, toFloat } from '../engine/ops';
import { Session } from '../engine/session';
import type { SessionOptions } from '../engine/session';
import { causalAttention } from './attention';
import { accumulate, batchFeeds, scalarFeeds } from './batch-feeds';
import { decoderHidden } from './decoder';
import type { Parameters } from './decoder';
import { parameterSpecs } from './decoder-config';
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import { gradientName } from './policy-graphs';
import type { RandomStream } from '../engine/random-stream';
import { Weights } from './weights';

const valueHead = 'value_head.weight';

/** The decoder's parameters with the value head instead of an output head. */
export function criticSpecs(config: DecoderConfig): ParameterSpec[] {
  const trunk = parameterSpecs(config).filter(({ name }) => name !== 'lm_head.weight');
  return [...trunk, { name: valueHead, dims: [1, config.hiddenSize] }];
}

/** A critic's weights: the actor's trunk and a new head of small normal numbers. */
export function criticWeights(config: DecoderConfig, actor: Weights, stream: RandomStream): Weights {
  const weights = new Weights(criticSpecs(config));
  for (const { name } of weights.specs) {
    if (name === valueHead) weights.view(name).forEach((_, i, head) => (head[i] = 0.001 * stream.normal()));
    else weights.view(name).set(actor.view(name));
  }
  return weights;
}

export class Critic {
  private valuing?: Promise<Session>;
  private updating?: Promise<Session>;
  private optimizer?: Promise<AdamW>;
  private readonly gradient: Weights;

  constructor(
    readonly config: DecoderConfig,
    readonly weights: Weights,
    private readonly options: SessionOptions,
  ) {
    this.gradient = weights.like();
  }

  /** Values of the masked tokens, per sample. */
  async values(samples: readonly Pick<TrainingSample, 'ids' | 'mask'>[]): Promise<Float32Array[]> {
    const session = await (this.valuing ??= Session.create(valuesGraph(this.config), this.options));
    const { feeds, scatter } = batchFeeds(samples);
    const { values } = await session.run({ ...this.weights.feeds(), ...feeds });
    return scatter(values.data as Float32Array);
  }

  /** One optimizer step on a mini-batch given as micro-batches. */
  async update(
    microBatches: readonly (readonly CriticSample[])[],
    { cliprange_value }: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    const session = await (this.updating ??= Session.create(criticGraph(this.config), this.options));
    this.gradient.flat.fill(0);
    const sums = { loss: 0, clipped: 0, predicted: 0 };
    let tokens = 0;
    for (const samples of microBatches) {
      const { feeds, gather, count } = batchFeeds(samples);
      const result = await session.run({
        ...this.weights.feeds(),
        ...feeds,
        ...scalarFeeds({ clip_value: cliprange_value }),
        old_value: gather(s => s.old_values),
        return: gather(s => s.returns),
        weight: gather(s => s.weights),
      });
      for (const name of ['loss', 'clipped', 'predicted'] as const)
        sums[name] += (result[name].data as Float32Array)[0];
      tokens += count;
      accumulate(this.gradient, result);
    }
    const { norm } = await (await this.adamw()).step(this.weights.flat, this.gradient.flat, optimizer);
    const perToken = Math.max(tokens, 1);
    return {
      vf_loss: sums.loss,
      vf_clipfrac: sums.clipped / perToken,
      vpred_mean: sums.predicted / perToken,
      grad_norm: norm,
      lr: optimizer.lr,
    };
  }

  /** The optimizer, made on first use; its state belongs into a checkpoint. */
  adamw(): Promise<AdamW> {
    return (this.optimizer ??= AdamW.create(this.weights.flat.length, this.options));
  }

  /** The gradient of the last step, by parameter, before clipping. */
  lastGradient(name: string): Float32Array {
    return this.gradient.view(name);
  }
}

function valuesGraph(config: DecoderConfig): Graph {
  const g = new Graph('values');
  g.output('values', tokenValues(g, config, inputs(g, config)));
  return g;
}

function criticGraph(config: DecoderConfig): Graph {
  const g = new Graph('critic');
  const parameters = inputs(g, config);
  const value = tokenValues(g, config, parameters);
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
  g.output('loss', loss);
  g.output('clipped', sumAll(g, toFloat(g, compare(g, 'Greater', clipped, plain))));
  g.output('predicted', sumAll(g, value));
  gradients(g, loss, [...parameters.values()]).forEach((dx, i) =>
    g.output(gradientName([...parameters.keys()][i]), dx),
  );
  return g;
}

function inputs(g: Graph, config: DecoderConfig): Map<string, Value> {
  return new Map(criticSpecs(config).map(({ name, dims }) => [name, g.input(name, 'float32', dims)]));
}

function tokenValues(g: Graph, config: DecoderConfig, parameters: Parameters): Value {
  const ids = g.input('ids', 'int64', ['b', 't']);
  const positions = g.input('positions', 'int64', ['b', 't']);
  const mask = g.input('mask', 'float32', ['t', 't']);
  const rows = g.input('rows', 'int64', ['n']);
  const hidden = decoderHidden(
    g,
    config,
    parameters,
    { ids, positions, flat: 'b*t' },
    causalAttention(g, config, mask),
  );
  return reshape(g, linear(g, gatherRows(g, hidden, rows), parameters.get(valueHead)!), ['n']);
}
