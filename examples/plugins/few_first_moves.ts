// An alarm on the metric of first_moves.ts: in each of the last 3 steps, the first actions of a group had less than a
// quarter of the largest entropy so far. Exploration has then nearly stopped.
import { defineAlarm } from 'ragen-workbench/api/plugins/alarm';

export default defineAlarm({
  name: 'few_first_moves',
  metric: 'plugins/first_moves/entropy',
  label: 'entropy of the first actions',
  side: 'under',
  steps: 3,

  bound(before, _limit, highest = 0) {
    if (before.length < 3) return null;
    return { bound: 0.25 * Math.max(highest, ...before), label: 'a quarter of its largest value' };
  },
});
