// An alarm: the entropy is below half of its mean over the first steps, in each of 3 steps. List this file in the
// configuration, workbench.plugins.alarms: [plugins/my_plugin.ts]. A saved change applies from the next step on.
import { defineAlarm } from 'ragen-workbench/api/plugins/alarm';

export default defineAlarm({
  name: 'my_plugin',
  metric: 'actor/entropy',
  label: 'entropy',
  side: 'under',
  steps: 3,

  // `before` are the values before the newest 3. Null means that there are too few values for a bound.
  bound(before) {
    const first = before.slice(0, 10);
    if (first.length < 3) return null;
    const mean = first.reduce((sum, value) => sum + value, 0) / first.length;
    return { bound: mean / 2, label: `half of its mean over the first ${first.length} steps` };
  },
});
