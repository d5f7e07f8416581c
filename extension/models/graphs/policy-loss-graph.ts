// The policy loss as graph operations, used in training. The reference implementation is algorithms/policy-loss.ts.
// Names, options and bounds, which the two implementations share, are in algorithms/policy-loss-options.ts. A test
// compares the loss and gradient of the two implementations for every combination of options. Log-probs and entropies
// are given in chunks of tokens (policy-graphs.ts); the loss of a mini-batch is the sum over its chunks and
// micro-batches.
import {
  largestK3,
  largestLogRatio,
  largestSequenceLogRatio,
  type KlKind,
  type LossMode,
} from '../../algorithms/policy-loss-options';
import { detached } from '../../engine/graph/autodiff';
import type { Graph, Value } from '../../engine/graph/graph';
import { matmul } from '../../engine/graph/layer-ops';
import {
  abs,
  add,
  clip,
  compare,
  exp,
  maximum,
  minimum,
  mul,
  neg,
  reshape,
  scale,
  select,
  sub,
  sumAll,
  toFloat,
} from '../../engine/graph/ops';

/** Names of the scalar inputs of the update graph. */
const lossScalars = ['clip_low', 'clip_high', 'clip_c', 'entropy_coeff', 'kl_coef'] as const;
/** Outputs of the update graph other than gradients: sums over the tokens of the micro-batch. */
export const updateSums = [
  'pg_loss',
  'entropy_loss',
  'kl_loss',
  'entropy',
  'clipped',
  'clipped_lower',
  'minus_log_ratio',
] as const;

/** The terms of the loss: the loss mode, and the presence of additional terms. */
export interface LossTerms {
  mode: LossMode;
  kl: KlKind | null;
  entropy: boolean;
}

/** Splits a vector [n] into the same chunks as the log-probs. */
type Split = (vector: Value, stem: string) => Value[];

/**
 * Scalar bounds. `low` and `high` bound the ratio. `ceiling` is used only by the loss mode `vanilla`. It bounds the
 * loss of each token with a negative advantage: the loss is at most `ceiling` times the absolute advantage.
 */
interface ClipBounds {
  low: Value;
  high: Value;
  ceiling: Value;
}

/** Inputs of the loss other than log-probs and entropies; vectors are split into chunks. */
export interface LossInputs {
  old: Value[];
  advantage: Value[];
  weight: Value[];
  /** Log-probs of the reference policy; null if the loss has no KL term. */
  reference: Value[] | null;
  bounds: ClipBounds;
  entropyCoeff: Value;
  klCoef: Value;
  /** Matrix that assigns tokens to sequences; null unless the loss is GSPO. */
  memberships: Value | null;
}

/** Declares the inputs of the loss in a graph. */
export function lossInputs(g: Graph, terms: LossTerms, split: Split): LossInputs {
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
  const memberships = terms.mode === 'gspo' ? g.input('memberships', 'float32', ['r', 'n']) : null;
  return { old, advantage, weight, reference, bounds, entropyCoeff, klCoef, memberships };
}

/** Loss of a chunk, and the sums named in `updateSums`. */
export interface ChunkLoss {
  total: Value;
  sums: Record<(typeof updateSums)[number], Value>;
}

/**
 * Returns the loss of chunk `i` from the log-probs and entropies [n] of its tokens. `ofSequence` returns, for each
 * token of the chunk, the log-ratio of the token's sequence.
 */
