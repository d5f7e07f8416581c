// Finds the steps at which a run's signals change. Reads the comparison printed by `ragen sweep FILE --json` and the
// run folders named there, and writes as CSV, for each seed, the step at which validation success falls and the step of
// each signal's warning. All values are means over ten steps. Validation falls when it drops below 85 % of its maximum
// so far and never recovers above that; mutual information warns by the same rule. In-group reward std warns when it
// drops below half of the mean over its first ten steps. Usage, in the folder of the results:
// node dist/onsets.cjs COMPARISON.json RUNS_FOLDER
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { metricsLineSchema } from '../../extension/run-data/step-lines';
import { runFiles } from '../../extension/run-data/run-file-names';

const window = 10;

const comparisonSchema = z.object({
  points: z.array(
    z.object({ label: z.string(), runs: z.array(z.object({ run: z.string().nullable(), seed: z.number() })) }),
  ),
});

type Point = { step: number; value: number };

/** Means over the last ten steps, starting at the tenth step. */
const smoothed = (points: readonly Point[]): Point[] =>
  points
    .filter(({ step }) => step >= window)
    .map(({ step }) => {
      const recent = points.filter(point => point.step > step - window && point.step <= step);
      return { step, value: recent.reduce((sum, { value }) => sum + value, 0) / recent.length };
    });

/** First step from which the smoothed values stay below `share` times the earlier maximum; null if there is none. */
function fallBelowBest(points: readonly Point[], share: number): number | null {
  const means = smoothed(points);
  for (const [i, { step, value }] of means.entries()) {
    const bound = share * Math.max(...means.slice(0, i + 1).map(mean => mean.value));
    if (value < bound && means.slice(i).every(mean => mean.value < bound)) return step;
  }
  return null;
}

/** First step whose smoothed value is below `share` times the mean of the first steps; null if there is none. */
function fallBelowFirst(points: readonly Point[], share: number): number | null {
  const means = smoothed(points);
  return means.find(({ value }) => value < share * means[0].value)?.step ?? null;
}

const [file, runsFolder] = process.argv.slice(2);
const { points } = comparisonSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
const rows = ['arm,seed,validation falls,in-group std warns,mutual information warns,alarms'];
for (const { label, runs } of points)
  for (const { run, seed } of runs) {
    if (run === null) throw new Error(`onsets: ${label} with seed ${seed} was not run`);
    const linesOf = (name: string) =>
      readFileSync(join(runsFolder, run, name), 'utf8')
        .trim()
        .split('\n')
        .map(text => JSON.parse(text) as unknown);
    const metrics = linesOf(runFiles.metrics).map(line => metricsLineSchema.parse(line));
    const series = (key: string): Point[] =>
      metrics.flatMap(line => (typeof line[key] === 'number' ? [{ step: line.step, value: line[key] }] : []));
    const alarms = linesOf(runFiles.events)
      .map(line => z.object({ kind: z.string(), step: z.number(), message: z.string() }).parse(line))
      .filter(({ kind }) => kind === 'alarm')
      .map(({ step, message }) => `${step}: ${message}`);
    const onsets = [
      fallBelowBest(series('val-env/QuickFrozenLake/success'), 0.85),
      fallBelowFirst(series('rollout/in_group_reward_std'), 0.5),
      fallBelowBest(series('collapse_trajectory_sample/mi_estimate'), 0.85),
    ];
    rows.push(
      [JSON.stringify(label), seed, ...onsets.map(step => step ?? ''), JSON.stringify(alarms.join('; '))].join(),
    );
  }
writeFileSync(`${basename(file, '.json')}-onsets.csv`, rows.join('\n') + '\n');
process.stdout.write(rows.join('\n') + '\n');
