// GAE over the turns of an episode (VAGEN's `turn_wise_gae` and `no_concat_gae`): a turn is one action. Its value is the
// critic's at its first or last trained token, its reward the sum of its token rewards, and all its tokens have its
// advantage. The critic is trained at this one token of each turn; its other tokens have no target (VAGEN marks them by
// -100). Whether turns are one sample or several does not matter: the caller joins the samples of an episode.
import type { AdvantagesAndReturns, GaeOptions } from './gae';
import type { TurnSequence } from './bi-level-gae';
import { whitenTokens } from './token-sequences';

/** `gamma` and `lam` apply between turns. `value` is the token whose value represents a turn. */
export interface TurnGaeOptions extends GaeOptions {
  value: 'first' | 'last';
}

/** Advantages, the critic's targets, and a mask of the tokens that have a target. */
export interface TurnGae extends AdvantagesAndReturns {
  targets: Uint8Array[];
}

/**
 * Returns advantages that are whitened over all tokens of the masks and 0 elsewhere. A turn without such tokens
 * passes its reward on to earlier turns, with value 0.
 */
export function turnGaeAdvantages(sequences: readonly TurnSequence[], options: TurnGaeOptions): TurnGae {
  const rows = sequences.map(sequence => turnGae(sequence, options));
  const advantages = rows.map(row => row.advantages);
  whitenTokens(
    advantages,
    sequences.map(({ mask }) => mask),
  );
  return { advantages, returns: rows.map(row => row.returns), targets: rows.map(row => row.targets) };
}

/** Returns the unwhitened advantages of one sequence, its returns and their mask. */
export function turnGae(
  { rewards, values, mask, turnEnds }: TurnSequence,
  { gamma, lam, value }: TurnGaeOptions,
): { advantages: Float32Array; returns: Float32Array; targets: Uint8Array } {
  const advantages = new Float32Array(rewards.length);
  const returns = new Float32Array(rewards.length);
  const targets = new Uint8Array(rewards.length);
  let nextValue = 0;
  let running = 0;
  for (let turn = turnEnds.length - 1; turn >= 0; turn--) {
    const from = turn === 0 ? 0 : turnEnds[turn - 1] + 1;
    const to = turnEnds[turn] + 1;
    let reward = 0;
    for (let token = from; token < to; token++) reward += rewards[token];
    const within = value === 'first' ? mask.indexOf(1, from) : mask.lastIndexOf(1, to - 1);
    const anchor = within >= from && within < to ? within : -1;
    const own = anchor < 0 ? 0 : values[anchor];
    running = reward + gamma * nextValue - own + gamma * lam * running;
    nextValue = own;
    for (let token = from; token < to; token++) if (mask[token]) advantages[token] = running;
    if (anchor < 0) continue;
    returns[anchor] = running + own;
    targets[anchor] = 1;
  }
  return { advantages, returns, targets };
}
