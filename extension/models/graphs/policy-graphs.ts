// Graphs of a policy: scoring packed tokens, the gradient of the policy loss (formulas in algorithms/policy-loss.ts),
// supervised training on demonstrations, and generation over cached keys and values. All use one decoder (decoder.ts).
// Gradients are output in the order in which they become available, to keep few values alive. For large vocabularies,
// logits are computed per chunk of tokens: a chunk's loss and gradient finish before the next chunk begins.
import { detached, following, gradientFollowing, gradients } from '../../engine/graph/autodiff';
import type { PolicyLossOptions } from '../../engine/loss-options';
import { Graph } from '../../engine/graph/graph';
import type { Lowering, Value } from '../../engine/graph/graph';
import { matmul, tokenLogProbs } from '../../engine/graph/layer-ops';
import {
  abs,
  add,
  binary,
  clip,
  compare,
  converted,
  exp,
  gatherRows,
  maximum,
  minimum,
  mul,
  neg,
  reduced,
  reshape,
  scale,
  select,
  sub,
  sumAll,
  toFloat,
} from '../../engine/graph/ops';
import { splitRows } from '../../engine/graph/packed-ops';
import { largestLogRatio } from '../../algorithms/gspo';
import { cachedAttention, packedAttention, residentAttention } from '../decoder/attention';
import { decoderHidden, decoderLogits, headName } from '../decoder/decoder';
import type { DecoderConfig } from '../decoder/decoder-config';
import { DecoderParameters } from '../decoder/decoder-parameters';
import type { ParameterPlan } from '../decoder/decoder-parameters';

/** A decoder and how its parameters are held. */
export interface Network {
  config: DecoderConfig;
  plan: ParameterPlan;
  /** Folder of the files with mapped parameters. */
  folder?: string;
  /** Exclusive upper bound of positions; defaults to the model's limit. */
  maxPositions?: number;
}

/** Returns the bytes of the output head's gradient, 0 if the head is not trained. */
export function headGradientBytes({ config, plan }: Network): number {
  const name = headName(config, { has: wanted => plan.specs.some(({ name }) => name === wanted) });
  return plan.source(name).kind === 'input' ? 4 * config.vocabSize * config.hiddenSize : 0;
}

/** Variations of the graphs over packed tokens. */
export interface PackedShape {
  lowering: Lowering;
  /** Whether samples share prefixes. */
  shared: boolean;
  /** Number of chunks in which the tokens pass through the output head. */
  chunks: number;
  /** Recompute the layers' intermediate values in the backward pass. */
  checkpointed: boolean;
}

/** Names of the scalar inputs of the update graph. */
export const lossScalars = ['clip_low', 'clip_high', 'clip_c', 'entropy_coeff', 'kl_coef'] as const;
/** Outputs of the update graph besides the gradients: sums over the tokens of the micro-batch. */
export const updateSums = [
  'pg_loss',
  'entropy_loss',
  'kl_loss',
  'entropy',
  'clipped',
  'clipped_lower',
  'minus_log_ratio',
] as const;

export const gradientName = (parameter: string): string => `grad:${parameter}`;
export const isGradient = (output: string): boolean => output.startsWith(gradientName(''));

/**
 * Inputs: packed tokens (packing.ts), rows [n'] (index of the predicting packed token), targets [n']. Outputs: logprob,
 * entropy [n'].
 */
export function scoreGraph(network: Network, shape: PackedShape): Graph {
  const g = new Graph('score', shape.lowering);
  const chunks = tokenChunks(g, network, { ...shape, checkpointed: false }).chunks.map(chunk => chunk.statistics());
  const joined = (values: Value[]): Value =>
    values.length === 1 ? values[0] : g.emit('Concat', values, 'float32', ['n'], { axis: 0 });
  g.output('logprob', joined(chunks.map(({ logprob, entropy }) => following(g, logprob, sumAll(g, entropy)))));
  g.output('entropy', joined(chunks.map(({ entropy }) => entropy)));
  return g;
}

/**
 * Inputs as in the score graph. Outputs: logprob, entropy, rank [n'] (1 for the most likely token), top_ids and
 * top_logprobs [n', top], most likely first.
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

/** The surrogate and the additional terms of the loss. */
export interface LossTerms {
  mode: NonNullable<PolicyLossOptions['policy_loss']>['loss_mode'];
  kl: PolicyLossOptions['kl_loss_type'] | null;
  entropy: boolean;
}

/**
 * Inputs of the score graph, plus: old_logprob, advantage, weight [n'], ref_logprob if there is a KL term, memberships
 * [r, n'] for GSPO (batch-feeds.ts), and the loss scalars. A token's weight is its share under loss_agg_mode, so the
 * sum over micro-batches is the loss of the mini-batch. Outputs: one gradient per trained parameter, updateSums.
 */
