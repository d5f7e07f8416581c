// Generalised advantage estimation (Schulman et al., 2016) over the sampled tokens of a multi-turn episode. As in verl,
// tokens that were not sampled are skipped: the next value and the running advantage are carried past them unchanged.
import { whitenTokens } from './token-sequences';

/** One sequence with the critic's values. All arrays have the same length. */
export interface ValuedSequence {
  rewards: Float32Array;
  values: Float32Array;
  mask: Uint8Array;
}

export interface GaeOptions {
  gamma: number;
  lam: number;
}

/** Advantages for the policy and returns for the critic, per sequence and token. */
export interface AdvantagesAndReturns {
  advantages: Float32Array[];
  returns: Float32Array[];
}

/**
 * Returns the unwhitened advantages of one sequence. A token that was not sampled has the running advantage of the
 * tokens after it.
 */
export function generalizedAdvantages(
  { rewards, values, mask }: ValuedSequence,
  { gamma, lam }: GaeOptions,
): Float32Array {
  const advantages = new Float32Array(rewards.length);
  let nextValue = 0;
  let running = 0;
  for (let token = rewards.length - 1; token >= 0; token--) {
    if (mask[token]) {
      running = rewards[token] + gamma * nextValue - values[token] + gamma * lam * running;
      nextValue = values[token];
    }
    advantages[token] = running;
  }
  return advantages;
}

/** Computes the returns (0 for tokens that were not sampled), then whitens the advantages in place. */
export function withReturns(sequences: readonly ValuedSequence[], advantages: Float32Array[]): AdvantagesAndReturns {
  const returns = sequences.map(({ values, mask }, row) =>
    Float32Array.from(values, (value, token) => (mask[token] ? advantages[row][token] + value : 0)),
  );
  whitenTokens(
    advantages,
    sequences.map(sequence => sequence.mask),
  );
  return { advantages, returns };
}
