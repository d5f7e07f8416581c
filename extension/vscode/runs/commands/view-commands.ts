// Commands that open a run's pages, its trainer log or its folder.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../../../common/user-error';
import { runFiles } from '../../../run-data/run-file-names';
import type { Command } from '../../command';
import { anyRun, noRuns } from './run-checks';
import type { Run } from '../run-store';
import { pageColumn } from '../../pages/page-column';

export const viewCommands: Record<string, Command> = {
  'ragen.openDashboard': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) host.dashboards.show(run, pageColumn());
  },
  'ragen.openEpisodes': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) host.episodes.show(run, vscode.ViewColumn.Active);
  },
  'ragen.openCollapse': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) host.collapses.show(run, vscode.ViewColumn.Active);
  },
  'ragen.showTimeline': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) host.timelines.show(run, vscode.ViewColumn.Active);
  },
  'ragen.openLog': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) host.logs.show(run, vscode.ViewColumn.Active);
  },
  'ragen.showLog': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) await openLog(run);
  },
  'ragen.revealRun': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (!run) return;
    const isLocal = vscode.env.uiKind === vscode.UIKind.Desktop && vscode.env.remoteName === undefined;
    const command = isLocal ? 'revealFileInOS' : 'revealInExplorer'; // the local OS cannot show a remote folder
    await vscode.commands.executeCommand(command, vscode.Uri.file(run.folder));
  },
};

/** Opens a run's trainer log in the editor. */
export async function openLog({ folder, summary }: Run): Promise<void> {
  const uri = vscode.Uri.file(join(folder, runFiles.log));
  try {
    await vscode.window.showTextDocument(uri, { preview: true });
  } catch {
    throw new UserError(vscode.l10n.t('Run {0} has no log yet: {1} does not exist.', summary.name, uri.fsPath));
  }
}
