// Metrics of judges: how many episodes they gave no score, what they cost, and how far two judges agree. Pure.
import type { MeasuredJudgement } from '../../../envs/api/plugins/measured-episode';

/**
 * Returns the metrics of one component over the episodes of a batch, or over the turns whose descriptions are judged;
 * `judgements` has one list per episode or turn. `missing` is the share of episodes or turns without a score. With two
 * judges, `difference` is the mean absolute difference of their scores (0…1), and `agreement` is Pearson's correlation
 * of their scores. Both cover the episodes that both judges scored; `difference` needs one such episode, `agreement`
 * needs two with different scores of each judge.
 */
export function judgeMetrics(judgements: readonly (readonly MeasuredJudgement[])[]): Record<string, number> {
  const all = judgements.flat();
  const sum = (read: (judgement: MeasuredJudgement) => number): number =>
    all.reduce((total, each) => total + read(each), 0);
  const without = judgements.filter(each => each.every(({ score }) => score === null)).length;
  const pairs = judgements.flatMap(([first, second]): [number, number][] =>
    typeof first?.score === 'number' && typeof second?.score === 'number' ? [[first.score, second.score]] : [],
  );
  const agreement = correlation(pairs);
  return {
    missing: judgements.length > 0 ? without / judgements.length : 0,
    requests: sum(({ tokens, score, cached }) => Number(!cached && (tokens > 0 || score !== null))),
    tokens: sum(({ tokens }) => tokens),
    cost: sum(({ cost }) => cost),
    ...(pairs.length > 0 && {
      difference: pairs.reduce((total, [a, b]) => total + Math.abs(a - b), 0) / pairs.length,
    }),
    ...(agreement !== undefined && { agreement }),
  };
}

/** Returns Pearson's correlation; undefined if a coordinate is constant or there are fewer than two pairs. */
function correlation(pairs: readonly (readonly [number, number])[]): number | undefined {
  const mean = (i: 0 | 1): number => pairs.reduce((sum, pair) => sum + pair[i], 0) / pairs.length;
  const [a, b] = [mean(0), mean(1)];
  let [ab, aa, bb] = [0, 0, 0];
  for (const [x, y] of pairs) {
    ab += (x - a) * (y - b);
    aa += (x - a) ** 2;
    bb += (y - b) ** 2;
  }
  const scale = Math.sqrt(aa * bb);
  // Rounding leaves a tiny deviation if all values are equal.
  return pairs.length < 2 || !(scale > 1e-12) ? undefined : Math.max(-1, Math.min(1, ab / scale));
}
