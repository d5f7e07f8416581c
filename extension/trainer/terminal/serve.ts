// Commands that start or resume a run: create the run, start its trainer, follow it to its end, and return the run's
// summary; for an evaluation also the evaluation's summary.
import type { Command } from 'commander';
import { hasRunFile, readRunFileSync } from '../../protocol/run-file';
import { runFiles } from '../../protocol/run-folder';
import type { Manifest } from '../../protocol/run-folder';
import { isUnended } from '../../protocol/run-progress';
import { UserError } from '../../protocol/user-error';
import type { EvaluationSummary } from '../evaluation/evaluation-summary';
import { resume as goOn } from '../../protocol/trainer-link';
import { resumeSettings, scheduleNote } from '../resume-settings';
import { readLease } from '../store/lease';
import { RunFolder } from '../store/run-folder';
import { requireTrusted, trustFlag } from '../trusted-run';
import { onlyEvaluates } from '../stored-config';
import type { Answer } from './answer';
import { formatEvaluation } from './format-evaluation';
import { answered, changeSettings, eventLines, follow, joinTrainer, metricLines } from './follow';
import { TrainerEnded, unexplainedEnd, makeRun, startTrainer, workspaceOf } from './start';
import type { TrainerProcess } from './start';
import { StepTable } from './step-table';
import { formatClosing, summarize } from './summary';
import type { RunSummary } from './summary';

export interface CommonFlags {
  json?: boolean;
  workspace?: string;
}

/** sha256 of a manifest from elsewhere that the user allows to be executed once. */
export interface TrustFlags {
  trustCode?: string;
}

export interface StartFlags extends CommonFlags, TrustFlags {
  configName?: string;
  config?: string;
  detach?: boolean;
}

export interface ResumeFlags extends CommonFlags, TrustFlags {
  checkpoint?: string;
  acceptDamagedLogs?: boolean;
  detach?: boolean;
}
/** Adds --workspace and --json. */
export const withCommon = (command: Command): Command =>
  command
    .option('--workspace <folder>', 'folder whose .ragen/runs holds the runs (default: here)')
    .option('--json', 'print one JSON document on standard output, logs on standard error');

/** Adds --trust-code, for commands that execute what an earlier run names. */
export const withTrust = (command: Command): Command =>
  command.option(
    `${trustFlag} <sha256>`,
    'trust the manifest.json with this sha256 for this command, although your trainer did not write it',
  );

/** Adds overrides, --config-name, --config and --detach as well. */
export const withConfig = (command: Command): Command =>
  withCommon(command)
    .argument('[overrides...]', 'key=value, such as trainer.total_training_steps=20')
    .option('--config-name <name>', 'configuration by name (see ragen presets)')
    .option('--config <file>', 'configuration file')
    .option('--detach', 'return as soon as the trainer serves the run');

/**
 * Creates a run and follows it to its end. `earlier` names a run whose configuration is used instead of a name or file:
 * with `from`, the overrides are applied on top of it; with `again`, they replace its own overrides.
 */
export async function start(
  overrides: readonly string[],
  flags: StartFlags,
  earlier: { from?: Manifest; again?: Manifest } = {},
): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const { folder, notes } = await makeRun({
    configName: flags.configName,
    configFile: flags.config,
    ...earlier,
    overrides,
    workspace,
  });
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  return serveAndFollow(folder, workspace, [], flags);
}

/**
 * Resumes a run, with `overrides` of settings: with its paused trainer if there is one, else with a new trainer from a
 * checkpoint. Follows it to its end.
 */
export async function resume(id: string, overrides: readonly string[], flags: ResumeFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folder = RunFolder.find(workspace, id);
  const settings = resumeSettings(overrides, folder.id);
  const pid = readLease(folder.path)?.lease?.pid;
  if (flags.checkpoint === undefined && (await wakeTrainer(folder, settings)))
    return followTrainer(folder, workspace, { pid, ended: () => null }, flags);
  requireTrusted(folder, flags);
  const args = flags.checkpoint === undefined ? ['--resume'] : ['--checkpoint', flags.checkpoint];
  const accepts = flags.acceptDamagedLogs ? ['--accept-damaged-logs'] : [];
  const note = scheduleNote(folder, settings);
  if (note !== null) process.stderr.write(`note: ${note}\n`);
  const changes = overrides.flatMap(override => ['--set', override]);
  return serveAndFollow(folder, workspace, [...args, ...accepts, ...changes], flags);
}

/** Resumes the trainer of a paused run with changed settings; false if there is none. */
async function wakeTrainer(folder: RunFolder, values: Record<string, number>): Promise<boolean> {
  if (folder.readStatus()?.state !== 'paused' || !readLease(folder.path)?.live) return false;
  const trainer = await joinTrainer(folder);
  if (!trainer) return false;
  try {
    if (Object.keys(values).length > 0) await changeSettings(folder, trainer, values);
    await answered(folder, trainer.sendRequest(goOn, null));
  } finally {
    trainer.dispose();
  }
  return true;
}

/**
 * Starts a trainer with `args` for an existing run and follows it to its end. If the trainer ends before it serves the
 * run, the result has the form of any other failed run, since it is chance whether the CLI sees it serving for a
 * moment.
 */
async function serveAndFollow(
  folder: RunFolder,
  workspace: string,
  args: readonly string[],
  flags: { json?: boolean; detach?: boolean },
): Promise<Answer> {
  try {
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

/** The summary of a run whose trainer refused it; without metrics if these were refused. */
function summaryOfReadable(folder: RunFolder): RunSummary {
  const status = folder.readStatus();
  try {
    return summarize(folder, metricLines(folder), eventLines(folder), status);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return summarize(folder, [], eventLines(folder), status);
  }
}

async function followTrainer(
  folder: RunFolder,
  workspace: string,
  trainer: TrainerProcess,
  flags: { json?: boolean; detach?: boolean },
): Promise<Answer> {
  const evaluates = onlyEvaluates(folder.manifest.config);
  if (flags.detach)
    return {
      document: { run: folder.id, folder: folder.path },
      plainText: `Run ${folder.id} is ${evaluates ? 'playing' : 'training'}: ${folder.path}`,
    };
  process.stderr.write(`Run ${folder.id} → ${folder.path}\n`);
  const table = new StepTable(evaluates ? 'episode' : 'step');
  const status = await follow(folder, table, undefined, undefined, () => trainer.ended() !== null);
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

/** The summary of an evaluation; null for other runs, and before its end. */
function evaluationOf(folder: RunFolder): EvaluationSummary | null {
  return hasRunFile(folder.path, runFiles.evaluation)
    ? (JSON.parse(readRunFileSync(folder.path, runFiles.evaluation).toString('utf8')) as EvaluationSummary)
    : null;
}
