// Graphs of a policy: scoring of packed tokens, the gradient of the policy loss (policy-loss-graph.ts), supervised
// training on demonstrations, and generation over cached keys and values. All these graphs use the same decoder
// (decoder.ts). Gradients are declared as outputs in the order in which they are computed, so that few values are in
// memory at a time. For large vocabularies, tokens pass through the output head in chunks: loss and gradient of a chunk
// are computed before the logits of the next chunk.
import { following, gradientFollowing, gradients } from '../../engine/graph/autodiff';
import { Graph } from '../../engine/graph/graph';
import type { Lowering, Value } from '../../engine/graph/graph';
import { squaredProbs, tokenLogProbs } from '../../engine/graph/layer-ops';
import {
  add,
  binary,
  compare,
  converted,
  gatherRows,
  mul,
  neg,
  reduced,
  scale,
  sumAll,
  toFloat,
} from '../../engine/graph/ops';
import { splitRows } from '../../engine/graph/packed-ops';
import { appendedAttention, cachedAttention, packedAttention, residentAttention } from '../decoder/attention';
import { decoderHidden, decoderLogits, headName } from '../decoder/decoder';
import type { DecoderConfig } from '../decoder/decoder-config';
import { DecoderParameters } from '../decoder/decoder-parameters';
import type { ParameterPlan } from '../decoder/decoder-parameters';
import { featuresInput, pictureInputs } from './picture-feeds';
import { chunkLoss, lossInputs, sequenceLogRatios, updateSums } from './policy-loss-graph';
import type { LossTerms } from './policy-loss-graph';

/** A decoder's configuration, and how its parameters are stored. */
export interface Network {
  config: DecoderConfig;
  plan: ParameterPlan;
  /** Folder of the files that contain the mapped parameters. */
  folder?: string;
  /** Exclusive upper bound of positions; defaults to the model's limit. */
  maxPositions?: number;
}

/** Returns the bytes of the output head's gradient; 0 if the head is not trained. */
export function headGradientBytes({ config, plan }: Network): number {
  const name = headName(config, { has: wanted => plan.specs.some(({ name }) => name === wanted) });
  return plan.source(name).kind === 'input' ? 4 * config.vocabSize * config.hiddenSize : 0;
}

/** Options of the graphs over packed tokens. */
export interface PackedShape {
  lowering: Lowering;
  /** Whether samples share prefixes. */
  shared: boolean;
  /**
   * Whether the last layer computes only the tokens that the input `rows` names. `rows` then counts these tokens instead
   * of all packed tokens. False by default.
   */
  trimmed?: boolean;
  /**
   * Whether tokens may show image features, and whether the update graph returns the gradient of these features, named
   * `grad:features`. By default, they show none.
   */
  pictures?: 'shown' | 'trained';
  /** Number of chunks in which the tokens pass through the output head. */
  chunks: number;
  /** Whether the layers' intermediate values are recomputed in the backward pass instead of being kept in memory. */
  checkpointed: boolean;
}

export const gradientName = (parameter: string): string => `grad:${parameter}`;
export const isGradient = (output: string): boolean => output.startsWith(gradientName(''));

/**
 * Builds the graph that scores tokens. Inputs: packed tokens (packing.ts), rows [n'] (index of the packed token that
 * predicts each target), targets [n']. Outputs: logprob, entropy [n'], and with `withSquares` squares [n'], the sum of the
 * squared probabilities of the distribution that predicts each target.
 */
export function scoreGraph(network: Network, shape: PackedShape, withSquares = false): Graph {
  const g = new Graph('score', shape.lowering);
  const chunks = tokenChunks(g, network, { ...shape, checkpointed: false }).chunks.map(chunk => {
    const { logits, targets } = chunk.logits();
    return { ...tokenLogProbs(g, logits, targets), squares: withSquares ? [squaredProbs(g, logits)] : [] };
  });
  const joined = (values: Value[]): Value =>
    values.length === 1 ? values[0] : g.emit('Concat', values, 'float32', ['n'], { axis: 0 });
  g.output('logprob', joined(chunks.map(({ logprob, entropy }) => following(g, logprob, sumAll(g, entropy)))));
  g.output('entropy', joined(chunks.map(({ entropy }) => entropy)));
  if (withSquares) g.output('squares', joined(chunks.flatMap(({ squares }) => squares)));
  return g;
}

