// How sure the collapse metrics are: percentile intervals by a bootstrap over prompts. Samples under one prompt are
// alike, so that whole prompts are drawn again, with all their samples; the mixture over prompts that each sample is
// compared with stays as it was measured, since drawing it again with repetitions would lower its bound ln N. Pure and
// seeded.
import type { IntegerStream } from '../../algorithms/mini-batches';
import type { SampleStatistics } from './collapse-metrics';

/** Draws, and the share of them that lies within an interval. */
const bootstrap = { draws: 1000, level: 0.95 } as const;

/** What is drawn again: each sample's addend to a mean. */
const addends: Record<string, (s: SampleStatistics, i: number) => number> = {
  mi_estimate: (s, i) => s.matched[i] - s.marginal[i],
  mi_seq_estimate: (s, i) => s.matchedSeq[i] - s.marginalSeq[i],
  paper_mi_estimate: (s, i) => s.matched[i] - s.marginalPaper[i],
  conditional_entropy_est: (s, i) => -s.matched[i],
  reasoning_entropy_est: (s, i) => -s.marginal[i],
  retrieval_accuracy: (s, i) => s.retrieved[i],
};

/** `<metric>_ci_low` and `<metric>_ci_high`; `prompts` tells each sample's prompt. */
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

/** Between the two nearest of sorted values. */
function quantile(sorted: Float64Array, share: number): number {
  const position = share * (sorted.length - 1);
  const below = Math.floor(position);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}
