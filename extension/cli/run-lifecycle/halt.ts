// Shared implementation of `ragen stop` and `ragen pause`. The commands have the same effect as the editor's buttons,
// and are intended for runs that no terminal follows. `ragen resume` continues a stopped or a paused run.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import type { RunStatus } from '../../run-data/run-status-file';
import { progressOf } from '../../run-data/run-progress';
import { requireOwn } from '../../trainer/run/trusted-run';
import { LeaseWatch } from '../../trainer/store/held-lease';
import { RunFolder } from '../../trainer/store/run-folder';
import { isQueued } from '../jobs/settled-run';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';

/**
 * Adds a command that calls `halt` with the folder of a run in training. `cancel` is called for a run whose job is
 * queued, `unfollow` for a run of another trainer. Returns the command.
 */
export function addHalt<Flags extends CommonFlags>(
  program: Command,
  name: string,
  description: string,
  halt: (folder: RunFolder) => Promise<RunStatus>,
  cancel?: (folder: RunFolder, flags: Flags) => Promise<RunStatus>,
  unfollow?: (folder: RunFolder) => Promise<Answer>,
): Command {
  return withCommon(program.command(name).description(description))
    .argument('<run>', 'id of the run')
    .action((id: string, flags: Flags) =>
      answer(flags, async () => {
        const folder = RunFolder.find(workspaceOf(flags.workspace), id);
        if (folder.manifest.trainer && unfollow) return unfollow(folder);
        requireOwn(folder);
        const isServed = await new LeaseWatch(folder.path).decide();
        if (!isServed && !(cancel && isQueued(folder)))
          throw new UserError(`run ${id} is not training, so there is nothing to ${name}: see ragen runs`);
        const status = await (isServed ? halt(folder) : cancel!(folder, flags));
        const { state, step, total_steps, episodes } = status;
        const { unit, done, of } = progressOf(status);
        const job = folder.readJob();
        const place = job ? ` --on ${job.address}` : '';
        return {
          document: { run: id, state, step, total_steps, ...(episodes && { episodes }) },
          plainText: `Run ${id} is ${state} at ${unit} ${done} of ${of}; resume it with ragen resume ${id}${place}.`,
        };
      }),
    );
}
