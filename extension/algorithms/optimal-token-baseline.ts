// Optimal token baseline: the return of a token minus a baseline per token, the mean return of the group's sequences at the
// same number of sampled tokens, weighted by an estimate of how much noise each sequence has added to the gradient so far.
// The noise of a token is the squared norm of its gradient with respect to the logits, 1 − 2π + Σπ², where π is the
// probability of the sampled token and the sum runs over the vocabulary. This is verl's estimator
// `tir_optimal_token_baseline`, for several turns: sequences are aligned by their sampled tokens.
import { membersByGroup } from './group-statistics';

/** One sequence; all arrays have one entry per token. */
export interface NoisySequence {
  rewards: ArrayLike<number>;
  /** Log-prob of the sampled token under the policy, in nats. */
  logprobs: ArrayLike<number>;
  /** Sum over the vocabulary of the squared probabilities at the token, from 0 to 1. */
  squares: ArrayLike<number>;
  mask: Uint8Array;
}

/**
 * Returns one advantage per token, 0 where mask = 0. A sequence that is alone in its group has no baseline, nor has the
 * longest sequence of a group beyond the end of the second longest. `groups` contains the group of each sequence.
 */
export function optimalTokenBaselineAdvantages(
  sequences: readonly NoisySequence[],
  groups: ArrayLike<number>,
): Float32Array[] {
  const sampled = sequences.map(({ mask }) => Array.from(mask.keys()).filter(token => mask[token] === 1));
  const returns = sequences.map(({ rewards }, row) => returnsToGo(rewards, sampled[row]));
  const noise = sequences.map(({ logprobs, squares }, row) => {
    let sum = 0;
    return sampled[row].map(token => (sum += 1 - 2 * Math.exp(logprobs[token]) + squares[token]));
  });
  const advantages = sequences.map(({ mask }) => new Float32Array(mask.length));
  for (const members of membersByGroup(groups).values()) {
    const rows = members.filter(row => sampled[row].length > 0);
    const longest = rows.map(row => sampled[row].length).toSorted((a, b) => b - a);
    const shared = longest[1] ?? 0; // from here on, at most one sequence has tokens
    const baselines = Array.from({ length: shared }, (_, k) => weightedMean(rows, returns, noise, k));
    for (const row of rows)
      sampled[row].forEach((token, k) => (advantages[row][token] = returns[row][k] - (baselines[k] ?? 0)));
  }
  return advantages;
}

/** Sums of the rewards from each sampled token on. */
function returnsToGo(rewards: ArrayLike<number>, sampled: readonly number[]): number[] {
  let sum = 0;
  return sampled
    .toReversed()
    .map(token => (sum += rewards[token]))
    .reverse();
}

/** Mean of the returns at the k-th sampled token, weighted by noise; sequences without such a token do not count. */
function weightedMean(
  rows: readonly number[],
  returns: readonly number[][],
  noise: readonly number[][],
  k: number,
): number {
  let [weighted, weights] = [0, 0];
  for (const row of rows) {
    if (k >= noise[row].length) continue;
    weighted += returns[row][k] * noise[row][k];
    weights += noise[row][k];
  }
  return weighted / (weights + 1e-8);
}
