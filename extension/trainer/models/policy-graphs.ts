// The graphs of a policy, each built from the one decoder: score (log-probs and entropy of given tokens), update (policy loss and
// all gradients), imitate (cross-entropy for warm starts) and generate (one chunk of tokens over a cache). Weights are inputs of all
// of them, so that an update is seen by the next generation without a copy.
// The policy loss is PPO's clipped surrogate with asymmetric and dual clipping (StarPO, RAGEN §3; verl's compute_policy_loss).
import { gradients } from '../engine/autodiff';
import { Graph } from '../engine/graph';
import type { Value } from '../engine/graph';
import { tokenLogProbs } from '../engine/layer-ops';
import {
  abs,
  add,
  clip,
  compare,
  exp,
  gatherRows,
  maximum,
  minimum,
  mul,
  neg,
  scale,
  select,
  sub,
  sumAll,
  toFloat,
} from '../engine/ops';
import type { PolicyLossOptions } from '../engine/engine';
import { cachedAttention, causalAttention } from './attention';
import { decoderHidden, decoderLogits, parameterInputs } from './decoder';
import type { Parameters } from './decoder';
import type { DecoderConfig } from './decoder-config';

/** Names of the scalar inputs of the update graph. */
export const lossScalars = ['clip_low', 'clip_high', 'clip_c', 'entropy_coeff', 'kl_coef'] as const;
/** Sums over the tokens of the micro-batch that the update graph puts out besides the gradients. */
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

/** Inputs: ids, positions [b, t], mask [t, t], rows [n] (flat position that predicts), targets [n]. Outputs: logprob, entropy [n]. */
export function scoreGraph(c: DecoderConfig): Graph {
  const g = new Graph('score');
  const { logprob, entropy } = tokenStatistics(g, c, parameterInputs(g, c));
  g.output('logprob', logprob);
  g.output('entropy', entropy);
  return g;
}

/**
 * Adds to the score graph's inputs: old_logprob, ref_logprob, advantage, weight [n] and the loss scalars. A token's weight is its
 * share under loss_agg_mode, so that the sum over micro-batches is the loss of the mini-batch. Outputs: updateSums, one gradient a parameter.
 */
export function updateGraph(c: DecoderConfig, klType: PolicyLossOptions['kl_loss_type']): Graph {
  const g = new Graph('update');
  const parameters = parameterInputs(g, c);
  const { logprob, entropy } = tokenStatistics(g, c, parameters);
  const vector = (name: string): Value => g.input(name, 'float32', ['n']);
  const old = vector('old_logprob');
  const reference = vector('ref_logprob');
  const advantage = vector('advantage');
  const weight = vector('weight');
  const [clipLow, clipHigh, clipC, entropyCoeff, klCoef] = lossScalars.map(name => g.input(name, 'float32', []));

  const one = g.scalar(1);
  const logRatio = clip(g, sub(g, logprob, old), g.scalar(-20), g.scalar(20));
  const ratio = exp(g, logRatio);
  const plain = neg(g, mul(g, advantage, ratio));
  const clipped = neg(g, mul(g, advantage, clip(g, ratio, sub(g, one, clipLow), add(g, one, clipHigh))));
  const surrogate = maximum(g, plain, clipped);
  const ceiling = neg(g, mul(g, advantage, clipC));
  const negative = compare(g, 'Less', advantage, g.scalar(0));
  const loss = select(g, negative, minimum(g, surrogate, ceiling), surrogate);

  const weighted = (x: Value): Value => sumAll(g, mul(g, x, weight));
  const policyLoss = weighted(loss);
  const entropyLoss = weighted(entropy);
  const klLoss = weighted(klPenalty(g, logprob, reference, klType));
  const total = add(g, sub(g, policyLoss, mul(g, entropyCoeff, entropyLoss)), mul(g, klCoef, klLoss));
  const flag = (condition: Value): Value => sumAll(g, toFloat(g, condition));
  const sums: Record<(typeof updateSums)[number], Value> = {
    pg_loss: policyLoss,
    entropy_loss: entropyLoss,
    kl_loss: klLoss,
    entropy: sumAll(g, entropy),
    clipped: flag(compare(g, 'Greater', clipped, plain)),
    clipped_lower: sumAll(g, mul(g, toFloat(g, compare(g, 'Less', ceiling, surrogate)), toFloat(g, negative))),
    minus_log_ratio: neg(g, sumAll(g, logRatio)),
  };
  for (const name of updateSums) g.output(name, sums[name]);
  outputGradients(g, total, parameters);
  return g;
}

/** Cross-entropy of the targets, weighted by `weight` [n]. Outputs: loss and one gradient a parameter. */
export function imitateGraph(c: DecoderConfig): Graph {
  const g = new Graph('imitate');
  const parameters = parameterInputs(g, c);
  const { logprob } = tokenStatistics(g, c, parameters);
  const loss = neg(g, sumAll(g, mul(g, logprob, g.input('weight', 'float32', ['n']))));
  g.output('loss', loss);
  outputGradients(g, loss, parameters);
  return g;
}

/**
 * One chunk of new tokens over cached keys and values. Inputs: ids, positions [b, t], past_mask [b, 1, 1, 1, s], new_mask [t, t],
 * rows [b] (flat position whose logits are wanted), past key.i and value.i [b, kvHeads, s, headSize].
 * Outputs: logits [b, vocab], key.i and value.i of the new tokens.
 */
export function generateGraph(c: DecoderConfig): Graph {
  const g = new Graph('generate');
  const parameters = parameterInputs(g, c);
  const ids = g.input('ids', 'int64', ['b', 't']);
  const positions = g.input('positions', 'int64', ['b', 't']);
  const rows = g.input('rows', 'int64', ['b']);
  const pastMask = g.input('past_mask', 'float32', ['b', 1, 1, 1, 's']);
  const newMask = g.input('new_mask', 'float32', ['t', 't']);
  const layers = Array.from({ length: c.layers }, (_, i) => i);
  const past = (stem: string): Value[] =>
    layers.map(i => g.input(`${stem}.${i}`, 'float32', ['b', c.kvHeads, 's', c.headSize]));
  const attend = cachedAttention(g, c, { keys: past('past_key'), values: past('past_value'), pastMask, newMask });
  const hidden = decoderHidden(g, c, parameters, { ids, positions, flat: 'b*t' }, attend);
  g.output('logits', decoderLogits(g, c, parameters, gatherRows(g, hidden, rows)));
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

function tokenStatistics(g: Graph, c: DecoderConfig, parameters: Parameters): { logprob: Value; entropy: Value } {
  const ids = g.input('ids', 'int64', ['b', 't']);
  const positions = g.input('positions', 'int64', ['b', 't']);
  const mask = g.input('mask', 'float32', ['t', 't']);
  const rows = g.input('rows', 'int64', ['n']);
  const targets = g.input('targets', 'int64', ['n']);
  const inverseTemperature = g.input('inverse_temperature', 'float32', []);
  const hidden = decoderHidden(g, c, parameters, { ids, positions, flat: 'b*t' }, causalAttention(g, c, mask));
  const logits = decoderLogits(g, c, parameters, gatherRows(g, hidden, rows));
  return tokenLogProbs(g, mul(g, logits, inverseTemperature), targets);
}

function outputGradients(g: Graph, loss: Value, parameters: Parameters): void {
  const names = [...parameters.keys()];
  gradients(g, loss, [...parameters.values()]).forEach((dx, i) => g.output(gradientName(names[i]), dx));
}
