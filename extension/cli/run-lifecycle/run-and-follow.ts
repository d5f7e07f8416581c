// Starts a run's trainer, follows the run to its end, and returns the run's summary. For an evaluation, the result also
// contains the evaluation's summary.
import { isUnended } from '../../run-data/run-progress';
import { UserError } from '../../common/user-error';
import { hasRunFile, readRunFileSync } from '../../node/read-run-file';
import { formatShortage } from '../../run-data/memory-shortage';
import { runFiles } from '../../run-data/run-file-names';
import { type Manifest } from '../../run-data/run-manifest';
import type { EvaluationSummary } from '../../trainer/evaluation/evaluation-summary';
import { onlyEvaluates } from '../../trainer/run/stored-config';
import type { RunFolder } from '../../trainer/store/run-folder';
import type { StartFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import type { Answer } from '../output/answer';
import { formatEvaluation } from '../output/format-evaluation';
import { formatClosing, summarize, type RunSummary } from '../output/run-summary';
import { StepTable } from '../output/step-table';
import { placeOf, type JobPlace } from '../jobs/job-options';
import { submitRun } from '../jobs/submit-run';
import type { LeaseWatch } from '../../trainer/store/held-lease';
import { eventLines, follow, metricLines } from './follow';
import { makeRun } from './make-run';
import { acceptShortage } from './memory-question';
import { unexplainedEnd } from './trainer-end-message';
import { TrainerEnded, startTrainer } from './trainer-process';
import { type TrainerProcess } from './trainer-exit';

interface FollowFlags {
  json?: boolean;
  detach?: boolean;
}

/**
 * Creates a run and follows it to its end. If `earlier` holds the manifest of an earlier run, the new run uses that
 * run's configuration, and the user gives no configuration name or file. With `earlier.from`, `overrides` are applied
 * to that configuration. With `earlier.again`, they replace the overrides of the earlier run. `earlier.parent` is the
 * checkpoint from which the new run is forked.
 */
export async function start(
  overrides: readonly string[],
  flags: StartFlags,
  earlier: { from?: Manifest; again?: Manifest; parent?: Manifest['parent'] } = {},
): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const place = await placeOf(flags); // fails before a run folder is created
  const { folder, notes } = await makeRun({
    configName: flags.configName,
    configFile: flags.config,
    ...earlier,
    overrides,
    workspace,
    onShortage: memory =>
      place
        ? void process.stderr.write(
            `note: memory: ${formatShortage(memory)} on this machine; the job has the memory of its node\n`,
          )
        : acceptShortage(memory, flags),
  });
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  return serveAndFollow(folder, workspace, [], flags, place);
}

/**
 * Starts a trainer with `args` for an existing run, on this machine or as a job at `place`, and follows the run to its
 * end. The result is the same whether the trainer ends before it serves the run or fails later. The CLI cannot
 * distinguish these cases reliably, because it polls the run folder and can miss a trainer that serves the run only
 * briefly.
 */
export async function serveAndFollow(
  folder: RunFolder,
  workspace: string,
  args: readonly string[],
  flags: FollowFlags,
  place: JobPlace | null,
): Promise<Answer> {
  try {
    if (place) return await submitAndFollow(folder, workspace, args, flags, place);
    return await followTrainer(folder, workspace, await startTrainer(folder, workspace, args), flags);
  } catch (error) {
    if (!(error instanceof TrainerEnded)) throw error;
    const found = summaryOfReadable(folder);
    const summary = isUnended(found.state) ? { ...found, state: 'failed' as const } : found;
    const { message } = error;
    return {
      document: { ...summary, error: { message } },
      plainText: formatClosing(summary, workspace),
      failed: message,
    };
  }
}

/** Submits a run as a job and follows it. With `--detach`, returns as soon as Ray has accepted the job. */
async function submitAndFollow(
  folder: RunFolder,
  workspace: string,
  args: readonly string[],
  flags: FollowFlags,
  place: JobPlace,
): Promise<Answer> {
  const note = (sentence: string): void => void process.stderr.write(`${sentence}\n`);
  const job = await submitRun(folder, workspace, args, place, note);
  const queued = `Run ${folder.id} is Ray job ${job.id} of ${place.jobs.url}`;
  if (flags.detach)
    return {
      document: { run: folder.id, folder: folder.path, job: job.id },
      plainText: `${queued}: ${folder.path}`,
    };
  note(queued);
  const halt = new AbortController();
  const interrupt = (): void => {
    if (halt.signal.aborted) {
      note(`The job stays queued: see ragen jobs --on ${place.jobs.url}. Folder: ${folder.path}`);
      process.exit(130);
    }
    halt.abort();
    note('Cancelling the job (interrupt again to end this command without waiting).');
  };
  process.on('SIGINT', interrupt);
  let served: boolean;
  try {
    served = await job.untilServed(halt.signal);
  } finally {
    process.off('SIGINT', interrupt);
  }
  if (served) return followTrainer(folder, workspace, job, flags);
  const summary = summaryOfReadable(folder);
  const error = folder.readStatus()?.error;
  if (error !== undefined) throw new TrainerEnded(error);
  return { document: summary, plainText: formatClosing(summary, workspace) };
}

/** Returns the summary of a run that the trainer rejected. If the metrics are invalid, the summary has no metrics. */
function summaryOfReadable(folder: RunFolder): RunSummary {
  const status = folder.readStatus();
  try {
    return summarize(folder, metricLines(folder), eventLines(folder), status);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return summarize(folder, [], eventLines(folder), status);
  }
}

/**
 * Follows the run that a trainer serves until the run ends. With `--detach`, returns at once. If `halt` is given, the
 * caller handles interrupts (see `follow`).
 */
export async function followTrainer(
  folder: RunFolder,
  workspace: string,
  trainer: TrainerProcess,
  flags: FollowFlags,
  halt?: AbortSignal,
): Promise<Answer> {
  const evaluates = onlyEvaluates(folder.manifest.config);
  if (flags.detach)
    return {
      document: { run: folder.id, folder: folder.path },
      plainText: `Run ${folder.id} is ${evaluates ? 'playing' : 'training'}: ${folder.path}`,
    };
  process.stderr.write(`Run ${folder.id} → ${folder.path}\n`);
  const table = new StepTable(evaluates ? 'episode' : 'step');
  const status = await follow(folder, table, halt, undefined, lease => isRunOver(trainer, lease));
  const summary = summarize(folder, metricLines(folder), eventLines(folder), status);
  const gone = status === null || isUnended(status.state);
  const failed = gone ? await unexplainedEnd(folder, trainer) : status?.error;
  const evaluation = evaluationOf(folder);
  return {
    document: {
      ...summary,
      ...(evaluation && { evaluation }),
      ...(failed !== undefined && { error: { message: failed } }),
    },
    plainText: evaluation ? formatEvaluation(evaluation) : formatClosing(summary, workspace, status?.episodes),
    failed,
  };
}

/** Whether the run of a trainer has ended, as far as the state of the run's lease shows. */
export const isRunOver = (trainer: TrainerProcess, lease: ReturnType<LeaseWatch['look']>): boolean =>
  trainer.runOver?.(lease) ?? (lease === 'gone' || trainer.ended() !== null);

/** Returns the summary of an evaluation; null for other runs and for an unfinished evaluation. */
function evaluationOf(folder: RunFolder): EvaluationSummary | null {
  return hasRunFile(folder.path, runFiles.evaluation)
    ? (JSON.parse(readRunFileSync(folder.path, runFiles.evaluation).toString('utf8')) as EvaluationSummary)
    : null;
}
