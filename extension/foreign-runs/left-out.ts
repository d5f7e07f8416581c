// Which data of another trainer's run is not shown, in sentences for the user: the terminal and the pages show them, and
// the run's events contain them. A file that cannot be read never prevents that the other files are shown.
import { counted } from '../common/numbers';
import { UserError } from '../common/user-error';
import { storeError } from '../node/files';
import { mostFiles, type SourceFolder } from './source-folder';

/**
 * Returns why a file of the trainer could not be read, in one sentence. Throws the error if it is about the run folder
 * `own`, or is no error of a file.
 */
export function problemOf(error: unknown, file: string, own?: string): string {
  const isOwn = own !== undefined && error instanceof UserError && error.message.includes(own);
  const isOfFile = error instanceof UserError || (error as NodeJS.ErrnoException).code !== undefined;
  if (isOwn || !isOfFile) throw error;
  return storeError('read', file, error).message;
}

/** What the conversion of rollouts left out (AttachedEpisodes). */
interface ConvertedEpisodes {
  readonly leftOut: readonly { step: number; rollouts: number }[];
  readonly skipped: number;
  readonly mostBytes: number;
  readonly mostRollouts: number;
  readonly isCut: boolean;
  readonly unread: readonly string[];
  readonly problems: ReadonlyMap<string, string>;
}

/**
 * Returns what the listing and the converted episodes lack; nothing for a run that is shown completely. `fields`: see
 * ForeignRun.rolloutFields.
 */
export function leftOutOf(source: SourceFolder, episodes: ConvertedEpisodes, fields?: string): string[] {
  const { leftOut, skipped, mostBytes, mostRollouts, isCut, problems, unread } = episodes;
  const gigabytes = `${mostBytes / 1e9} GB`;
  const rollouts = leftOut.reduce((sum, step) => sum + step.rollouts, 0);
  const of = leftOut.length > 1 ? `${leftOut.length} steps (newest: ${leftOut[0].step})` : `step ${leftOut[0]?.step}`;
  return [
    ...unread,
    ...problems.values(),
    ...(rollouts > 0
      ? [
          `${counted(rollouts, 'rollout')} of ${of} ${rollouts === 1 ? 'is' : 'are'} not shown, because a step may have ${mostRollouts} rollouts and ${gigabytes}: attach files with fewer rollouts per step, or give a larger --space`,
        ]
      : []),
    ...(isCut
      ? [
          `the episodes of the oldest steps are not shown, because all converted episodes would take more than ${gigabytes}: attach the run with a larger --space`,
        ]
      : []),
    ...(skipped > 0
      ? [
          `${counted(skipped, 'line')} of the rollouts could not be read, so these rollouts are not shown${fields === undefined ? '' : `: a rollout has ${fields}`}`,
        ]
      : []),
    ...(source.cut
      ? [`${source.path} has more than ${mostFiles} files: the others are not read; give the folder of one run`]
      : []),
  ];
}