export function chunkLoss(
  g: Graph,
  terms: LossTerms,
  inputs: LossInputs,
  i: number,
  { logprob, entropy, entropySum }: { logprob: Value; entropy: Value; entropySum: Value },
  ofSequence: () => Value,
): ChunkLoss {
  const { old, advantage, weight, reference, bounds, entropyCoeff, klCoef } = inputs;
  const flag = (condition: Value): Value => sumAll(g, toFloat(g, condition));
  const tokens = { logprob, old: old[i], advantage: advantage[i] };
  const surrogate = surrogates[terms.mode](g, tokens, bounds, ofSequence);
  const weighted = (x: Value): Value => sumAll(g, mul(g, x, weight[i]));
  const policyLoss = weighted(surrogate.loss);
  const entropyLoss = weighted(entropy);
  const klLoss = terms.kl && reference ? weighted(klPenalty(g, logprob, reference[i], terms.kl)) : g.scalar(0);
  let total = policyLoss;
  if (terms.entropy) total = sub(g, total, mul(g, entropyCoeff, entropyLoss));
  if (terms.kl) total = add(g, total, mul(g, klCoef, klLoss));
  return {
    total,
    sums: {
      pg_loss: policyLoss,
      entropy_loss: entropyLoss,
      kl_loss: klLoss,
      entropy: entropySum,
      clipped: flag(surrogate.clipped),
      clipped_lower: surrogate.clippedLower,
      minus_log_ratio: neg(g, sumAll(g, surrogate.logRatio)),
    },
  };
}

/**
 * Returns the mean log-ratio of each token's sequence, without gradient, in the same chunks as the log-probs.
 * `memberships` is the matrix that batch-feeds.ts describes. Empty if the loss is not GSPO.
 */
export function sequenceLogRatios(
  g: Graph,
  { memberships, old }: LossInputs,
  logprobs: readonly Value[],
  split: Split,
): Value[] {
  if (!memberships) return [];
  const ratios = logprobs.map((logprob, i) => sub(g, logprob, old[i]));
  const all = ratios.length === 1 ? ratios[0] : g.emit('Concat', ratios, 'float32', ['n'], { axis: 0 });
  const sums = matmul(g, memberships, reshape(g, all, ['n', 1]));
  const means = matmul(g, memberships, sums, { transA: true });
  return split(detached(g, reshape(g, means, ['n'])), 'sequence');
}

/**
 * Returns KL(π‖π_ref) per token from d = log-prob − reference log-prob (Schulman's k1, k2, k3; verl's kl_penalty with
 * its clamps).
 */
function klPenalty(g: Graph, logprob: Value, reference: Value, kind: KlKind): Value {
  const d = sub(g, logprob, reference);
  switch (kind) {
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
      const back = clip(g, neg(g, d), g.scalar(-largestLogRatio), g.scalar(largestLogRatio));
      return clip(g, sub(g, sub(g, exp(g, back), back), g.scalar(1)), g.scalar(-largestK3), g.scalar(largestK3));
    }
  }
}

/** Vectors [n] over the tokens of a chunk. */
interface SurrogateTokens {
  logprob: Value;
  old: Value;
  advantage: Value;
}

interface Surrogate {
  /** `loss` and `logRatio` have one entry per token. `clipped` marks the tokens at which the clip bound took effect. */
  loss: Value;
  logRatio: Value;
  clipped: Value;
  /** Number of tokens whose loss the dual clip has bounded. */
  clippedLower: Value;
}

type MakeSurrogate = (g: Graph, tokens: SurrogateTokens, bounds: ClipBounds, ofSequence: () => Value) => Surrogate;

/** The losses of algorithms/clipped-surrogate.ts, gspo.ts and cispo.ts, one per mode. */
const surrogates: Record<LossMode, MakeSurrogate> = {
  vanilla(g, { logprob, old, advantage }, bounds) {
    const logRatio = clip(g, sub(g, logprob, old), g.scalar(-largestLogRatio), g.scalar(largestLogRatio));
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
    // The value of `ratio` is the ratio of the token's sequence. The gradient of `ratio` depends only on the token's
    // own log-prob.
    const own = sub(g, logprob, detached(g, logprob));
    const ratio = exp(g, minimum(g, add(g, own, ofSequence()), g.scalar(largestSequenceLogRatio)));
    return {
      ...pessimisticLoss(g, ratio, advantage, bounds),
      logRatio: sub(g, logprob, old),
      clippedLower: g.scalar(0),
    };
  },
  cispo(g, { logprob, old, advantage }, bounds) {
    const logRatio = clip(g, sub(g, logprob, old), g.scalar(-largestLogRatio), g.scalar(largestLogRatio));
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

/** Returns the larger of two losses: the loss with the unclipped ratio, and the loss with the clipped ratio. */
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
