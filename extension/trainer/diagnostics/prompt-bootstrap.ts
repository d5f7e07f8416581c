// Confidence intervals of the collapse metrics: percentile intervals by a bootstrap over prompts. Samples of the same
// prompt are correlated, so prompts are resampled together with all their samples. All draws use the marginal log-probs
// over all N prompts. If a draw computed its own marginal, this marginal would cover fewer distinct prompts, and the
// maximum of the mutual information, ln N, would be lower. Pure and seeded.
import { quantile } from '../../common/quantile';
import type { IntegerStream } from '../../algorithms/mini-batches';
import type { SampleStatistics } from './collapse-metrics';

/** Number of bootstrap draws, and confidence level of the intervals. */
const bootstrap = { draws: 1000, level: 0.95 } as const;

/** Contribution of sample i to each metric; the metric is the mean of the contributions of all samples. */
const addends: Record<string, (s: SampleStatistics, i: number) => number> = {
  mi_estimate: (s, i) => s.matched[i] - s.marginal[i],
  mi_seq_estimate: (s, i) => s.matchedSeq[i] - s.marginalSeq[i],
  paper_mi_estimate: (s, i) => s.matched[i] - s.marginalPaper[i],
  conditional_entropy_est: (s, i) => -s.matched[i],
  reasoning_entropy_est: (s, i) => -s.marginal[i],
  retrieval_accuracy: (s, i) => s.retrieved[i],
};

/** Returns `<metric>_ci_low` and `<metric>_ci_high` of each metric. `prompts` holds one prompt signature per sample. */
export function promptIntervals(
  samples: SampleStatistics,
  prompts: readonly (string | number)[],
  random: IntegerStream,
): Record<string, number> {
  const clusters = new Map<string | number, number[]>();
  prompts.forEach((prompt, i) => clusters.set(prompt, [...(clusters.get(prompt) ?? []), i]));
  const members = [...clusters.values()];
  const names = Object.keys(addends);
  const sums = members.map(indices =>
    names.map(name => indices.reduce((sum, i) => sum + addends[name](samples, i), 0)),
  );
  const means = names.map(() => new Float64Array(bootstrap.draws));
  for (let draw = 0; draw < bootstrap.draws; draw++) {
    let count = 0;
    const total = names.map(() => 0);
    for (let k = 0; k < members.length; k++) {
      const prompt = random.integer(members.length);
      count += members[prompt].length;
      sums[prompt].forEach((sum, m) => (total[m] += sum));
    }
    total.forEach((sum, m) => (means[m][draw] = sum / count));
  }
  const outside = (1 - bootstrap.level) / 2;
  return Object.fromEntries(
    names.flatMap((name, m) => {
      const sorted = means[m].sort();
      return [
        [`${name}_ci_low`, quantile(sorted, outside)],
        [`${name}_ci_high`, quantile(sorted, 1 - outside)],
      ];
    }),
  );
}
