// `ragen stop`: ends a run and saves a checkpoint of its last finished step. The job of a queued run is cancelled.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import type { RunStatus } from '../../run-data/run-status-file';
import type { RunFolder } from '../../trainer/store/run-folder';
import { clusterOfJob, withOn, type OnFlags } from '../jobs/job-options';
import { cancelJob } from '../jobs/settled-run';
import type { CommonFlags } from '../options/run-options';
import { follow } from '../run-lifecycle/follow';
import { unfollow } from '../run-lifecycle/follower-process';
import { addHalt } from '../run-lifecycle/halt';

export const addStop = (program: Command): void => {
  const description = 'end a run, with a checkpoint of its last finished step';
  const command = addHalt(program, 'stop', description, stop, cancel, unfollow);
  withOn(command, 'Ray cluster of a run whose job is queued (default: RAY_ADDRESS)');
};

/** Sends the stop request and waits until the trainer has ended. */
export async function stop(folder: RunFolder): Promise<RunStatus> {
  const status = await follow(folder, null, AbortSignal.abort());
  if (!status) throw new UserError(`run ${folder.id} has no status: its trainer ended before the first step`);
  return status;
}

/** Cancels the job of a queued run. A trainer that has started meanwhile is stopped. */
async function cancel(folder: RunFolder, flags: CommonFlags & OnFlags): Promise<RunStatus> {
  const record = folder.readJob()!;
  return (await cancelJob(folder, clusterOfJob(folder.id, record, flags), record.id)) ?? stop(folder);
}
