// `ragen claims`: decides the claims of sweep files from the metrics of their runs. It starts no run: `ragen sweep` does.
// With --save, the metrics that the tests read are written as CSV with their figure; with --metrics, saved metrics replace the runs.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { readBoundedSync } from '../../node/bounded-file';
import { claimFigure } from '../../run-data/claims/claim-figure';
import { claimCsv, metricsOf, readClaimCsv } from '../../run-data/claims/claim-metrics';
import { armsOf, type Claim } from '../../run-data/claims/claim-schema';
import { judgeClaim } from '../../run-data/claims/claim-verdict';
import type { ClaimResult } from '../../run-data/claims/claim-verdict';
import type { MeasuredRun, StepMetrics } from '../../run-data/claims/run-measure';
import { paperTheme } from '../../run-data/report/report-markdown';
import { validationSuccess } from '../../trainer/loop/metric-statistics';
import { presetFolders, sweepFolders, workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { metricLines } from '../run-lifecycle/follow';
import { formatClaim } from './format-claim';
import { runsOf } from './run-sweep';
import { readSweep } from './sweep-plan';
import type { SweepPlan } from './sweep-plan';

interface ClaimsFlags {
  workspace?: string;
  metrics?: string;
  save?: string;
  json?: boolean;
}

/** Maximum size of a file with saved metrics. */
const mostBytes = 64 * 2 ** 20;

export function addClaims(program: Command): void {
  program
    .command('claims')
    .description('decide the claims of sweeps from the metrics of their runs')
    .argument('<sweeps...>', 'YAML files, or names of sweeps, with a section `claim`')
    .option('--metrics <folder>', 'read the metrics saved in this folder instead of the runs')
    .option(
      '--save <folder>',
      'write the metrics that the tests read, as <sweep>.csv, and their figure, as <sweep>.svg, into this folder',
    )
    .option('--workspace <folder>', 'folder whose .ragen/runs contains the runs (default: the current folder)')
    .option('--json', 'print one JSON document on standard output, logs on standard error')
    .addHelpText(
      'after',
      `
A sweep's section \`claim\` lists tests: difference, level, trend, correlation or alarms. A test is reproduced only if both
intervals, Student's t and the bootstrap's, lie on the expected side. Verdicts: reproduced, opposite, not reproduced, too few
runs, and no experiment if a condition of the setting is not met.
Output with --json: {"claims": [{"sweep", "number", "title", "paper", "verdict", "tests": [{"name", "test", "verdict",
"statistic": {"n", "value", "bootstrap", "student", "effectSize"}, "values", "others", "alarms", "calibration"}]}]}.`,
    )
    .action((sweeps: string[], flags: ClaimsFlags) => answer(flags, () => Promise.resolve(claims(sweeps, flags))));
}

function claims(sweeps: readonly string[], flags: ClaimsFlags): Answer {
  const workspace = workspaceOf(flags.workspace);
  const source = { workspace, presetFolders: presetFolders(workspace), sweepFolders: sweepFolders(workspace) };
  const judged = sweeps.map((sweep): ClaimResult & { sweep: string } => {
    const plan = readSweep(sweep, source);
    const { id, claim } = plan;
    if (!claim) throw new UserError(`claims: ${plan.file} has no section claim: give a sweep that has one`);
    requireArms(plan, claim);
    const others = claim.runs_of.map(name => readSweep(name, source));
    const runs =
      flags.metrics === undefined
        ? [plan, ...others].flatMap(each => measuredRuns(each, workspace))
        : savedRuns(resolve(flags.metrics), id); // with the runs of the other sweeps
    if (flags.save !== undefined) {
      if (runs.length === 0)
        throw new UserError(
          `claims: sweep ${id} has no finished run in ${workspace}, so there is nothing to save: run ragen sweep ${id} first`,
        );
      mkdirSync(flags.save, { recursive: true });
      writeFileSync(join(flags.save, `${id}.csv`), claimCsv(runs, metricsOf(claim)));
      const figure = claimFigure(claim, runs, paperTheme);
      if (figure !== undefined) writeFileSync(join(flags.save, `${id}.svg`), figure);
    }
    return { sweep: id, ...judgeClaim(claim, runs) };
  });
  return { document: { claims: judged }, plainText: judged.map(formatClaim).join('\n\n') };
}

/**
 * Returns the metrics of the plan's finished runs, with the mean validation success as `success`. Arms of another sweep
 * than the claim's own keep their labels, so equal labels must mean equal arms.
 */
function measuredRuns(plan: SweepPlan, workspace: string): MeasuredRun[] {
  return [...runsOf(plan, workspace)].flatMap(([m, folder]) => {
    if (folder.readStatus()?.state !== 'finished') return [];
    const { point, seed } = plan.members[m];
    const steps = Array.from(metricLines(folder), line => {
      const metrics = Object.fromEntries(
        Object.entries(line).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
      );
      const success = validationSuccess(metrics);
      return { ...metrics, ...(success !== null && { success }) } satisfies StepMetrics;
    });
    return [{ arm: plan.points[point].label, seed, steps }];
  });
}

const savedRuns = (folder: string, sweep: string): MeasuredRun[] =>
  readClaimCsv(readBoundedSync(join(folder, `${sweep}.csv`), { most: mostBytes, within: null }).toString('utf8'));

/** @throws UserError if a test names an arm that the sweep does not have */
function requireArms({ file, points }: SweepPlan, { tests }: Claim): void {
  const labels = points.map(({ label }) => label);
  for (const test of tests) {
    const unknown = armsOf(test).find(arm => !labels.includes(arm));
    if (unknown !== undefined)
      throw new UserError(
        `claims: ${file}: the test ${JSON.stringify(test.name)} names the arm ${JSON.stringify(unknown)}: use one of ${labels.map(label => JSON.stringify(label)).join(', ')}`,
      );
  }
}
