// Reports of the workspace: loads the plug-in in a file, and returns its text or document about runs, checked.
import type { ReportDocument, ReportedRunData } from '../../../envs/api/plugins/report';
import { UserError } from '../../common/user-error';
import { installation } from '../../node/installation';
import { isPluginPath } from '../config/plugin-path';
import { reportWith } from './checked-report';
import { PluginSet } from './plugin-set';

/** Time limit of a call in milliseconds. */
const timeoutMs = 60_000;

/** Returns what the report in `file` says about `runs`. @throws UserError if the file or its value is invalid */
export async function ownReport(
  file: string,
  workspace: string,
  runs: readonly ReportedRunData[],
): Promise<string | ReportDocument> {
  if (!isPluginPath(file))
    throw new UserError(`report: --with is ${file}: give the path of a plug-in, which ends in .ts, or summary`);
  const set = await PluginSet.open([{ key: '--with', path: file, kind: 'report' }], {
    process: { entry: installation.pluginHost, onOutput: text => void process.stderr.write(text) },
    workspace,
    checkTypes: true,
    timeoutMs,
  });
  try {
    return await reportWith(set.plugin(file), runs);
  } finally {
    set.stop();
  }
}
