// `RAGEN: Export Report…`: writes a report of the selected runs, as one HTML file or as Markdown with SVG files. The CLI
// (`ragen report`) builds the report.
import { basename, join } from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../../../common/user-error';
import type { Command } from '../../command';
import { notifyInformation, withProgress } from '../../notifications';
import { askCli } from '../../processes/cli-command';
import { showQuickPick } from '../../questions';
import { workspaceOf, type Run } from '../run-store';
import { askForRuns } from './compare-runs';
import { noRuns } from './run-checks';

interface Format extends vscode.QuickPickItem {
  format: 'html' | 'markdown';
  ending: string;
}

export const exportReport: Command = host => async (argument, all) => {
  await host.store.scanned;
  const named = await host.picker.named(argument, all);
  if (host.store.runs.length === 0) throw new UserError(noRuns());
  const placeHolder = vscode.l10n.t('Select the runs of the report. Runs that differ only in their seeds are grouped.');
  const title = vscode.l10n.t('Export Report');
  const runs = named.length > 0 ? named : await askForRuns(host.store.runs, host.picker.current(), title, placeHolder);
  if (!runs || runs.length === 0) return;
  const workspace = oneWorkspace(runs);
  const chosen = await askForFormat(title);
  if (!chosen) return;
  const name = runs.length === 1 ? `${runs[0].summary.id}-report` : 'report';
  const file = await vscode.window.showSaveDialog({
    title,
    defaultUri: vscode.Uri.file(join(workspace, `${name}.${chosen.ending}`)),
    filters: { [chosen.label]: [chosen.ending] },
  });
  if (!file) return;
  const { node, cli } = await host.cliFor(workspace);
  const ids = runs.map(({ summary }) => summary.id);
  // The save dialog has asked before it returned an existing file.
  const args = ['report', ...ids, '--format', chosen.format, '--out', file.fsPath, '--force'];
  await withProgress({ location: vscode.ProgressLocation.Notification, title }, () =>
    askCli(node, cli, args, workspace, vscode.l10n.t('the report')),
  );
  const open = vscode.l10n.t('Open');
  const answer = await notifyInformation(vscode.l10n.t('Report written: {0}', basename(file.fsPath)), open);
  if (answer !== open) return;
  if (chosen.format === 'html') await vscode.env.openExternal(file);
  else await vscode.commands.executeCommand('vscode.open', file);
};

/** Returns the workspace folder of the runs, because the CLI reads the runs of one folder. */
function oneWorkspace(runs: readonly Run[]): string {
  const folders = new Set(runs.map(workspaceOf));
  const [first] = folders;
  if (folders.size === 1) return first;
  throw new UserError(
    vscode.l10n.t('The selected runs are in {0} workspace folders: select runs of one folder.', folders.size),
  );
}

function askForFormat(title: string): Thenable<Format | undefined> {
  const html = vscode.l10n.t('One file for any browser; prints on A4');
  const markdown = vscode.l10n.t('A text and a folder of SVG files, for the appendix of a paper');
  const formats: Format[] = [
    { label: 'HTML', detail: html, format: 'html', ending: 'html' },
    { label: 'Markdown', detail: markdown, format: 'markdown', ending: 'md' },
  ];
  return showQuickPick(formats, { title, placeHolder: vscode.l10n.t('Select the format') });
}
