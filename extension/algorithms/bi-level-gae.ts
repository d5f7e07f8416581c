// Bi-level advantage estimation (VAGEN, Wang et al., 2025): first GAE over turns with separate γ and λ, then GAE over
// the tokens of each turn. In the second GAE, the reward of a turn's last token is the turn's estimated return. The
// caller passes the turn ends, because the rewards do not show the end of a turn with reward 0. For comparison,
// `nonZeroRewards` finds turn ends as RAGEN does. If there are tokens after the last turn end, they form one more turn.
import { withReturns, type AdvantagesAndReturns, type GaeOptions, type ValuedSequence } from './gae';

/**
 * A sequence with its turn-end positions (`turnEnds`, ascending); the token at each position carries the reward of its
 * turn.
 */
export interface TurnSequence extends ValuedSequence {
  turnEnds: readonly number[];
}

/** `gamma` and `lam` apply between the tokens of a turn; the `high_level_*` values apply between turns. */
export interface BiLevelGaeOptions extends GaeOptions {
  high_level_gamma: number;
  /** Defaults to `lam`. */
  high_level_lam?: number;
  /**
   * Token at which the critic's value is taken as the value of the turn. `end` (RAGEN; the default): the last token of
   * the turn. `start` (VAGEN): the first token of the turn.
   */
  turn_value?: 'end' | 'start';
}

/** Returns advantages whitened over all sampled tokens of the batch, and the critic's returns. */
export function biLevelGaeAdvantages(
  sequences: readonly TurnSequence[],
  options: BiLevelGaeOptions,
): AdvantagesAndReturns {
  return withReturns(
    sequences,
    sequences.map(sequence => biLevelAdvantages(sequence, options)),
  );
}

/** Returns the unwhitened advantages of one sequence; 0 for tokens that were not sampled. */
export function biLevelAdvantages(sequence: TurnSequence, options: BiLevelGaeOptions): Float32Array {
  const { rewards, values, mask } = sequence;
  const { gamma, lam } = options;
  const turnReturns = highLevelReturns(sequence, options);
  const advantages = new Float32Array(rewards.length);
  let nextValue = 0;
  let running = 0;
  for (let token = rewards.length - 1; token >= 0; token--) {
    if (!mask[token]) continue;
    const turnReturn = turnReturns.get(token);
    if (turnReturn !== undefined) nextValue = running = 0;
    running = (turnReturn ?? rewards[token]) + gamma * nextValue - values[token] + gamma * lam * running;
    nextValue = values[token];
    advantages[token] = running;
  }
  return advantages;
}

/**
 * Returns the turn ends as RAGEN determines them: the positions with a nonzero reward. A turn with reward 0 is merged
 * into the next turn.
 */
export const nonZeroRewards = (rewards: ArrayLike<number>): number[] =>
  Array.from(rewards, (reward, position) => (reward !== 0 ? position : -1)).filter(position => position >= 0);

/** Returns the estimated return of each turn, keyed by the position of the turn end. */
function highLevelReturns(sequence: TurnSequence, options: BiLevelGaeOptions): Map<number, number> {
  const { rewards, values, turnEnds } = sequence;
  const { high_level_gamma: gamma, high_level_lam: lam = options.lam, turn_value = 'end' } = options;
  const positions = turn_value === 'end' ? turnEnds : turnStarts(sequence);
  const returns = new Map<number, number>();
  let nextValue = 0;
  let running = 0;
  for (let turn = turnEnds.length - 1; turn >= 0; turn--) {
    const value = values[positions[turn]];
    running = rewards[turnEnds[turn]] + gamma * nextValue - value + gamma * lam * running;
    nextValue = value;
    returns.set(turnEnds[turn], running + value);
  }
  return returns;
}

/** Returns the position of each turn's first sampled token, or of the turn end if no token of the turn was sampled. */
function turnStarts({ mask, turnEnds }: TurnSequence): number[] {
  return turnEnds.map((end, turn) => {
    const first = mask.indexOf(1, turn === 0 ? 0 : turnEnds[turn - 1] + 1);
    return first < 0 || first > end ? end : first;
  });
}
