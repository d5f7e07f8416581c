// How a step's scores are spread, small enough for a line a step: each score with the number of episodes that had it, and where there
// are many different ones, equal intervals in their place.

/** Different scores of a tag that are told one by one. */
const mostScores = 48;

/** By tag: scores in growing order, each with how many episodes had it. Sums of the numbers are the numbers of episodes. */
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

/** Counts of the scores to six digits, or of the middles of 48 intervals where there are more. */
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
