// `ragen sweep`: runs every point of a sweep file as ordinary runs, and compares the points. All state is in the run
// folders, so the same command continues an interrupted sweep. The comparison is also written to .ragen/sweeps/<name>.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { compare, comparisonCsv, comparisonTable, incomplete, jobCount } from './comparison';
import type { Comparison } from './comparison';
import { runSweep, runsOf } from './run-sweep';
import { readSweep } from './sweep-plan';
import { placeOf, withPlace, type PlaceFlags } from '../jobs/job-options';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { presetFolders, sweepFolders, workspaceOf } from '../options/workspace';
import { StepTable } from '../output/step-table';

interface SweepFlags extends PlaceFlags {
  jobs?: number;
  compare?: boolean;
  workspace?: string;
  json?: boolean;
}

/** Maximum number of concurrent runs on a cluster, unless --jobs is given; Ray queues jobs that lack resources. */
const jobsOnCluster = 16;

/** Folder for the comparisons of sweeps, relative to the workspace. */
const sweepsFolder = '.ragen/sweeps';

export function addSweep(program: Command): void {
  withPlace(program.command('sweep'))
    .description('start a run for each entry of a list or grid of overrides, and compare the runs')
    .argument('<file>', 'YAML file, or the name of a sweep in config/sweeps or among the presets')
    .argument('[overrides...]', 'key=value, for every run')
    .option('--jobs <n>', `maximum number of concurrent runs (default: 1; with --on: ${jobsOnCluster})`, jobCount)
    .option('--compare', 'compare existing runs without starting new runs')
    .option('--workspace <folder>', 'folder whose .ragen/runs contains the runs (default: the current folder)')
    .option('--json', 'print one JSON document on standard output, logs on standard error')
    .addHelpText(
      'after',
      `
Keys of a sweep file:
  config_name, config  configurations, by name or by file
  overrides            overrides of every run
  grid                 values by key: {key: [value, …], …}
  list                 lists of overrides, or of {name, overrides}
  seeds                seeds [n, …], or the number of seeds
  tags                 tags of the runs
An interrupt stops the active runs after their current step. The same command then continues the sweep and skips finished runs.
Output with --json: {"sweep", "keys", "points": [{"label", "config", "name", "values", "final", "best": {"mean", "interval", "n"},
"runs": [{"run", "seed", "state", "steps", "final", "best", "best_step", "wall_s"}]}]}.`,
    )
    .action((file: string, overrides: string[], flags: SweepFlags) =>
      answer(flags, () => sweep(file, overrides, flags)),
    );
}

async function sweep(file: string, overrides: readonly string[], flags: SweepFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const plan = readSweep(file, {
    workspace,
    presetFolders: presetFolders(workspace),
    sweepFolders: sweepFolders(workspace),
    overrides,
  });
  if (flags.compare) return answerOf(compare(plan, runsOf(plan, workspace)), workspace);
  const place = await placeOf(flags);
  const jobs = flags.jobs ?? (place ? jobsOnCluster : 1);
  const halt = new AbortController();
  const printLine = (line: string): void => void process.stderr.write(`${line}\n`);
  const interrupt = (): void => {
    if (halt.signal.aborted) {
      printLine('The current runs continue: see ragen runs. To follow them again, run the same command.');
      process.exit(130);
    }
    halt.abort();
    printLine('Stopping after the current steps (interrupt again to leave the runs running).');
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  try {
    const table = () => (jobs === 1 ? new StepTable() : null);
    const runs = await runSweep(plan, { workspace, jobs, place, halt: halt.signal, table, printLine });
    return answerOf(compare(plan, runs), workspace);
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
  }
}

/** Writes the comparison to its folder and returns it as the command's answer. */
function answerOf(comparison: Comparison, workspace: string): Answer {
  const folder = resolve(workspace, sweepsFolder, comparison.sweep);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'comparison.json'), `${JSON.stringify(comparison, null, 1)}\n`);
  writeFileSync(join(folder, 'comparison.csv'), comparisonCsv(comparison));
  return {
    document: comparison,
    plainText: `${comparisonTable(comparison)}\n\nMeans over seeds ± 95 % interval. As JSON and CSV: ${folder}`,
    failed: incomplete(comparison),
  };
}
