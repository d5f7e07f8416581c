// A chart: how the answers of a step ended, as shares of its turns. List this file in the configuration,
// workbench.plugins.charts: [plugins/my_plugin.ts]. The dashboard then has the chart, with one line per key. A saved
// change applies from the next step on. To draw metrics that the run logs anyway, give their keys instead of lines:
// keys: ['actor/entropy', 'thoughts/*'].
import { defineChart } from 'ragen-workbench/api/plugins/chart';

export default defineChart({
  name: 'my_plugin',

  // Returns the value of each line. A step without turns has no values.
  lines({ episodes }) {
    const turns = episodes.flatMap(episode => episode.turns);
    if (turns.length === 0) return {};
    const share = (count: number) => count / turns.length;
    return {
      executed: share(turns.filter(({ executed }) => executed.length > 0).length),
      without_action: share(turns.filter(({ executed }) => executed.length === 0).length),
      cut_off: share(turns.filter(({ finish }) => finish === 'length').length),
    };
  },
});
