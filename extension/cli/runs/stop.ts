// `ragen stop`: ends a run and saves a checkpoint of its last finished step.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import type { RunStatus } from '../../run-data/run-status-file';
import type { RunFolder } from '../../trainer/store/run-folder';
import { follow } from '../run-lifecycle/follow';
import { addHalt } from '../run-lifecycle/halt';

export const addStop = (program: Command): void =>
  addHalt(program, 'stop', 'end a run, with a checkpoint of its last finished step', stop);

/** Sends the stop request and waits until the trainer has ended. */
async function stop(folder: RunFolder): Promise<RunStatus> {
  const status = await follow(folder, null, AbortSignal.abort());
  if (!status) throw new UserError(`run ${folder.id} has no status: its trainer ended before the first step`);
  return status;
}
