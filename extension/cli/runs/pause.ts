// `ragen pause`: pauses a run until it is resumed.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { pause } from '../../protocol/trainer-link';
import type { RunStatus } from '../../run-data/run-status-file';
import type { RunFolder } from '../../trainer/store/run-folder';
import { joinTrainer } from '../run-lifecycle/follow';
import { addHalt } from '../run-lifecycle/halt';

export const addPause = (program: Command): void =>
  void addHalt(program, 'pause', 'pause a run until it is resumed', pauseTraining);

async function pauseTraining(folder: RunFolder): Promise<RunStatus> {
  const trainer = await joinTrainer(folder);
  if (!trainer) throw new UserError(`run ${folder.id} does not answer: try again, or see the run’s trainer.log`);
  try {
    return await trainer.ask(pause, null);
  } finally {
    trainer.dispose();
  }
}
