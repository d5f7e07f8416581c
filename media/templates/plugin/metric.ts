// A metric: the mean number of words in the thoughts of a step. List this file in the configuration,
// workbench.plugins.metrics: [plugins/my_plugin.ts]. The dashboard then has a chart of plugins/my_plugin. A saved change
// applies from the next step on.
import { defineMetric } from 'ragen-workbench/api/plugins/metric';

export default defineMetric({
  name: 'my_plugin',

  // Returns a number, or several numbers by key. A step without thoughts has no value.
  measure({ episodes }) {
    const thoughts = episodes.flatMap(({ turns }) => turns.flatMap(({ thought }) => thought ?? []));
    if (thoughts.length === 0) return {};
    const words = thoughts.map(thought => thought.split(/\s+/).filter(word => word !== '').length);
    return words.reduce((sum, count) => sum + count, 0) / words.length;
  },
});
