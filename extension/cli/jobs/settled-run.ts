// The end of a run whose Ray job ended before its trainer started. No trainer writes the status of such a run, so the
// process that notices the end of the job writes it. Also formats why a job ended.
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { isOver, type RayJob } from '../../ray/ray-wire';
import { RayUnreachable, type RayJobs } from '../../ray/ray-jobs';
import { isQueuedStatus } from '../../run-data/job-record';
import type { RunStatus } from '../../run-data/run-status-file';
import { readLease } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';

/** Number of lines of a job's log that a message contains, and their maximum length. */
const [shownLines, mostLineLength] = [5, 300];

/** Whether a run waits for the job in its record. */
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
 * reason. Does nothing if the job has not ended or a trainer has started. `job` is null if Ray does not know the job.
 */
export async function settleRun(folder: RunFolder, jobs: RayJobs, job: RayJob | null): Promise<RunStatus | null> {
  const record = folder.readJob();
  if (job && (!isOver(job) || job.submission_id !== record?.id)) return null;
  if (!record || !isQueued(folder) || readLease(folder.path)?.live) return null;
  const why = job?.status === 'STOPPED' ? undefined : await jobEnd(jobs, record.id, job);
  const status = folder.readStatus();
  if (!status || !isQueued(folder)) return null; // a trainer has started in the meantime
  const { error: _, ...rest } = status;
  const ended: RunStatus = {
    ...rest,
    phase: 'idle',
    updated: new Date().toISOString(),
    ...(why === undefined
      ? { state: 'stopped' as const }
      : {
          state: 'failed' as const,
          error: `run ${folder.id} did not start: ${why.replace(/\s*\n\s*/g, ' | ')}: correct the cause, then run ragen resume ${folder.id} --on ${record.address}`,
        }),
  };
  await folder.writeStatus(ended);
  return ended;
}
