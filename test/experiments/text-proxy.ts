// Measures the text-only proxy of I(X;Z) on runs that have both. Usage, in the folder of the results: `node
// dist/text-proxy.cjs COMPARISON.json RUNS_FOLDER` reads the runs made by `ragen sweep test/experiments/7-text-proxy.yaml
// --json` and writes 7-text-proxy.csv; without arguments it reads that file. Prints the rank correlations.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { episodeSchema } from '../../extension/run-data/episode';
import { episodesFile, runFiles } from '../../extension/run-data/run-file-names';
import { metricsLineSchema } from '../../extension/run-data/step-lines';
import { promptInformation } from '../../extension/trainer/diagnostics/prompt-information';
import { correlation, proxyCsv, readProxyCsv, type ProxyStep } from './proxy-panel';

const csv = '7-text-proxy.csv';
const comparisonSchema = z.object({
  points: z.array(
    z.object({ label: z.string(), runs: z.array(z.object({ run: z.string().nullable(), seed: z.number() })) }),
  ),
});
const textsSchema = episodeSchema.pick({ group_id: true, turns: true });

const linesOf = (file: string): unknown[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(text => JSON.parse(text) as unknown);

function stepsOf(run: string, folder: string): ProxyStep[] {
  const lines = linesOf(join(folder, runFiles.metrics)).map(line => metricsLineSchema.parse(line));
  return lines.flatMap(line => {
    const value = (key: string): number => (typeof line[key] === 'number' ? line[key] : Number.NaN);
    const [first, trajectory] = ['first_turn', 'trajectory'].map(family =>
      value(`collapse_${family}_sample/mi_estimate`),
    );
    const file = join(folder, episodesFile('train', line.step));
    if (!(Number.isFinite(first) || Number.isFinite(trajectory)) || !existsSync(file)) return [];
    const thoughts = linesOf(file)
      .map(text => textsSchema.parse(text))
      .flatMap(({ group_id: prompt, turns }) => (turns[0]?.thought ? [{ prompt, thought: turns[0].thought }] : []));
    const proxy = promptInformation(thoughts)['thoughts/prompt_information'] ?? Number.NaN;
    return [{ run, step: line.step, proxy, first, trajectory, distinct: value('thoughts/distinct_2') }];
  });
}

function readRuns(file: string, runsFolder: string): ProxyStep[] {
  const { points } = comparisonSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  return points.flatMap(({ label, runs }) =>
    runs.flatMap(({ run, seed }) => (run === null ? [] : stepsOf(`${label}, seed ${seed}`, join(runsFolder, run)))),
  );
}

const [file, runsFolder] = process.argv.slice(2);
if (file !== undefined) writeFileSync(csv, proxyCsv(readRuns(file, runsFolder)));
const steps = readProxyCsv(readFileSync(csv, 'utf8'));
for (const a of ['proxy', 'distinct'] as const)
  for (const b of ['first', 'trajectory'] as const) {
    const { all, low, high, within, diagnoses, runs } = correlation(steps, a, b);
    const [shown, from, to, median] = [all, low, high, within].map(x => x.toFixed(2));
    process.stdout.write(
      `${a} and I(X;Z) of ${b}: ${shown} (${from} to ${to}), ${median} within a run; ${diagnoses} diagnoses of ${runs} runs\n`,
    );
  }
