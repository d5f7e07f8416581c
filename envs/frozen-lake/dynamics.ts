// Transition probabilities of a move, as in Gymnasium. On slippery ice, the intended direction has probability
// `successRate`, and each perpendicular direction has half of the remainder. The outcomes of the move with number m are
// the directions m − 1, m, m + 1 (modulo 4), in this order. On ice that is not slippery, the intended direction has
// probability 1.

export interface Outcome {
  move: number;
  probability: number;
}

export type Dynamics = readonly (readonly Outcome[])[];

/** Returns the possible outcomes of each of the four moves, with their probabilities. */
export function dynamics(slippery: boolean, successRate: number): Dynamics {
  const slip = (1 - successRate) / 2;
  return [0, 1, 2, 3].map(move =>
    slippery
      ? [
          { move: (move + 3) % 4, probability: slip },
          { move, probability: successRate },
          { move: (move + 1) % 4, probability: slip },
        ]
      : [{ move, probability: 1 }],
  );
}

/**
 * Returns the executed move for a uniform draw in [0, 1): the move of the first outcome whose cumulative probability
 * exceeds the draw. If rounding leaves no such outcome, returns the move of the first outcome.
 */
export function drawnMove(outcomes: readonly Outcome[], uniform: number): number {
  let sum = 0;
  for (const { move, probability } of outcomes) if ((sum += probability) > uniform) return move;
  return outcomes[0].move;
}