/**
 * Builds the graph that computes statistics of the distribution that predicts each target. The inputs are those of the
 * score graph. Outputs: logprob, entropy, rank [n'] (1 for the most likely token), top_ids and top_logprobs [n', top],
 * most likely first.
 */
export function inspectGraph(network: Network, shape: PackedShape, top: number): Graph {
  const g = new Graph('inspect', shape.lowering);
  let before: Value | undefined;
  const chunks = tokenChunks(g, network, { ...shape, checkpointed: false }).chunks.map(chunk => {
    const { logits: raw, targets } = chunk.logits(before);
    const logits = converted(g, raw, 'float32');
    const [n] = logits.dims;
    const { logprob, entropy } = tokenLogProbs(g, logits, targets);
    const at = g.emit('Unsqueeze', [targets, g.integers([1])], 'int64', [n, 1]);
    const chosen = g.emit('GatherElements', [logits, at], 'float32', [n, 1], { axis: 1 });
    const higherCount = reduced(g, 'ReduceSum', toFloat(g, compare(g, 'Greater', logits, chosen)), [1]);
    const rank = binary(g, 'Add', g.emit('Squeeze', [higherCount, g.integers([1])], 'float32', [n]), g.scalar(1));
    const [values, ids] = g.emitMany(
      'TopK',
      [logits, g.integers([top])],
      [
        { type: 'float32', dims: [n, top] },
        { type: 'int64', dims: [n, top] },
      ],
      { axis: 1, largest: 1, sorted: 1 },
    );
    const column = g.emit('Unsqueeze', [logprob, g.integers([1])], 'float32', [n, 1]);
    const logTotal = binary(g, 'Sub', chosen, column);
    before = entropy;
    return { logprob, entropy, rank, top_ids: ids, top_logprobs: binary(g, 'Sub', values, logTotal) };
  });
  for (const name of ['logprob', 'entropy', 'rank', 'top_ids', 'top_logprobs'] as const) {
    const parts = chunks.map(chunk => chunk[name]);
    const dims = ['n', ...parts[0].dims.slice(1)];
    g.output(name, parts.length === 1 ? parts[0] : g.emit('Concat', parts, parts[0].type, dims, { axis: 0 }));
  }
  return g;
}

/**
 * Builds the graph that computes the gradient of the policy loss. The weight of a token is its share in the mini-batch
 * loss under loss_agg_mode, so the losses of the micro-batches sum to the mini-batch loss. Outputs: one gradient per
 * trained parameter, and the sums named in `updateSums`. Inputs:
 * * the inputs of the score graph, and the scalar inputs of the loss (policy-loss-graph.ts)
 * * old_logprob, advantage and weight [n']
 * * ref_logprob [n'] if the loss has a KL term
 * * memberships [r, n'] for GSPO and GMPO (batch-feeds.ts)
 */
export function updateGraph(network: Network, shape: PackedShape, terms: LossTerms): Graph {
  const g = new Graph('update', shape.lowering);
  const { chunks, parameters, split } = tokenChunks(g, network, shape);
  const inputs = lossInputs(g, terms, split);
  // Ratios of sequences need the log-probs of all chunks before the first gradient is computed. With several chunks, logits
  // are therefore computed twice.
  const ofSequences = (logprobs: Value[]): Value[] => sequenceLogRatios(g, terms, inputs, logprobs, split);
  const ahead = inputs.memberships && chunks.length > 1 ? ofSequences(chunks.map(c => c.statistics().logprob)) : null;

  const parts = chunks.map((chunk, i) => {
    const { logprob, entropy } = chunk.statistics(ahead?.[i]);
    const entropySum = sumAll(g, entropy);
    chunk.readBeforeGradient(entropySum);
    const tokens = { logprob, entropy, entropySum };
    return chunkLoss(g, terms, inputs, i, tokens, () => (ahead ?? ofSequences([logprob]))[i]);
  });
  const over = (pick: (part: (typeof parts)[number]) => Value): Value =>
    parts.map(pick).reduce((sum, value) => add(g, sum, value));
  const sums = updateSums.map(name => over(part => part.sums[name]));
  outputGradients(
    g,
    over(part => part.total),
    parameters,
  );
  updateSums.forEach((name, i) => g.output(name, sums[i]));
  return g;
}

