// Opens the judges of a run, whose replies are stored in its folder.
import { runFiles } from '../../run-data/run-file-names';
import type { RunConfig } from '../config/schema';
import { JudgePanel } from '../rewards/judge-panel';
import type { RunFolder } from '../store/run-folder';
import type { Journal } from './journal';

/**
 * Returns the judges of the given tags; undefined if no tag has judges. Keys are read from the environment variables.
 * @throws UserError if a key is missing or a rubric cannot be read
 */
export const openJudges = ({
  config,
  tags,
  workspace,
  folder,
  journal,
}: {
  config: RunConfig;
  tags: readonly string[];
  workspace: string;
  folder: RunFolder;
  journal: Journal;
}): JudgePanel | undefined =>
  JudgePanel.open({
    config,
    tags,
    workspace,
    file: folder.file(runFiles.judgements),
    environment: process.env,
    warn: message => journal.event('warning', message),
  });
