// A report: one line per run with its last training return. Print it with ragen report <run> --with plugins/my_plugin.ts
import { defineReport } from 'ragen-workbench/api/plugins/report';

export default defineReport({
  name: 'my_plugin',

  report: runs =>
    runs
      .map(({ name, state, metrics }) => {
        const returns = metrics.flatMap(line => line['train/charts/avg_episode_return'] ?? []);
        const last = returns.at(-1);
        return `${name} (${state ?? 'unknown'}): ${last === undefined ? 'no steps' : last.toFixed(3)}`;
      })
      .join('\n'),
});
