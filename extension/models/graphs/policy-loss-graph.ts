// The policy loss as graph operations, used in training. The reference implementation is algorithms/policy-loss.ts.
// Names, options and bounds, which the two implementations share, are in algorithms/policy-loss-options.ts. A test
// compares the loss and gradient of the two implementations for every combination of options. Log-probs and entropies
// are given in chunks of tokens (policy-graphs.ts); the loss of a mini-batch is the sum over its chunks and
// micro-batches.
import {
  largestK3,
  largestLogRatio,
  largestSequenceLogRatio,
  selectsTokens,
  usesSequenceRatios,
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
  unary,
} from '../../engine/graph/ops';

/** Names of the scalar inputs of the update graph. */
const lossScalars = [
  'clip_low',
  'clip_high',
  'clip_c',
  'entropy_coeff',
  'kl_coef',
  'tau_pos',
  'tau_neg',
  'ppo_kl_coef',
] as const;
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
 * Scalar bounds. `low` and `high` bound the ratio; `logLow` and `logHigh` bound its logarithm in the mode `geo_mean`.
 * `ceiling` is used only by the loss mode `vanilla`. It bounds the loss of each token with a negative advantage: the loss is
 * at most `ceiling` times the absolute advantage. `tauPos` and `tauNeg` are SAPO's, `penalty` is KL-Cov's.
 */
interface ClipBounds {
  low: Value;
  high: Value;
  logLow: Value;
  logHigh: Value;
  ceiling: Value;
  tauPos: Value;
  tauNeg: Value;
  penalty: Value;
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
  /** 1 for the tokens that Clip-Cov and KL-Cov select, else 0; null for the other modes. */
  selected: Value[] | null;
  /** Matrix that assigns tokens to sequences; null if the loss does not depend on whole sequences. */
  memberships: Value | null;
}

/** Declares the inputs of the loss in a graph. */
export function lossInputs(g: Graph, terms: LossTerms, split: Split): LossInputs {
  const vector = (name: string): Value[] => split(g.input(name, 'float32', ['n']), name);
  const old = vector('old_logprob');
  const advantage = vector('advantage');
  const weight = vector('weight');
  const reference = terms.kl && vector('ref_logprob');
  const [clipLow, clipHigh, clipC, entropyCoeff, klCoef, tauPos, tauNeg, penalty] = lossScalars.map(name =>
    g.input(name, 'float32', []),
  );
  const bounds: ClipBounds = {
    low: sub(g, g.scalar(1), clipLow),
    high: add(g, g.scalar(1), clipHigh),
    logLow: neg(g, clipLow),
    logHigh: clipHigh,
    ceiling: clipC,
    tauPos,
    tauNeg,
    penalty,
  };
  const selected = selectsTokens(terms.mode) ? vector('selected') : null;
  const memberships = usesSequenceRatios(terms.mode) ? g.input('memberships', 'float32', ['r', 'n']) : null;
  return { old, advantage, weight, reference, bounds, entropyCoeff, klCoef, selected, memberships };
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
  const { old, advantage, weight, reference, bounds, entropyCoeff, klCoef, selected } = inputs;
  const flag = (condition: Value): Value => sumAll(g, toFloat(g, condition));
  const tokens = { logprob, old: old[i], advantage: advantage[i], selected: selected?.[i] ?? g.scalar(0) };
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
 * Returns the mean log-ratio (in the mode `geo_mean`, the mean clipped log-ratio) of each token's sequence, without
 * gradient, in the same chunks as the log-probs. `memberships` is the matrix that batch-feeds.ts describes. Empty if the
 * loss does not depend on whole sequences.
 */
export function sequenceLogRatios(
  g: Graph,
  { mode }: LossTerms,
  { memberships, old, advantage, bounds }: LossInputs,
  logprobs: readonly Value[],
  split: Split,
): Value[] {
  if (!memberships) return [];
  const ratios = logprobs.map((logprob, i) => {
    const logRatio = sub(g, logprob, old[i]);
    return mode === 'geo_mean' ? clippedLogRatio(g, logRatio, advantage[i], bounds) : logRatio;
  });
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
      const back = boundedDifference(g, neg(g, d));
      return clip(g, sub(g, sub(g, exp(g, back), back), g.scalar(1)), g.scalar(-largestK3), g.scalar(largestK3));
    }
  }
}

