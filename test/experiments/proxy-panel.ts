// The diagnoses on which the text-only proxy of I(X;Z) is measured (extension/trainer/diagnostics/prompt-information.ts):
// for each diagnosed step of some runs, the proxy, I(X;Z) under the policy of the step, and the share of distinct word
// pairs for comparison. This module has no side effects; text-proxy.ts reads the runs, and a unit test checks the figures.
import { rankCorrelation } from '../../extension/common/rank-correlation';
import { quantile } from '../../extension/common/quantile';
import { seededRandom } from '../../extension/common/seeded-random';

/** Values of a diagnosed step; NaN if the run has no such value. Information is in nats per token, the proxy in nats per word. */
export interface ProxyStep {
  run: string;
  step: number;
  proxy: number;
  /** I(X;Z) of first turns and of trajectories. */
  first: number;
  trajectory: number;
  distinct: number;
}

const columns = ['proxy', 'first', 'trajectory', 'distinct'] as const;
export type ProxyColumn = (typeof columns)[number];

export interface Correlation {
  /** Spearman's rank correlation over all diagnoses. */
  all: number;
  /** Interval of `all`, by a bootstrap over runs, because the diagnoses of a run are not independent. */
  low: number;
  high: number;
  /** Median over the runs of the correlation within a run. */
  within: number;
  diagnoses: number;
  runs: number;
}

const bootstrap = { draws: 2000, level: 0.95, seed: 1 } as const;

/** Correlates two columns over the steps that have both values. */
export function correlation(steps: readonly ProxyStep[], a: ProxyColumn, b: ProxyColumn): Correlation {
  const runs = new Map<string, ProxyStep[]>();
  for (const step of steps)
    if (Number.isFinite(step[a]) && Number.isFinite(step[b])) runs.set(step.run, [...(runs.get(step.run) ?? []), step]);
  const clusters = [...runs.values()];
  const over = (some: readonly ProxyStep[]): number =>
    rankCorrelation(
      some.map(step => step[a]),
      some.map(step => step[b]),
    );
  const random = seededRandom(bootstrap.seed);
  const draws = Float64Array.from({ length: bootstrap.draws }, () =>
    over(clusters.flatMap(() => clusters[Math.floor(random() * clusters.length)])),
  ).sort();
  const outside = (1 - bootstrap.level) / 2;
  const within = Float64Array.from(clusters.filter(({ length }) => length > 2).map(over)).sort();
  return {
    all: over(clusters.flat()),
    low: quantile(draws, outside),
    high: quantile(draws, 1 - outside),
    within: quantile(within, 0.5),
    diagnoses: clusters.flat().length,
    runs: clusters.length,
  };
}

export const proxyCsv = (steps: readonly ProxyStep[]): string =>
  [
    ['run', 'step', ...columns].join(),
    ...steps.map(each => {
      const values = columns.map(key => (Number.isFinite(each[key]) ? Number(each[key].toFixed(4)) : ''));
      return [JSON.stringify(each.run), each.step, ...values].join();
    }),
    '',
  ].join('\n');

/** Parses the output of `proxyCsv`. */
export const readProxyCsv = (text: string): ProxyStep[] =>
  text
    .trim()
    .split('\n')
    .slice(1)
    .map(line => {
      const [, run, rest] = /^"([^"]*)",(.*)$/.exec(line)!;
      const [step, proxy, first, trajectory, distinct] = rest
        .split(',')
        .map(value => (value === '' ? Number.NaN : Number(value)));
      return { run, step, proxy, first, trajectory, distinct };
    });
