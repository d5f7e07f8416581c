// Bi-level advantage estimation (VAGEN, Wang et al., 2025): first over turns, discounted by `high_level_gamma`, then over the tokens
// inside each turn, whose last token gets the turn's estimated return as its reward.
// Turn ends are given, not guessed from rewards that are not zero: a turn with reward 0 is a turn too.
import { withReturns, type AdvantagesAndReturns, type GaeOptions, type ValuedSequence } from './gae';

/** A sequence whose turns end at the positions `turnEnds` (ascending, each a sampled token that carries its turn's reward). */
export interface TurnSequence extends ValuedSequence {
  turnEnds: readonly number[];
}

export interface BiLevelGaeOptions extends GaeOptions {
  high_level_gamma: number;
}

/** Advantages whitened over all sampled tokens of the batch, and the critic's returns. */
export function biLevelGaeAdvantages(
  sequences: readonly TurnSequence[],
  options: BiLevelGaeOptions,
): AdvantagesAndReturns {
  return withReturns(
    sequences,
    sequences.map(sequence => biLevelAdvantages(sequence, options)),
  );
}

/** Advantages of one sequence before whitening; 0 where no token was sampled. */
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

/** Estimated return of each turn, keyed by the position of its end. */
function highLevelReturns(
  { rewards, values, turnEnds }: TurnSequence,
  { lam, high_level_gamma }: BiLevelGaeOptions,
): Map<number, number> {
  const returns = new Map<number, number>();
  let nextValue = 0;
  let running = 0;
  for (const end of turnEnds.toReversed()) {
    running = rewards[end] + high_level_gamma * nextValue - values[end] + high_level_gamma * lam * running;
    nextValue = values[end];
    returns.set(end, running + values[end]);
  }
  return returns;
}
