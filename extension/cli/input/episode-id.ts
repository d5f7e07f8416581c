// Episode ids on the command line.
import { UserError } from '../../common/user-error';
import type { EpisodeFile } from '../../trainer/store/stored-episodes';

/** Returns mode and step of an episode's id. Throws a UserError that begins with `command` if it is not an id. */
export function parseEpisodeId(command: string, id: string): EpisodeFile & { id: string } {
  const [, mode, step] = /^(train|val)-(\d{6,})-g\d+-m\d+(?:-w\d+)?$/.exec(id) ?? [];
  if (mode !== 'train' && mode !== 'val')
    throw new UserError(`${command}: ${id} is not an episode: give an id such as train-000012-g003-m05`);
  return { mode, step: Number(step), id };
}
