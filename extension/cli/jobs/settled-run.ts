// Ends a run whose Ray job ended before its trainer started. No trainer writes the status of such a run, so the process
// that notices the end of the job writes the status. This file also formats the reason why a job ended.
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { isOver, type RayJob } from '../../ray/ray-wire';
import { RayUnreachable, type RayJobs } from '../../ray/ray-jobs';
import { isQueuedStatus } from '../../run-data/job-record';
import type { RunStatus } from '../../run-data/run-status-file';
import { LeaseWatch, readLease } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';

/** Number of lines of a job's log that a message contains, and their maximum length. */
const [shownLines, mostLineLength] = [5, 300];

/** Whether a run waits for the job that its job record names. */
export function isQueued(folder: RunFolder): boolean {
  const status = folder.readStatus();
  return status !== null && isQueuedStatus(status) && folder.readJob() !== null;
}

/** Returns the error for a run that cannot start, because its job waits for resources. */
export const alreadyQueued = (folder: RunFolder): UserError => {
  const { id, address } = folder.readJob()!;
  return new UserError(
    `run ${folder.id} is queued as Ray job ${id} of ${address}: wait for the job, or stop it with ragen stop ${folder.id} --on ${address}`,
  );
};

/** Returns why a job ended, with Ray's message and the last lines of the job's log. */
export async function jobEnd(jobs: RayJobs, id: string, job: RayJob | null): Promise<string> {
  if (job === null) return `Ray job ${id} is no longer known to ${jobs.url}`;
  const log = await jobs.logs(id).catch(error => {
    if (error instanceof RayUnreachable) return null;
    throw error;
  });
  const lines = (log ?? '').split('\n').filter(line => line.trim() !== '');
  const tail = lines.slice(-shownLines).map(line => `  ${printable(line).slice(0, mostLineLength)}`);
  const code = typeof job.driver_exit_code === 'number' ? `, exit code ${job.driver_exit_code}` : '';
  const message = job.message ? `: ${printable(job.message.trim().replace(/\s+/g, ' ')).slice(0, 1000)}` : '';
  const end = `Ray job ${id} ended (${job.status}${code}${message})`;
  return tail.length > 0 ? `${end}; the last lines of its log are:\n${tail.join('\n')}` : end;
}

/**
 * Writes the final status of a queued run whose job has ended: `stopped` if the job was stopped, else `failed` with the
 * reason. Returns null, and does nothing, if the job has not ended or a trainer has started. `job` is null if Ray does
 * not know the job.
 */
export async function settleRun(folder: RunFolder, jobs: RayJobs, job: RayJob | null): Promise<RunStatus | null> {
  const record = folder.readJob();
  if (job && (!isOver(job) || job.submission_id !== record?.id)) return null;
  if (!record || !isQueued(folder) || readLease(folder.path)?.live) return null;
  if (job?.status === 'STOPPED') return endQueued(folder);
  const why = (await jobEnd(jobs, record.id, job)).replace(/\s*\n\s*/g, ' | ');
  return endQueued(
    folder,
    `run ${folder.id} did not start: ${why}: correct the cause, then run ragen resume ${folder.id} --on ${record.address}`,
  );
}

/** Milliseconds to wait for the end of a cancelled job, and between requests for its state. */
const [cancelMs, pollMs] = [5000, 500];

/**
 * Cancels the job of a queued run; returns the run's status, or null if a trainer has started meanwhile. Ray ends a
 * queued job only when the job begins, which may be much later. If the job is still queued after `cancelMs`, the run
 * becomes `stopped` before the job ends. When the job begins, `ragen work` sees that the run no longer waits for the
 * job, and exits.
 */
export async function cancelJob(folder: RunFolder, jobs: RayJobs, id: string): Promise<RunStatus | null> {
  const lease = new LeaseWatch(folder.path);
  const deadline = performance.now() + cancelMs;
  let job = await jobs.get(id);
  if (job && !isOver(job)) await jobs.stop(id);
  for (;;) {
    if (lease.look() !== 'gone') return null;
    if (!isQueued(folder)) return folder.readStatus();
    if (!job || isOver(job)) return settleRun(folder, jobs, job);
    if (job.status === 'PENDING' && performance.now() > deadline) return endQueued(folder);
    await sleep(pollMs);
    job = await jobs.get(id);
  }
}

/**
 * Writes and returns the final status of a queued run. Returns null if a trainer has started. If the run failed,
 * `error` is the reason.
 */
async function endQueued(folder: RunFolder, error?: string): Promise<RunStatus | null> {
  const status = folder.readStatus();
  if (!status || !isQueued(folder)) return null;
  const { error: _, ...rest } = status;
  const ended: RunStatus = {
    ...rest,
    phase: 'idle',
    updated: new Date().toISOString(),
    ...(error === undefined ? { state: 'stopped' as const } : { state: 'failed' as const, error }),
  };
  await folder.writeStatus(ended);
  return ended;
}