/**
 * Builds the graph that computes the cross-entropy of the targets, weighted by `weight` [n'], and the gradient of this
 * cross-entropy. Outputs: one gradient per trained parameter, and the loss.
 */
export function crossEntropyGraph(network: Network, shape: PackedShape): Graph {
  const g = new Graph('imitate', shape.lowering);
  const { chunks, parameters, split } = tokenChunks(g, network, shape);
  const weight = split(g.input('weight', 'float32', ['n']), 'weight');
  const loss = chunks
    .map((chunk, i) => neg(g, sumAll(g, mul(g, chunk.statistics().logprob, weight[i]))))
    .reduce((sum, value) => add(g, sum, value));
  outputGradients(g, loss, parameters);
  g.output('loss', loss);
  return g;
}

/**
 * Builds the graph that computes the gradient of the targets' summed log-prob for the image features that the tokens
 * show. The inputs are those of the score graph, with `pictures: 'trained'`. Outputs: grad:features, and logprob, the sum.
 */
export function featureGradientGraph(network: Network, shape: PackedShape): Graph {
  const g = new Graph('attribute', shape.lowering);
  const { chunks, parameters } = tokenChunks(g, network, shape);
  const logprob = chunks.map(chunk => sumAll(g, chunk.statistics().logprob)).reduce((sum, value) => add(g, sum, value));
  const trained = new Map([[featuresInput, parameters.trained.get(featuresInput)!]]);
  outputGradients(g, logprob, { trained, gradientScale: parameters.gradientScale });
  g.output('logprob', logprob);
  return g;
}

/**
 * Builds the graph that appends chunks of new tokens to cached keys and values (attention.ts). Inputs: packed tokens
 * (packing.ts), rows [r] (tokens whose logits are needed), past keys and values. Outputs: logits [r, vocab]; key.i and
 * value.i of the new tokens [n, kvHeads·headSize], or of all slots of the chunk if the cache is on a device.
 */
export function generateGraph(
  { config: c, plan, maxPositions }: Network,
  lowering: Lowering,
  cache: 'host' | 'device' = 'host',
): Graph {
  const g = new Graph('generate', lowering);
  const parameters = new DecoderParameters(g, plan);
  const ids = g.input('ids', 'int64', ['tokens']);
  const positions = g.input('positions', 'int64', ['tokens']);
  const rows = g.input('rows', 'int64', ['r']);
  const attend = cache === 'device' ? residentAttention(g, c) : cachedAttention(g, c);
  const hidden = decoderHidden(g, c, parameters, { ids, positions, maxPositions }, attend);
  g.output('logits', decoderLogits(c, parameters, gatherRows(g, hidden, rows)));
  return g;
}

/**
 * Builds the graph that appends chunks of new tokens, one per row, and computes only the logits of the chunks' last
 * tokens. Compared with `generateGraph`, it is faster for long chunks and slower for single tokens. Inputs: packed tokens
 * and the inputs of appendedAttention, and if `pictured`, those of tokens that may show image features (picture-feeds.ts).
 * Outputs: logits [last, vocab]; key.i and value.i of the new tokens.
 */
export function appendGraph({ config: c, plan, maxPositions }: Network, lowering: Lowering, pictured = false): Graph {
  const g = new Graph('append', lowering);
  const parameters = new DecoderParameters(g, plan);
  const ids = g.input('ids', 'int64', ['tokens']);
  const positions = g.input('positions', 'int64', ['tokens']);
  const pictures = pictured ? pictureInputs(g, c) : undefined;
  const { attend, last } = appendedAttention(g, c);
  const hidden = decoderHidden(g, c, parameters, { ids, positions, maxPositions, pictures }, attend, last);
  g.output('logits', decoderLogits(c, parameters, hidden));
  return g;
}

