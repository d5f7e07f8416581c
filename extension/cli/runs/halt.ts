// `ragen stop` and `ragen pause`: the counterparts of the editor's buttons, for a run that is not followed in a
// terminal. `ragen resume` undoes both.
import type { Command } from 'commander';
import { pause } from '../../protocol/trainer-link';
import type { RunStatus } from '../../run-data/run-status-file';
import { progressOf } from '../../run-data/run-progress';
import { UserError } from '../../common/user-error';
import { readLease } from '../../trainer/store/lease';
import { RunFolder } from '../../trainer/store/run-folder';
import { answer } from '../answer';
import { answered, follow, joinTrainer } from './follow';
import { withCommon } from './serve';
import type { CommonFlags } from './serve';
import { workspaceOf } from './start';

export function addHalts(program: Command): void {
  add(program, 'stop', 'end a run, with a checkpoint of its last finished step', stopped);
  add(program, 'pause', 'pause a run until it is resumed', paused);
}

function add(program: Command, name: string, says: string, halt: (folder: RunFolder) => Promise<RunStatus>): void {
  withCommon(program.command(name).description(says))
    .argument('<run>', 'id of the run')
    .action((id: string, flags: CommonFlags) =>
      answer(flags, async () => {
        const folder = RunFolder.find(workspaceOf(flags.workspace), id);
        if (!readLease(folder.path)?.live)
          throw new UserError(`run ${id} is not training, so there is nothing to ${name}: see ragen runs`);
        const status = await halt(folder);
        const { state, step, total_steps, episodes } = status;
        const { unit, done, of } = progressOf(status);
        return {
          document: { run: id, state, step, total_steps, ...(episodes && { episodes }) },
          plainText: `Run ${id} is ${state} at ${unit} ${done} of ${of}; resume it with ragen resume ${id}.`,
        };
      }),
    );
}

/** Requests the stop and waits for the end. */
async function stopped(folder: RunFolder): Promise<RunStatus> {
  const status = await follow(folder, null, AbortSignal.abort());
  if (!status) throw new UserError(`run ${folder.id} has no status: its trainer ended before the first step`);
  return status;
}

async function paused(folder: RunFolder): Promise<RunStatus> {
  const trainer = await joinTrainer(folder);
  if (!trainer) throw new UserError(`run ${folder.id} does not answer: try again, or see its trainer.log`);
  try {
    return await answered(folder, trainer.sendRequest(pause, null));
  } finally {
    trainer.dispose();
  }
}