/** Vectors [n] over the tokens of a chunk. */
interface SurrogateTokens {
  logprob: Value;
  old: Value;
  advantage: Value;
  selected: Value;
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

/** The losses of algorithms/clipped-surrogate.ts, gspo.ts, cispo.ts, sapo.ts, gmpo.ts and covariance.ts, one per mode. */
const surrogates: Record<LossMode, MakeSurrogate> = {
  vanilla(g, { logprob, old, advantage }, bounds) {
    const logRatio = boundedDifference(g, sub(g, logprob, old));
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
    const logRatio = boundedDifference(g, sub(g, logprob, old));
    const ratio = exp(g, logRatio);
    const weight = detached(g, clip(g, ratio, bounds.low, bounds.high));
    return {
      loss: neg(g, mul(g, mul(g, weight, advantage), logprob)),
      logRatio,
      clipped: compare(g, 'Greater', abs(g, sub(g, ratio, weight)), g.scalar(0)),
      clippedLower: g.scalar(0),
    };
  },
  sapo(g, { logprob, old, advantage }, { tauPos, tauNeg }) {
    // The value and the slope of the gate are computed without gradient; `own` has the value 0 and the gradient 1.
    const own = sub(g, logprob, detached(g, logprob));
    const difference = sub(g, detached(g, logprob), old);
    const logRatio = boundedDifference(g, difference);
    const ratio = exp(g, logRatio);
    const positive = toFloat(g, compare(g, 'Greater', advantage, g.scalar(0)));
    const tau = add(g, tauNeg, mul(g, positive, sub(g, tauPos, tauNeg)));
    const gate = unary(g, 'Sigmoid', mul(g, tau, sub(g, ratio, g.scalar(1))));
    const value = mul(g, mul(g, gate, advantage), unary(g, 'Reciprocal', tau));
    const inside = toFloat(g, compare(g, 'LessOrEqual', abs(g, difference), g.scalar(largestLogRatio)));
    const slope = mul(g, mul(g, gate, sub(g, g.scalar(1), gate)), mul(g, ratio, advantage));
    const moved = mul(g, mul(g, slope, inside), own);
    const never = compare(g, 'Less', ratio, g.scalar(0));
    return { loss: scale(g, add(g, value, moved), -4), logRatio, clipped: never, clippedLower: g.scalar(0) };
  },
  geo_mean(g, { logprob, old, advantage }, bounds, ofSequence) {
    // As in GSPO, the value is that of the sequence, and the gradient depends only on the token's own log-prob.
    const logRatio = sub(g, logprob, old);
    const held = clippedLogRatio(g, logRatio, advantage, bounds);
    const ratio = exp(g, add(g, sub(g, held, detached(g, held)), ofSequence()));
    const bounded = clip(g, logRatio, bounds.logLow, bounds.logHigh);
    const beyond = toFloat(g, compare(g, 'Greater', abs(g, sub(g, logRatio, bounded)), g.scalar(0)));
    const above = mul(g, beyond, toFloat(g, compare(g, 'Greater', advantage, g.scalar(0))));
    const below = mul(g, beyond, toFloat(g, compare(g, 'Less', advantage, g.scalar(0))));
    return {
      loss: neg(g, mul(g, advantage, ratio)),
      logRatio,
      clipped: compare(g, 'Greater', above, g.scalar(0)),
      clippedLower: sumAll(g, below),
    };
  },
  clip_cov(g, { logprob, old, advantage, selected }, bounds) {
    const logRatio = boundedDifference(g, sub(g, logprob, old));
    const { loss } = pessimisticLoss(g, exp(g, logRatio), advantage, bounds);
    return {
      loss: mul(g, loss, sub(g, g.scalar(1), selected)),
      logRatio,
      clipped: compare(g, 'Greater', selected, g.scalar(0)),
      clippedLower: g.scalar(0),
    };
  },
  kl_cov(g, { logprob, old, advantage, selected }, { penalty }) {
    const difference = sub(g, logprob, old);
    const logRatio = boundedDifference(g, difference);
    const plain = neg(g, mul(g, advantage, exp(g, logRatio)));
    return {
      loss: add(g, plain, mul(g, mul(g, selected, penalty), abs(g, difference))),
      logRatio,
      clipped: compare(g, 'Greater', selected, g.scalar(0)),
      clippedLower: g.scalar(0),
    };
  },
};

/** Returns a difference of log-probs within ±20. */
const boundedDifference = (g: Graph, difference: Value): Value =>
  clip(g, difference, g.scalar(-largestLogRatio), g.scalar(largestLogRatio));

/** Returns GMPO's clipped log-ratio per token: only the bound that limits the gain applies; 0 if the advantage is 0. */
function clippedLogRatio(g: Graph, logRatio: Value, advantage: Value, { logLow, logHigh }: ClipBounds): Value {
  const zero = g.scalar(0);
  const atMost = minimum(g, logRatio, logHigh);
  const atLeast = maximum(g, logRatio, logLow);
  const signed = select(g, compare(g, 'Greater', advantage, zero), atMost, atLeast);
  return mul(g, signed, toFloat(g, compare(g, 'Greater', abs(g, advantage), zero)));
}

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
