// Reports of the workspace: loads the plug-in in a file, and returns its text about runs. The text is not trusted: it is
// limited in length, and control characters other than line breaks and tabs are removed, because terminals execute them.
import type { ReportedRunData } from '../../../envs/api/plugins/report';
import { UserError } from '../../common/user-error';
import { installation } from '../../node/installation';
import { isPluginPath } from '../config/plugin-path';
import { badValue, shown, type CallablePlugin } from './checked-values';
import { PluginSet } from './plugin-set';

/** Maximum characters of a report. */
const longest = 1_000_000;
/** Time limit of a call in milliseconds. */
const timeoutMs = 60_000;

/** Returns the text of the report in `file` about `runs`. @throws UserError if the file or its value is invalid */
export async function ownReport(file: string, workspace: string, runs: readonly ReportedRunData[]): Promise<string> {
  if (!isPluginPath(file))
    throw new UserError(`report: --with is ${file}: give the path of a plug-in, which ends in .ts`);
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

/** Asks a report for its text. @throws PluginError if it fails or returns no text */
export async function reportWith(plugin: CallablePlugin, runs: readonly ReportedRunData[]): Promise<string> {
  const called = { path: plugin.path, function: 'report' };
  const text = await plugin.call('report', runs);
  if (typeof text !== 'string') throw badValue(called, `returned ${shown(text)}`, 'return a text');
  if (text.length > longest)
    throw badValue(called, `returned ${text.length} characters`, `return at most ${longest} characters`);
  return text.replace(/(?![\n\t])\p{Cc}/gu, '');
}
