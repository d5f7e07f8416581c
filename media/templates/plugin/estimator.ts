// An advantage estimator: the score of an episode minus the mean of its prompt group, as in Dr. GRPO. Name this file in
// the configuration, algorithm.adv_estimator: plugins/my_plugin.ts. A saved change applies from the next step on.
import { defineEstimator } from 'ragen-workbench/api/plugins/estimator';

export default defineEstimator({
  name: 'my_plugin',

  // Depends on its arguments only: for random numbers, use settings.seed, which is fixed for each step.
  estimate({ scores, groups }) {
    const members = new Map<number, number[]>();
    groups.forEach((group, sample) => members.set(group, [...(members.get(group) ?? []), sample]));
    const advantages = new Float64Array(scores.length);
    for (const samples of members.values()) {
      const mean = samples.reduce((sum, sample) => sum + scores[sample], 0) / samples.length;
      for (const sample of samples) advantages[sample] = scores[sample] - mean;
    }
    return { samples: advantages }; // or { turns } or { tokens }, one list per sequence
  },
});