interface TokenChunk {
  /**
   * Returns the logits [tokens of the chunk, vocab], divided by the temperature, and the targets. If the vector `after`
   * is given, the graph computes it before the logits.
   */
  logits(after?: Value): { logits: Value; targets: Value };
  /**
   * Returns the log-prob of each target and the entropy of its distribution, [tokens of the chunk]. If the vector
   * `after` is given, the graph computes it before log-prob and entropy.
   */
  statistics(after?: Value): { logprob: Value; entropy: Value };
  /**
   * Makes the graph compute the chunk's gradient only after `value`, a scalar computed from the chunk's logits. Without
   * this dependency, the logits of all chunks would stay in memory until their scalars are computed.
   */
  readBeforeGradient(value: Value): void;
}

/** Returns the hidden states of packed tokens, [n, hidden], and the parameters used. */
export function packedHidden(
  g: Graph,
  { config, plan, maxPositions }: Network,
  shape: Pick<PackedShape, 'shared' | 'trimmed' | 'checkpointed' | 'pictures'>,
): { hidden: Value; parameters: DecoderParameters } {
  const parameters = new DecoderParameters(g, plan);
  const ids = g.input('ids', 'int64', ['tokens']);
  const positions = g.input('positions', 'int64', ['tokens']);
  const { shared, trimmed = false, checkpointed } = shape;
  const pictures = shape.pictures && pictureInputs(g, config);
  if (pictures && shape.pictures === 'trained') parameters.trained.set(featuresInput, pictures.features);
  const tokens = { ids, positions, maxPositions, checkpointed, pictures };
  const { attend, last } = packedAttention(g, config, shared);
  const hidden = decoderHidden(g, config, parameters, tokens, attend, trimmed ? last() : undefined);
  return { hidden, parameters };
}

function tokenChunks(
  g: Graph,
  network: Network,
  shape: PackedShape,
): { chunks: TokenChunk[]; parameters: DecoderParameters; split: (vector: Value, stem: string) => Value[] } {
  const { hidden, parameters } = packedHidden(g, network, shape);
  const rows = g.input('rows', 'int64', ['n']);
  const targets = g.input('targets', 'int64', ['n']);
  const inverseTemperature = g.input('inverse_temperature', 'float32', []);
  // Scaling the hidden states is equivalent to scaling the logits and needs fewer multiplications.
  const predicting = mul(g, gatherRows(g, hidden, rows), inverseTemperature);
  const sizes = shape.chunks > 1 ? g.input('chunk_sizes', 'int64', [shape.chunks]) : null;
  const split = (value: Value): Value[] => (sizes ? splitRows(g, value, sizes, 'n') : [value]);
  const targetsOf = split(targets);
  const chunks = split(predicting).map((part, i): TokenChunk => {
    let first: Value | undefined;
    const hidden = sizes ? gradientFollowing(g, part, () => first) : part;
    const logits: TokenChunk['logits'] = after => {
      const x = after ? following(g, hidden, sumAll(g, after)) : hidden;
      return { logits: decoderLogits(network.config, parameters, x), targets: targetsOf[i] };
    };
    return {
      logits,
      statistics: after => {
        const { logits: found, targets } = logits(after);
        return tokenLogProbs(g, found, targets);
      },
      readBeforeGradient: value => (first = value),
    };
  });
  return { chunks, parameters, split };
}

/**
 * Declares the gradients as outputs in reverse parameter order, because the gradients of the last layers are computed
 * first.
 */
export function outputGradients(
  g: Graph,
  loss: Value,
  { trained, gradientScale }: Pick<DecoderParameters, 'trained' | 'gradientScale'>,
): void {
  const names = [...trained.keys()].reverse();
  const found = gradients(
    g,
    scale(g, loss, gradientScale),
    names.map(name => trained.get(name)!),
  );
  const own = (gradient: Value): Value =>
    gradientScale === 1 ? gradient : binary(g, 'Mul', gradient, g.scalar(1 / gradientScale));
  names.forEach((name, i) => g.output(gradientName(name), own(found[i])));
}
