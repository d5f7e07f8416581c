// Turn-level GRPO for per-turn rewards (`agent_proxy.use_turn_scores`). Like RAGEN's step-level GRPO, it compares the
// return of a turn with the returns of all turns in the rollouts of the same prompt. With one reward at the end of the
// episode and without discount, the result is almost that of GRPO. One difference remains: an episode contributes one
// value per turn to the moments of its group.
import type { GrpoOptions } from './grpo';
import { grpoAdvantages } from './grpo';

/** Per-turn rewards of each episode; one entry per episode. */
export interface TurnRewards {
  /** One array per episode, with the reward of each turn. */
  rewards: readonly ArrayLike<number>[];
  groups: ArrayLike<number>;
}

export interface TurnGrpoOptions extends GrpoOptions {
  /** Discount γ between turns. */
  high_level_gamma: number;
}

/**
 * Returns one advantage per turn of each episode. If a group has a single turn, the turn's raw return is its advantage.
 */
export function turnGrpoAdvantages({ rewards, groups }: TurnRewards, options: TurnGrpoOptions): Float32Array[] {
  const returns = rewards.map(turns => turnReturns(turns, options.high_level_gamma));
  const flat = grpoAdvantages(
    {
      scores: returns.flatMap(turns => Array.from(turns)),
      groups: returns.flatMap((turns, episode) => Array.from(turns, () => groups[episode])),
    },
    options,
  );
  let from = 0;
  return returns.map(({ length }) => flat.slice(from, (from += length)));
}

/** Returns the discounted return from each turn on. */
export function turnReturns(rewards: ArrayLike<number>, gamma: number): Float64Array {
  const returns = Float64Array.from(rewards);
  for (let turn = returns.length - 2; turn >= 0; turn--) returns[turn] += gamma * returns[turn + 1];
  return returns;
}

/**
 * Returns per-token advantages: every sampled token has the advantage of its turn, other tokens have 0. Turn n covers
 * the tokens after turn end n − 1, up to and including turn end n.
 */
export function spreadOverTurns(
  advantages: ArrayLike<number>,
  turnEnds: readonly number[],
  mask: Uint8Array,
): Float32Array {
  const spread = new Float32Array(mask.length);
  let from = 0;
  turnEnds.forEach((end, turn) => {
    for (let token = from; token <= end; token++) if (mask[token]) spread[token] = advantages[turn];
    from = end + 1;
  });
  return spread;
}
