// Transition probabilities of a move, as in Gymnasium: the intended direction with probability `successRate`, each
// perpendicular one with half of the remainder, in the order (a − 1, a, a + 1) modulo 4. Without slipping, only the
// intended direction.

export interface Outcome {
  move: number;
  probability: number;
}

export type Dynamics = readonly (readonly Outcome[])[];

/** The outcomes of each of the four moves. */
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
 * The executed move for one uniform draw: the first whose cumulative probability exceeds it, else the first outcome.
 */
export function drawnMove(outcomes: readonly Outcome[], uniform: number): number {
  let sum = 0;
  for (const { move, probability } of outcomes) if ((sum += probability) > uniform) return move;
  return outcomes[0].move;
}
