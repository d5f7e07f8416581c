// Returns of an episode in progress. Pure. Each role of an episode has a return of its own, and a sum over roles has no
// meaning in a game in which one wins what the other loses.

/**
 * Returns, for each turn, the sum of the rewards up to and including this turn, without penalties: with roles, the
 * rewards of the turns of the same role.
 */
export function runningReturns(turns: readonly { role?: string; reward: number }[]): number[] {
  const sums = new Map<string | undefined, number>();
  return turns.map(({ role, reward }) => {
    const sum = (sums.get(role) ?? 0) + reward;
    sums.set(role, sum);
    return sum;
  });
}

/** Returns the name of a turn's return: `return` or, with roles, `return of first`. */
export const returnName = ({ role }: { role?: string }): string =>
  role === undefined ? 'return' : `return of ${role}`;
