// A rollout filter: the score of a prompt group is the range of its episodes' scores. Name this file in the configuration,
// actor_rollout_ref.rollout.rollout_filter_metric: plugins/my_plugin.ts. The rollout_filter_strategy selects groups by
// this score. A saved change applies from the next step on.
import { defineFilter } from 'ragen-workbench/api/plugins/filter';

export default defineFilter({
  name: 'my_plugin',

  // Returns one number per group. With a function `select`, the filter selects the groups itself.
  score: groups =>
    groups.map(({ episodes }) => {
      const scores = episodes.map(({ score }) => score);
      return Math.max(...scores) - Math.min(...scores);
    }),
});
