// Commands on the configurations of runs: show a configuration, or compare two in the diff editor.
import * as vscode from 'vscode';
import { UserError } from '../../../common/user-error';
import type { Command } from '../../command';
import { runConfigurationUri } from '../../configuration/configuration-documents';
import type { Host } from '../../host-services';
import { showQuickPick } from '../../questions';
import { anyRun, noRuns } from './run-checks';
import { withoutArchived } from '../run-format';
import { inList } from '../run-picker';
import type { Run } from '../run-store';

export const configurationCommands: Record<string, Command> = {
  'ragen.showRunConfiguration': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) await vscode.window.showTextDocument(runConfigurationUri(run), { preview: true });
  },
  'ragen.compareConfigurations': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, anyRun, noRuns());
    const [first] = runs;
    if (!first || runs.length > 2)
      throw new UserError(vscode.l10n.t('Select two runs in the Runs view to compare their configurations.'));
    const second = runs[1] ?? (await otherThan(host, first));
    if (!second) return;
    // The older run is on the left, as in VS Code's diffs.
    const [left, right] = [first, second].sort((a, b) => (a.summary.created < b.summary.created ? -1 : 1));
    const title = vscode.l10n.t('{0} ↔ {1}: Configuration', left.summary.name, right.summary.name);
    await vscode.commands.executeCommand('vscode.diff', runConfigurationUri(left), runConfigurationUri(right), title);
  },
};

async function otherThan(host: Host, first: Run): Promise<Run | undefined> {
  const others = withoutArchived(host.store.runs.filter(run => run.folder !== first.folder));
  const items = others.map(run => ({ ...inList(run), run }));
  const placeHolder = vscode.l10n.t(
    'With which run do you want to compare the configuration of {0}?',
    first.summary.name,
  );
  return (await showQuickPick(items, { placeHolder, matchOnDetail: true }))?.run;
}
