// Groups of samples, with the mean and deviation of each group. A group is all rollouts of one prompt; ids are
// arbitrary integers and need not be adjacent. Invariant: mean and deviation are computed from the differences between
// the group's values and its first value, so a group of equal values has a deviation of exactly 0. If the deviation
// were a rounding error instead of 0, dividing by it would give huge advantages.

/** Sample scores with group ids. All arrays have one entry per sample. */
export interface GroupedScores {
  scores: ArrayLike<number>;
  groups: ArrayLike<number>;
  /**
   * Episode id of each sample; given only if an episode has several samples (one per turn). Each episode then
   * contributes only one value to the moments of its group.
   */
  episodes?: ArrayLike<number>;
}

/** Mean and unbiased standard deviation (0 for fewer than two values) of `count` values. */
export interface Moments {
  count: number;
  mean: number;
  std: number;
}

/** Returns the sample indices of each group. The groups are in the order of their first samples. */
export function membersByGroup(groups: ArrayLike<number | string>): Map<number | string, number[]> {
  const members = new Map<number | string, number[]>();
  for (let index = 0; index < groups.length; index++) {
    const list = members.get(groups[index]);
    if (list) list.push(index);
    else members.set(groups[index], [index]);
  }
  return members;
}

/** Returns the moments of the values at `indices` (default: all values). The mean of an empty set is 0. */
export function momentsOf(values: ArrayLike<number>, indices?: readonly number[]): Moments {
  const count = indices ? indices.length : values.length;
  if (count === 0) return { count, mean: 0, std: 0 };
  const at = (index: number): number => values[indices ? indices[index] : index];
  const origin = at(0);
  let sum = 0;
  for (let index = 0; index < count; index++) sum += at(index) - origin;
  const shift = sum / count;
  let squares = 0;
  for (let index = 0; index < count; index++) squares += (at(index) - origin - shift) ** 2;
  return { count, mean: origin + shift, std: count > 1 ? Math.sqrt(squares / (count - 1)) : 0 };
}

/**
 * Calls `visit` for each group with its samples and its moments; every episode contributes one value to the moments.
 */
export function forEachGroup(batch: GroupedScores, visit: (samples: number[], moments: Moments) => void): void {
  for (const samples of membersByGroup(batch.groups).values())
    visit(samples, momentsOf(batch.scores, batch.episodes ? firstOfEach(samples, batch.episodes) : samples));
}

function firstOfEach(samples: number[], episodes: ArrayLike<number>): number[] {
  const seen = new Set<number>();
  return samples.filter(sample => !seen.has(episodes[sample]) && seen.add(episodes[sample]));
}
