// Measures the accuracy of the regimes on the diagnoses of the panel. Usage, in the folder of the results: `node
// dist/regimes.cjs COMPARISON.json RUNS_FOLDER` reads the runs made by `ragen sweep test/experiments/5-regimes.yaml
// --json` and writes 5-regimes.csv; without arguments it reads that file. Prints the figures of both halves, and the
// constants of the rule that fit the first half best.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { regimeRule, retrievalOverChance } from '../../extension/run-data/regimes';
import { episodeSchema } from '../../extension/run-data/episode';
import { episodesFile, runFiles } from '../../extension/run-data/run-file-names';
import { metricsLineSchema } from '../../extension/run-data/step-lines';
import { groundedShare, promptSimilarity } from './panel-texts';
import { figures, halves, judgedSteps, panelCsv, readPanelCsv } from './regime-panel';
import type { PanelRun, PanelStep, Rule } from './regime-panel';

const csv = '5-regimes.csv';
const family = 'collapse_trajectory_sample';
const comparisonSchema = z.object({
  points: z.array(
    z.object({ label: z.string(), runs: z.array(z.object({ run: z.string().nullable(), seed: z.number() })) }),
  ),
});
const panelEpisode = episodeSchema.pick({ group_id: true, turns: true });

const linesOf = (file: string): unknown[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(text => JSON.parse(text) as unknown);

function panelSteps(folder: string): PanelStep[] {
  const lines = linesOf(join(folder, runFiles.metrics)).map(line => metricsLineSchema.parse(line));
  const texts = new Map(
    lines
      .filter(({ step }) => step > 0)
      .map(({ step }) => {
        const episodes = linesOf(join(folder, episodesFile('train', step))).map(line => panelEpisode.parse(line));
        return [step, { grounded: groundedShare(episodes), similarity: promptSimilarity(episodes) }];
      }),
  );
  const around = (step: number, key: 'grounded' | 'similarity'): number => {
    const near = [step - 1, step, step + 1].flatMap(each => texts.get(each)?.[key] ?? []);
    return near.reduce((sum, x) => sum + x, 0) / near.length;
  };
  return lines.flatMap(line => {
    const information = line[`${family}/mi_estimate`];
    if (typeof information !== 'number') return [];
    const accuracy = Number(line[`${family}/retrieval_accuracy`]);
    const chance = Number(line[`${family}/retrieval_chance_level`]);
    return {
      step: line.step,
      grounded: around(line.step, 'grounded'),
      similarity: around(line.step, 'similarity'),
      information,
      informationLow: Number(line[`${family}/mi_estimate_ci_low`]),
      entropy: Number(line[`${family}/conditional_entropy_est`]),
      retrieval: retrievalOverChance(accuracy, chance),
    };
  });
}

function readRuns(file: string, runsFolder: string): PanelRun[] {
  const { points } = comparisonSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  return points.flatMap(({ label, runs }) =>
    runs.map(({ run, seed }) => {
      if (run === null) throw new Error(`regimes: ${label} with seed ${seed} was not run`);
      return { arm: label, seed, steps: panelSteps(join(runsFolder, run)) };
    }),
  );
}

/** Mean log-probability that the rule assigns to the true regime; a label within the tolerance counts as correct. */
function logLikelihood(runs: readonly PanelRun[], rule: Rule): number {
  const steps = runs.flatMap(run => judgedSteps(run, rule)).filter(({ truth }) => truth !== null);
  return (
    steps.reduce(
      (sum, { confidence, right }) => sum + Math.log(Math.max(1e-3, right ? confidence : 1 - confidence)),
      0,
    ) / steps.length
  );
}

/** Optimizes one constant at a time until none improves, first by balanced accuracy, then by likelihood. */
function fitted(runs: readonly PanelRun[]): Rule {
  const choices: Record<keyof Rule, number[]> = {
    share: [0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7],
    floor: [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12],
    entropy: [0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6],
    entropyAlone: [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3],
    retrieval: [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    newest: [0.4, 0.5, 0.6, 0.7, 0.85, 1],
    dependenceSlope: [1, 1.5, 2, 3, 4, 6, 8, 12],
    varietySlope: [1, 1.5, 2, 3, 4, 6, 8, 12],
  };
  const value = (rule: Rule): number => figures(runs, rule).balancedAccuracy + 0.2 * logLikelihood(runs, rule);
  let best: Rule = regimeRule;
  for (let improved = true; improved;) {
    improved = false;
    for (const key of Object.keys(choices) as (keyof Rule)[])
      for (const choice of choices[key]) {
        const other = { ...best, [key]: choice };
        if (value(other) > value(best) + 1e-9) [best, improved] = [other, true];
      }
  }
  return best;
}

const [comparison, runsFolder] = process.argv.slice(2);
if (comparison) writeFileSync(csv, panelCsv(readRuns(comparison, runsFolder)));
const { fit, check } = halves(readPanelCsv(readFileSync(csv, 'utf8')));
const print = (name: string, value: unknown): void => void process.stdout.write(`${name} ${JSON.stringify(value)}\n`);
const best = fitted(fit);
print('constants that fit best', best);
print('first half, by them', figures(fit, best));
print('second half, by them', figures(check, best));
print('second half, by the rule', figures(check));
const sparse = check.map(run => ({ ...run, steps: run.steps.filter((_, i) => i % 2 === 0) }));
print('second half, diagnosed at every fourth step, by the rule', figures(sparse));
print('first half, by the constants that fit the second best', figures(fit, fitted(check)));
