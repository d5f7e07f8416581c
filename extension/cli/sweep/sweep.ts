// `ragen sweep`: runs every point of a sweep file as ordinary runs, and compares the points. All results are in the run
// folders, so the same command continues an interrupted sweep. `.ragen/sweeps/<name>` has the plan and the comparison.
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { makeFolder, replaceFile } from '../../node/files';
import { sweepFiles } from '../../run-data/sweep-file';
import { jobsForCores } from './capacity';
import { compare, comparisonCsv, comparisonTable, incomplete, jobCount, retryCount } from './comparison';
import type { Comparison } from './comparison';
import { runSweep, runsOf } from './run-sweep';
import { watchStopRequest } from './stop-request';
import { sweepFolder, SweepIndex } from './sweep-index';
import { readSweep } from './sweep-plan';
import { placeOf, withPlace, type PlaceFlags } from '../jobs/job-options';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { presetFolders, sweepFolders, workspaceOf } from '../options/workspace';
import { StepTable } from '../output/step-table';

interface SweepFlags extends PlaceFlags {
  jobs?: number | 'auto';
  retries?: number;
  compare?: boolean;
  workspace?: string;
  json?: boolean;
}

/** Maximum number of concurrent runs on a cluster, unless --jobs is given; Ray queues jobs that lack resources. */
const jobsOnCluster = 16;

/** How often a failed run is tried again, unless --retries is given. */
const defaultRetries = 1;

export function addSweep(program: Command): void {
  withPlace(program.command('sweep'))
    .description('start a run for each entry of a list or grid of overrides, and compare the runs')
    .argument('<file>', 'YAML file, or the name of a sweep in config/sweeps or among the presets')
    .argument('[overrides...]', 'key=value, for every run')
    .option(
      '--jobs <n>',
      `maximum number of concurrent runs, or auto: cores ÷ workbench.threads (default: auto; with --on: ${jobsOnCluster})`,
      jobCount,
    )
    .option(
      '--retries <n>',
      `how often a failed run is tried again, from its last checkpoint (default: ${defaultRetries})`,
      retryCount,
    )
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
  halving              stops the worst points early: {first_step, factor: 2, least_points: 1, metric, goal: max}
An interrupt stops the active runs after their current step. The same command then continues the sweep and skips finished runs.
Output with --json: {"sweep", "keys", "points": [{"label", "config", "name", "values", "final", "best": {"mean", "interval", "n"},
"difference": {"n", "mean", "effectSize", "student", "bootstrap": {"low", "high"}}, "stopped": {"step", "value", "rank", "of"},
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
  if (flags.compare) return await answerOf(compare(plan, runsOf(plan, workspace)), workspace);
  const place = await placeOf(flags);
  const asked = flags.jobs ?? (place ? jobsOnCluster : 'auto');
  const jobs = asked === 'auto' ? jobsForCores(plan, availableParallelism()) : asked;
  const retries = flags.retries ?? defaultRetries;
  const halt = new AbortController();
  const printLine = (line: string): void => void process.stderr.write(`${line}\n`);
  const runs = runsOf(plan, workspace);
  const index = await SweepIndex.open(plan, runs, { jobs, retries }, workspace, sentence =>
    printLine(`note: ${sentence}`),
  );
  const stop = (remedy: string): void => {
    halt.abort();
    printLine(`Stopping after the current steps${remedy}.`);
  };
  const interrupt = (): void => {
    if (!halt.signal.aborted) return stop(' (interrupt again to leave the runs running)');
    printLine('The current runs continue: see ragen runs. To follow them again, run the same command.');
    process.exit(130);
  };
  const unwatch = watchStopRequest(sweepFolder(workspace, plan.id), () => stop(''));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  try {
    const table = () => (jobs === 1 ? new StepTable() : null);
    await runSweep(plan, runs, { workspace, jobs, retries, place, halt: halt.signal, index, table, printLine });
    return await answerOf(compare(plan, runs), workspace);
  } finally {
    unwatch();
    await index.close();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
  }
}

/** Writes the comparison to its folder and returns it as the command's answer. */
async function answerOf(comparison: Comparison, workspace: string): Promise<Answer> {
  const folder = sweepFolder(workspace, comparison.sweep);
  await makeFolder(folder);
  await replaceFile(join(folder, sweepFiles.comparison), `${JSON.stringify(comparison, null, 1)}\n`);
  await replaceFile(join(folder, sweepFiles.table), comparisonCsv(comparison));
  const unpaired = comparison.points.every(({ difference }) => difference === null);
  const legend = [
    'Means over seeds ± 95 % interval (from three seeds on).',
    ...(unpaired
      ? []
      : ['Difference of the final success from the first line, paired by seed, in points (d: effect size).']),
    `As JSON and CSV: ${folder}`,
  ];
  return {
    document: comparison,
    plainText: `${comparisonTable(comparison)}\n\n${legend.join(' ')}`,
    failed: incomplete(comparison),
  };
}
