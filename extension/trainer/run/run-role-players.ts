// Opens the models that play roles in a run, whose replies are stored in its folder.
import { runFiles } from '../../run-data/run-file-names';
import { PictureStore } from '../../node/picture-store';
import type { RunConfig } from '../config/schema';
import { RolePlayers } from '../rollout/role-players';
import type { RunFolder } from '../store/run-folder';
import type { Journal } from './journal';

/**
 * Returns the players of the roles of the given tags; undefined if the policy plays all roles. Keys are read from the
 * environment variables.
 * @throws UserError if a key is missing
 */
export const openRolePlayers = ({
  config,
  tags,
  folder,
  journal,
}: {
  config: RunConfig;
  tags: readonly string[];
  folder: RunFolder;
  journal: Journal;
}): RolePlayers | undefined =>
  RolePlayers.open({
    config,
    tags,
    file: folder.file(runFiles.roleReplies),
    environment: process.env,
    warn: message => journal.event('warning', message),
    pictures: new PictureStore(folder.path),
  });
