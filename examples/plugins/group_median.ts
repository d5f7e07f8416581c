// An advantage estimator with a robust baseline: the score minus the median of the prompt group, divided by the mean
// absolute deviation from it. One episode with an extreme score changes the advantages of the others little. Train with
// it: ragen train --config-name island-plugins
import { defineEstimator } from 'ragen-workbench/api/plugins/estimator';

export default defineEstimator({
  name: 'group_median',

  estimate({ scores, groups }) {
    const samples = new Float64Array(scores.length);
    for (const group of new Set(groups)) {
      const members = Array.from(groups.keys()).filter(sample => groups[sample] === group);
      const values = members.map(sample => scores[sample]);
      const middle = median(values);
      const spread = values.reduce((sum, score) => sum + Math.abs(score - middle), 0) / values.length;
      for (const sample of members) samples[sample] = (scores[sample] - middle) / (spread + 1e-6);
    }
    return { samples };
  },
});

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