export function updateGraph(network: Network, shape: PackedShape, terms: LossTerms): Graph {
  const g = new Graph('update', shape.lowering);
  const { chunks, parameters, split } = tokenChunks(g, network, shape);
  const vector = (name: string): Value[] => split(g.input(name, 'float32', ['n']), name);
  const old = vector('old_logprob');
  const advantage = vector('advantage');
  const weight = vector('weight');
  const reference = terms.kl && vector('ref_logprob');
  const [clipLow, clipHigh, clipC, entropyCoeff, klCoef] = lossScalars.map(name => g.input(name, 'float32', []));
  const bounds: ClipBounds = {
    low: sub(g, g.scalar(1), clipLow),
    high: add(g, g.scalar(1), clipHigh),
    ceiling: clipC,
  };
  const flag = (condition: Value): Value => sumAll(g, toFloat(g, condition));
  // GSPO's ratios need all log-probs before the first gradient, so with several chunks the logits are computed twice.
  const memberships = terms.mode === 'gspo' ? g.input('memberships', 'float32', ['r', 'n']) : null;
  const ofSequences = (logprobs: Value[]): Value[] =>
    memberships ? sequenceLogRatios(g, memberships, logprobs, old, split) : [];
  const ahead = memberships && chunks.length > 1 ? ofSequences(chunks.map(c => c.statistics().logprob)) : null;

  const parts = chunks.map((chunk, i) => {
    const { logprob, entropy } = chunk.statistics(ahead?.[i]);
    const entropySum = sumAll(g, entropy);
    chunk.readBeforeGradient(entropySum);
    const tokens = { logprob, old: old[i], advantage: advantage[i] };
    const surrogate = surrogates[terms.mode](g, tokens, bounds, () => (ahead ?? ofSequences([logprob]))[i]);
    const weighted = (x: Value): Value => sumAll(g, mul(g, x, weight[i]));
    const policyLoss = weighted(surrogate.loss);
    const entropyLoss = weighted(entropy);
    const klLoss = terms.kl && reference ? weighted(klPenalty(g, logprob, reference[i], terms.kl)) : g.scalar(0);
    let total = policyLoss;
    if (terms.entropy) total = sub(g, total, mul(g, entropyCoeff, entropyLoss));
    if (terms.kl) total = add(g, total, mul(g, klCoef, klLoss));
    const sums: Record<(typeof updateSums)[number], Value> = {
      pg_loss: policyLoss,
      entropy_loss: entropyLoss,
      kl_loss: klLoss,
      entropy: entropySum,
      clipped: flag(surrogate.clipped),
      clipped_lower: surrogate.clippedLower,
      minus_log_ratio: neg(g, sumAll(g, surrogate.logRatio)),
    };
    return { total, sums };
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

/** Cross-entropy of the targets, weighted by `weight` [n']. Outputs: one gradient per trained parameter, loss. */
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
 * Chunks of new tokens over cached keys and values (attention.ts). Inputs: packed tokens (packing.ts), rows [r] (tokens
 * whose logits are needed), past keys and values. Outputs: logits [r, vocab]; key.i and value.i of the new tokens [n,
 * kvHeads·headSize], or of all slots of the chunk if the cache is on a device.
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

/** KL(π‖π_ref) per token from log-probs, d = lp − ref (Schulman's k1, k2, k3; verl's kl_penalty with its clamps). */
function klPenalty(g: Graph, logprob: Value, reference: Value, type: PolicyLossOptions['kl_loss_type']): Value {
  const d = sub(g, logprob, reference);
  switch (type) {
    case 'kl':
    case 'k1':
      return d;
    case 'abs':
      return abs(g, d);
    case 'mse':
    case 'k2':
      return scale(g, mul(g, d, d), 0.5);
    case 'low_var_kl':
    case 'k3': {
      const back = clip(g, neg(g, d), g.scalar(-20), g.scalar(20));
      return clip(g, sub(g, sub(g, exp(g, back), back), g.scalar(1)), g.scalar(-10), g.scalar(10));
    }
  }
}

/** The tokens of a chunk, [n] each. */
interface SurrogateTokens {
  logprob: Value;
  old: Value;
  advantage: Value;
}

/**
 * Scalar bounds: `low` and `high` of the ratio, `ceiling` of the loss at negative advantages as a multiple of the
 * advantage.
 */
interface ClipBounds {
  low: Value;
  high: Value;
  ceiling: Value;
}

interface Surrogate {
  /** Loss and log-ratio of each token, and whether the clip took effect. */
  loss: Value;
  logRatio: Value;
  clipped: Value;
  /** Number of tokens bounded by the dual clip. */
  clippedLower: Value;
}

type MakeSurrogate = (g: Graph, tokens: SurrogateTokens, bounds: ClipBounds, ofSequence: () => Value) => Surrogate;

/** The losses of algorithms/clipped-surrogate.ts, gspo.ts and cispo.ts. */
const surrogates: Record<LossTerms['mode'], MakeSurrogate> = {
  vanilla(g, { logprob, old, advantage }, bounds) {
    const logRatio = clip(g, sub(g, logprob, old), g.scalar(-20), g.scalar(20));
    const { loss: pessimistic, clipped } = pessimisticLoss(g, exp(g, logRatio), advantage, bounds);
    const ceiling = neg(g, mul(g, advantage, bounds.ceiling));
    const negative = compare(g, 'Less', advantage, g.scalar(0));
    return {
      loss: select(g, negative, minimum(g, pessimistic, ceiling), pessimistic),
      logRatio,
      clipped,
      clippedLower: sumAll(g, mul(g, toFloat(g, compare(g, 'Less', ceiling, pessimistic)), toFloat(g, negative))),
    };
  },
  gspo(g, { logprob, old, advantage }, bounds, ofSequence) {
    // The ratio has the sequence's value; its gradient flows through the token's log-prob only.
    const own = sub(g, logprob, detached(g, logprob));
    const ratio = exp(g, minimum(g, add(g, own, ofSequence()), g.scalar(largestLogRatio)));
    return {
      ...pessimisticLoss(g, ratio, advantage, bounds),
      logRatio: sub(g, logprob, old),
      clippedLower: g.scalar(0),
    };
  },
  cispo(g, { logprob, old, advantage }, bounds) {
    const logRatio = clip(g, sub(g, logprob, old), g.scalar(-20), g.scalar(20));
    const ratio = exp(g, logRatio);
    const weight = detached(g, clip(g, ratio, bounds.low, bounds.high));
    return {
      loss: neg(g, mul(g, mul(g, weight, advantage), logprob)),
      logRatio,
      clipped: compare(g, 'Greater', abs(g, sub(g, ratio, weight)), g.scalar(0)),
      clippedLower: g.scalar(0),
    };
  },
};

/** Returns the larger of the losses with the plain and the clipped ratio. */
function pessimisticLoss(
  g: Graph,
  ratio: Value,
  advantage: Value,
  { low, high }: ClipBounds,
): Pick<Surrogate, 'loss' | 'clipped'> {
  const plain = neg(g, mul(g, advantage, ratio));
  const bounded = neg(g, mul(g, advantage, clip(g, ratio, low, high)));
  return { loss: maximum(g, plain, bounded), clipped: compare(g, 'Greater', bounded, plain) };
}

/**
 * Returns the mean log-ratio of each token's sequence, without gradient, in the same chunks as the log-probs;
 * memberships as in batch-feeds.ts.
 */
function sequenceLogRatios(
  g: Graph,
  memberships: Value,
  logprobs: readonly Value[],
  old: readonly Value[],
  split: (vector: Value, stem: string) => Value[],
): Value[] {
  const ratios = logprobs.map((logprob, i) => sub(g, logprob, old[i]));
  const all = ratios.length === 1 ? ratios[0] : g.emit('Concat', ratios, 'float32', ['n'], { axis: 0 });
  const sums = matmul(g, memberships, reshape(g, all, ['n', 1]));
  const means = matmul(g, memberships, sums, { transA: true });
  return split(detached(g, reshape(g, means, ['n'])), 'sequence');
}

interface TokenChunk {
  /**
   * Returns logits [chunk's tokens, vocab] divided by the temperature, and the targets; computed after the vector
   * `after`, if given.
   */
  logits(after?: Value): { logits: Value; targets: Value };
  /**
   * Returns the log-prob of each target and the entropy of its distribution, [chunk's tokens]; computed after the
   * vector `after`, if given.
   */
  statistics(after?: Value): { logprob: Value; entropy: Value };
  /**
   * Makes the chunk's gradient wait for a scalar computed from its logits; otherwise all chunks' logits would be kept
   * until it is computed.
   */
  readBeforeGradient(value: Value): void;
}

/** Returns the hidden states of packed tokens, [n, hidden], and the parameters used. */
export function packedHidden(
  g: Graph,
  { config, plan, maxPositions }: Network,
  { shared, checkpointed }: Pick<PackedShape, 'shared' | 'checkpointed'>,
): { hidden: Value; parameters: DecoderParameters } {
  const parameters = new DecoderParameters(g, plan);
  const ids = g.input('ids', 'int64', ['tokens']);
  const positions = g.input('positions', 'int64', ['tokens']);
  const tokens = { ids, positions, maxPositions, checkpointed };
  return { hidden: decoderHidden(g, config, parameters, tokens, packedAttention(g, config, shared)), parameters };
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
  // Scaling the hidden states is equivalent to scaling the logits, with fewer numbers.
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

/** Outputs the gradients in reverse parameter order, because those of the last layers are available first. */
export function outputGradients(g: Graph, loss: Value, { trained, gradientScale }: DecoderParameters): void {
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
