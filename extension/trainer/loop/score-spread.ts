// The score distribution of a step, small enough for one line per step: each score with its number of episodes, or
// equal intervals if there are many different scores.

/** Maximum number of distinct scores per tag that are listed individually. */
const mostScores = 48;

/** By tag: scores in ascending order, each with its number of episodes. Non-finite scores are left out. */
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
 * Counts of the scores rounded to six digits, or of the midpoints of 48 equal intervals if there are more distinct
 * scores.
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
  for (const score of scores) counts.set(score + 0, (counts.get(score + 0) ?? 0) + 1); // + 0: no negative zero
  return [...counts].sort(([a], [b]) => a - b);
}
