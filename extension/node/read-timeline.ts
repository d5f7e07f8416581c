// Reads the timeline files of a run folder (run-data/timeline.ts). Reads are limited in size and follow no link out of
// the folder.
import { join } from 'node:path';
import { UserError } from '../common/user-error';
import { decodeStep, type StepTimeline } from '../run-data/timeline';
import { runFiles, timelineFile } from '../run-data/run-file-names';
import { isMissing } from './bounded-file';
import { namesInRun, readRunFile } from './read-run-file';

/** Returns the steps whose spans are in the run folder, ascending. */
export async function keptSteps(folder: string): Promise<number[]> {
  return (await namesInRun(folder, runFiles.timeline))
    .flatMap(name => /^step-(\d{6,})\.jsonl$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/**
 * Returns the spans of a step, or of the step in progress for `current`; null if the run folder does not contain them.
 * @throws UserError if the file is damaged
 */
export async function readStepTimeline(folder: string, step: number | 'current'): Promise<StepTimeline | null> {
  const name = step === 'current' ? runFiles.timelineCurrent : timelineFile(step);
  let text: string;
  try {
    text = (await readRunFile(folder, name)).toString('utf8');
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  try {
    return decodeStep(text.split('\n'));
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new UserError(`store: ${join(folder, name)} is damaged (${reason}): remove the file`, { cause: error });
  }
}
