// The score distribution of a step: each distinct score with its number of episodes. If there are more than 48 distinct
// scores, they are counted in 48 intervals of equal width, so that the distribution fits into one log line.

/**
 * Maximum number of distinct scores that are listed per tag. If a tag has more distinct scores, they are counted in
 * this number of intervals.
 */
const mostScores = 48;

/** Returns the score distribution of each tag, in ascending order of scores. Non-finite scores are omitted. */
export function scoresByTag(
  episodes: readonly { tag: string; score: number }[],
): Record<string, [score: number, episodes: number][]> {
  const byTag = new Map<string, number[]>();
  for (const { tag, score } of episodes) {
    if (!Number.isFinite(score)) continue;
    const scores = byTag.get(tag);
    if (scores) scores.push(score);
    else byTag.set(tag, [score]);
  }
  return Object.fromEntries([...byTag].map(([tag, scores]) => [tag, spreadOf(scores)]));
}

/**
 * Counts the scores, rounded to six digits. If there are more than 48 distinct scores, divides their range into 48
 * equal intervals and counts the scores per interval; the midpoint represents the interval.
 */
export function spreadOf(scores: readonly number[]): [score: number, episodes: number][] {
  const exact = counted(scores.map(score => Number(score.toPrecision(6))));
  if (exact.length <= mostScores) return exact;
  const [low, high] = [exact[0][0], exact[exact.length - 1][0]];
  const width = (high - low) / mostScores;
  const middleOf = (score: number) => low + (Math.min(mostScores - 1, Math.floor((score - low) / width)) + 0.5) * width;
  return counted(scores.map(score => Number(middleOf(score).toPrecision(6))));
}

function counted(scores: readonly number[]): [number, number][] {
  const counts = new Map<number, number>();
  for (const score of scores) counts.set(score + 0, (counts.get(score + 0) ?? 0) + 1); // adding 0 turns -0 into 0
  return [...counts].sort(([a], [b]) => a - b);
}
