// Starts the trainer of a run: a detached Node process that outlives the terminal and the editor.
import type { TrainerProcess } from './trainer-exit';
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../../common/user-error';
import { installation } from '../../node/installation';
import { openToAppendSync } from '../../node/regular-file';
import { runFiles } from '../../run-data/run-file-names';
import { requireNoLinks, trustFlag } from '../../trainer/run/trusted-run';
import { alreadyTrained, readLease } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';
import { alreadyQueued, isQueued } from '../jobs/settled-run';
import { endBeforeServing } from './trainer-end-message';

/**
 * The trainer of a run ended before it served the run. The message is the trainer's own error, if the trainer recorded
 * one.
 */
export class TrainerEnded extends UserError {}

/**
 * Starts the trainer of a run and waits until the trainer serves the run or has finished. Precondition: the caller
 * created the run or checked that it is trusted, because the trainer executes the code that the manifest names.
 * @param job id of the Ray job that this process belongs to; the trainer then ends when this process ends
 * @throws UserError if another trainer serves the run, or if the run has a queued job; TrainerEnded if the new trainer
 * ends with an error before it serves the run
 */
export async function startTrainer(
  folder: RunFolder,
  workspace: string,
  args: readonly string[],
  job?: string,
): Promise<TrainerProcess> {
  const other = readLease(folder.path);
  if (other?.live) throw new UserError(alreadyTrained(folder.id, folder.path, other.lease));
  requireNoLinks(folder);
  if (job === undefined) await leaveJob(folder);
  const earlier = folder.readStatus()?.updated;
  const logFile = openToAppendSync(folder.file(runFiles.log));
  const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    [installation.trainer, '--run', folder.path, '--workspace', workspace, trustFlag, folder.manifestSha256, ...args],
    {
      cwd: workspace,
      detached: job === undefined,
      windowsHide: true,
      stdio: ['ignore', 'ignore', logFile],
      env: { ...(process.versions.electron ? process.env : env), ORT_DISABLE_TELEMETRY: '1' },
    },
  );
  closeSync(logFile);
  child.unref();
  let failed: Error | undefined;
  child.once('error', error => (failed = error));
  const trainer: TrainerProcess = {
    pid: child.pid,
    ended: () =>
      child.exitCode === null && child.signalCode === null ? null : { code: child.exitCode, signal: child.signalCode },
  };
  for (;;) {
    const lease = readLease(folder.path);
    // A live lease alone does not show that the trainer serves the run, because the trainer acquires the lease before
    // it checks the checkpoint and writes a status.
    if (lease?.live && lease.lease?.pid === child.pid && folder.readStatus()?.updated !== earlier) return trainer;
    if (failed) throw new TrainerEnded(`trainer: ${process.execPath} does not start: ${failed.message}`);
    const end = trainer.ended();
    if (end?.code === 0) return trainer;
    if (end) {
      const status = folder.readStatus();
      const own = status?.updated === earlier ? undefined : status?.error; // ignore an earlier trainer's error
      throw new TrainerEnded(own ?? endBeforeServing(folder, child.pid, end));
    }
    await sleep(20);
  }
}

/** Removes the record of an ended job from a run that starts on this machine. @throws UserError if the job is queued */
async function leaveJob(folder: RunFolder): Promise<void> {
  if (isQueued(folder)) throw alreadyQueued(folder);
  if (folder.readJob()) await folder.writeJob(null);
}
