// `ragen stop`: ends a run and saves a checkpoint of its last finished step. The job of a queued run is cancelled.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { isOver } from '../../ray/ray-wire';
import type { RunStatus } from '../../run-data/run-status-file';
import { LeaseWatch } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';
import { clusterOfJob, withOn, type OnFlags } from '../jobs/job-options';
import { settleRun } from '../jobs/settled-run';
import type { CommonFlags } from '../options/run-options';
import { follow } from '../run-lifecycle/follow';
import { addHalt } from '../run-lifecycle/halt';

/** Milliseconds between requests for the state of a cancelled job. */
const pollMs = 500;

export const addStop = (program: Command): void => {
  const description = 'end a run, with a checkpoint of its last finished step';
  const command = addHalt(program, 'stop', description, stop, cancel);
  withOn(command, 'Ray cluster of a run whose job is queued (default: RAY_ADDRESS)');
};

/** Sends the stop request and waits until the trainer has ended. */
export async function stop(folder: RunFolder): Promise<RunStatus> {
  const status = await follow(folder, null, AbortSignal.abort());
  if (!status) throw new UserError(`run ${folder.id} has no status: its trainer ended before the first step`);
  return status;
}

/** Cancels the job of a queued run and waits until it has ended. A trainer that has started meanwhile is stopped. */
async function cancel(folder: RunFolder, flags: CommonFlags & OnFlags): Promise<RunStatus> {
  const record = folder.readJob()!;
  const jobs = clusterOfJob(folder.id, record, flags);
  let job = await jobs.get(record.id);
  if (job && !isOver(job)) await jobs.stop(record.id);
  while (job && !isOver(job)) {
    if (await new LeaseWatch(folder.path).decide()) return stop(folder);
    await sleep(pollMs);
    job = await jobs.get(record.id);
  }
  const settled = await settleRun(folder, jobs, job);
  const status = settled ?? folder.readStatus();
  if (!status) throw new UserError(`run ${folder.id} has no status: restore its folder, or remove it`);
  return status;
}
