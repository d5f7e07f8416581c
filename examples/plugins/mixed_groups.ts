// A rollout filter that trains only on prompts that the policy sometimes solves: the score of a group is p (1 − p), where
// p is the share of its episodes with success, and only groups with both outcomes are kept. If there is none, the step
// trains on the group with the largest range of scores.
import { defineFilter } from 'ragen-workbench/api/plugins/filter';

export default defineFilter({
  name: 'mixed_groups',

  score: groups =>
    groups.map(({ episodes }) => {
      const share = episodes.filter(({ success }) => success).length / episodes.length;
      return share * (1 - share);
    }),

  select(scores, groups) {
    const mixed = groups.flatMap((_, index) => (scores[index] > 0 ? [index] : []));
    if (mixed.length > 0) return mixed;
    const ranges = groups.map(({ episodes }) => {
      const values = episodes.map(({ score }) => score);
      return Math.max(...values) - Math.min(...values);
    });
    return [ranges.indexOf(Math.max(...ranges))];
  },
});
