// `ragen resume`: resumes a run. If the run has a paused trainer, that trainer continues; otherwise a new trainer
// starts from a checkpoint. From an earlier checkpoint, the user chooses between a fork, which keeps the run as it is,
// and discarding the later part of the run.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { resumeSettings, scheduleNote } from '../../trainer/run/resume-settings';
import { requireTrusted } from '../../trainer/run/trusted-run';
import { LeaseWatch, readLease } from '../../trainer/store/held-lease';
import { RunFolder } from '../../trainer/store/run-folder';
import { placeOfResume, withPlace } from '../jobs/job-options';
import { withCommon, withTrust, type ResumeFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';
import { changeSettings, joinTrainer } from '../run-lifecycle/follow';
import { forkOf } from '../run-lifecycle/fork-run';
import { refuseDiscard } from '../run-lifecycle/refuse-discard';
import { followTrainer, serveAndFollow, start } from '../run-lifecycle/run-and-follow';
import { resume as resumeTraining } from '../../protocol/trainer-link';

export function addResume(program: Command): void {
  withTrust(withPlace(withCommon(program.command('resume').description('resume a run from a checkpoint'))))
    .argument('<run>', 'id of the run')
    .argument(
      '[settings...]',
      'settings to change from the resumed step on, as key=value, such as trainer.total_training_steps=200',
    )
    .option('--checkpoint <name>', 'name of a checkpoint, such as step-000100 (default: the newest)')
    .option('--from <step>', 'step of a checkpoint, such as 100; the same as --checkpoint')
    .option('--fork', 'start a new run from the checkpoint and leave this run as it is')
    .option('--yes', 'with --fork: start the new run although its plan exceeds the available memory')
    .option('--discard', 'remove the steps, checkpoints and events after the checkpoint')
    .option(
      '--accept-damaged-logs',
      'resume although logs differ from their checksums; the readable lines of each log and a copy of the original file are kept',
    )
    .option('--detach', 'exit as soon as the trainer is running, instead of following the run')
    .action((id: string, settings: string[], flags: ResumeFlags) => answer(flags, () => resume(id, settings, flags)));
}

/**
 * Changes the settings in `overrides`, resumes the run with its paused trainer or a new trainer, and follows the run to
 * its end.
 */
async function resume(id: string, overrides: readonly string[], flags: ResumeFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folder = RunFolder.find(workspace, id);
  const checkpoint = checkpointOf(flags);
  if (flags.fork) {
    requireTrusted(folder, flags);
    return start(overrides, flags, await forkOf(folder, workspace, checkpoint));
  }
  const settings = resumeSettings(overrides, folder.id);
  const pid = readLease(folder.path)?.lease?.pid;
  if (checkpoint === undefined && (await resumePausedTrainer(folder, settings)))
    return followTrainer(folder, workspace, { pid, ended: () => null }, flags);
  requireTrusted(folder, flags);
  if (checkpoint !== undefined && !flags.discard) refuseDiscard(folder, checkpoint);
  const place = await placeOfResume(folder.id, folder.readJob(), flags);
  const args = checkpoint === undefined ? ['--resume'] : ['--checkpoint', checkpoint];
  const accepts = flags.acceptDamagedLogs ? ['--accept-damaged-logs'] : [];
  const note = scheduleNote(folder, settings);
  if (note !== null) process.stderr.write(`note: ${note}\n`);
  const changes = overrides.flatMap(override => ['--set', override]);
  return serveAndFollow(folder, workspace, [...args, ...accepts, ...changes], flags, place);
}

/** Returns the checkpoint that the user named; undefined for the newest. Throws a UserError if the options conflict. */
function checkpointOf({ checkpoint, from, fork, discard }: ResumeFlags): string | undefined {
  if (checkpoint !== undefined && from !== undefined)
    throw new UserError('--from and --checkpoint both name a checkpoint: leave one of them out');
  if (fork && discard) throw new UserError('--fork keeps the run and --discard shortens it: leave one of them out');
  return from ?? checkpoint;
}

/** Resumes a paused trainer with changed settings; false if the run has no paused trainer. */
async function resumePausedTrainer(folder: RunFolder, values: Record<string, number>): Promise<boolean> {
  if (folder.readStatus()?.state !== 'paused' || !(await new LeaseWatch(folder.path).decide())) return false;
  const trainer = await joinTrainer(folder);
  if (!trainer) return false;
  try {
    if (Object.keys(values).length > 0) await changeSettings(trainer, values);
    await trainer.ask(resumeTraining, null);
  } finally {
    trainer.dispose();
  }
  return true;
}
