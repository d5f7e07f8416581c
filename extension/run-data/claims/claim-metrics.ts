// The metrics that the tests of a claim read, as CSV with one line per arm, seed, step and metric. Saved metrics replace
// the run folders: the verdict can be computed again without the runs. Pure functions.
import { csvText } from '../../common/csv';
import { UserError } from '../../common/user-error';
import { alarmRules } from '../alarm-rules';
import type { Claim, ClaimTest, Measure } from './claim-schema';
import type { MeasuredRun } from './run-measure';

/** Returns the keys of all metrics that the tests of a claim read, without `step`. */
export function metricsOf({ tests }: Claim): string[] {
  return [...new Set(['success', ...tests.flatMap(keysOf)])];
}

function keysOf(test: ClaimTest): string[] {
  switch (test.test) {
    case 'difference':
    case 'level':
      return measuredKeys(test.measure);
    case 'trend':
      return [...measuredKeys(test.measure), ...(test.metrics ?? [])];
    case 'correlation':
      return [test.x, test.y, ...(test.against === undefined ? [] : [test.against])];
    case 'alarms':
      return [...test.alarms, 'prompt_dependence' as const].flatMap(name => {
        const { metric, limit } = alarmRules[name];
        return limit === undefined ? [metric] : [metric, limit];
      });
  }
}

const measuredKeys = ({ metric, over, before }: Measure): string[] =>
  [metric, over, before].filter(key => key !== undefined);

const heads = ['arm', 'seed', 'step', 'metric', 'value'];

/** Returns the values of `keys` as CSV; values have seven significant digits. */
export function claimCsv(runs: readonly MeasuredRun[], keys: readonly string[]): string {
  const rows = runs.flatMap(({ arm, seed, steps }) =>
    steps.flatMap(metrics =>
      keys
        .filter(key => Number.isFinite(metrics[key]))
        .map(key => [arm, seed, metrics.step, key, Number(metrics[key].toPrecision(7))]),
    ),
  );
  return csvText(heads, rows);
}

/**
 * Parses the output of `claimCsv`.
 * @throws UserError that names the line
 */
export function readClaimCsv(text: string): MeasuredRun[] {
  const runs = new Map<string, { arm: string; seed: number; steps: Map<number, Record<string, number>> }>();
  for (const [i, line] of text.trim().split('\n').entries()) {
    if (i === 0) continue;
    const [, quoted, plain, rest] = /^(?:"((?:[^"]|"")*)"|([^",]*)),(.*)$/.exec(line) ?? [];
    const [seed, step, metric, value] = rest?.split(',') ?? [];
    const numbers = [seed, step, value].map(field => (field ? Number(field) : NaN));
    if (!metric || !numbers.every(Number.isFinite))
      throw new UserError(`metrics of a claim: line ${i + 1} is not ${heads.join()}: save the metrics again`);
    const arm = quoted?.replaceAll('""', '"') ?? plain;
    const [seedNumber, stepNumber, number] = numbers;
    const id = JSON.stringify([arm, seedNumber]);
    const run = runs.get(id) ?? { arm, seed: seedNumber, steps: new Map<number, Record<string, number>>() };
    runs.set(id, run);
    const metrics = run.steps.get(stepNumber) ?? { step: stepNumber };
    run.steps.set(stepNumber, { ...metrics, [metric]: number });
  }
  return [...runs.values()].map(({ arm, seed, steps }) => ({
    arm,
    seed,
    steps: [...steps.values()].sort((a, b) => a.step - b.step),
  }));
}
