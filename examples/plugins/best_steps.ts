// A report as a Markdown table: for each run, the estimator, the best training return, and the step at which it was
// reached. Print it: ragen report <run> --with plugins/best_steps.ts
import { defineReport } from 'ragen-workbench/api/plugins/report';

export default defineReport({
  name: 'best_steps',

  report(runs) {
    const rows = runs.map(({ name, config, metrics }) => {
      const { adv_estimator: estimator } = (config.algorithm ?? {}) as { adv_estimator?: string };
      const steps = metrics.filter(line => line[key] !== undefined);
      const best = steps.reduce<(typeof steps)[number] | undefined>(
        (most, line) => (most === undefined || line[key] > most[key] ? line : most),
        undefined,
      );
      return `| ${name} | ${estimator ?? ''} | ${best ? best[key].toFixed(3) : ''} | ${best?.step ?? ''} |`;
    });
    return ['| run | estimator | best return | at step |', '|---|---|---|---|', ...rows].join('\n');
  },
});

const key = 'train/charts/avg_episode_return';
