// The process that follows a run of another trainer: `ragen attach` itself, or a detached `ragen attach --run`, which
// outlives the terminal and the editor. It holds the run's lease.
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../../common/user-error';
import { isUnended } from '../../run-data/run-progress';
import { installation } from '../../node/installation';
import { openToAppendSync } from '../../node/regular-file';
import { holderOf } from '../../node/lease-liveness';
import { runFiles } from '../../run-data/run-file-names';
import { requireNoLinks } from '../../trainer/run/trusted-run';
import { defaultDependencies, LeaseWatch, readLease } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';
import type { Answer } from '../output/answer';

/** Milliseconds in which a follower starts, and in which it ends. */
const timeoutMs = 60_000;

/**
 * Starts a process that follows the run, and waits until the process holds the run's lease or has ended. What it finds
 * later, also errors, it writes to the run folder. If `signal` is aborted before, the process is ended; the caller looks
 * at the signal. Throws a UserError if the process ends with an error before.
 */
export async function startFollower(
  folder: RunFolder,
  workspace: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  requireNoLinks(folder);
  const logFile = openToAppendSync(folder.file(runFiles.log));
  const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    [installation.cli, 'attach', '--run', folder.id, '--workspace', workspace, ...args],
    {
      cwd: workspace,
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'ignore', logFile],
      env: process.versions.electron ? process.env : env,
    },
  );
  closeSync(logFile);
  child.unref();
  let failed: Error | undefined;
  child.once('error', error => (failed = error));
  for (const began = performance.now(); performance.now() - began < timeoutMs;) {
    if (failed) throw new UserError(`${process.execPath} does not start: ${failed.message}`);
    const hasEnded = child.exitCode !== null || child.signalCode !== null;
    if (signal.aborted) {
      if (hasEnded) return;
      child.kill('SIGTERM');
    } else if (hasEnded && child.exitCode !== 0)
      throw new UserError(`run ${folder.id} cannot be followed: see ${folder.file(runFiles.log)}`);
    if (hasEnded || (!signal.aborted && readLease(folder.path)?.lease?.pid === child.pid)) return;
    await sleep(20);
  }
}

/** Ends the process that follows a run. Throws a UserError if none does. */
export async function unfollow(folder: RunFolder): Promise<Answer> {
  const lease = readLease(folder.path)?.lease;
  if (!lease || holderOf(lease, defaultDependencies) !== 'held')
    throw new UserError(`run ${folder.id} is not followed by a process of this machine: see ragen runs`);
  process.kill(lease.pid, 'SIGTERM');
  const watch = new LeaseWatch(folder.path);
  for (const began = performance.now(); watch.look() !== 'gone';) {
    if (performance.now() - began > timeoutMs)
      throw new UserError(`process ${lease.pid}, which follows run ${folder.id}, does not end: end it`);
    await sleep(50);
  }
  const status = folder.readStatus();
  // On Windows, a process ends without writing its status.
  if (status && isUnended(status.state)) await folder.writeStatus({ ...status, state: 'stopped' });
  const { name } = folder.manifest.trainer!;
  return {
    document: { run: folder.id, state: 'stopped' },
    plainText: `Run ${folder.id} is no longer followed; ${name} is not affected.`,
  };
}
