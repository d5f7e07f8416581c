// `RAGEN: Export Run…`: lets the user select the parts and the target folder, and writes a folder for each run.
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { Command } from '../../command';
import type { Host } from '../../host-services';
import { notifyBriefly, withProgress } from '../../notifications';
import { askCli } from '../../processes/cli-command';
import { showQuickPick } from '../../questions';
import { exportRun, partsOf, type ExportPart } from '../../run-files/run-export';
import { anyRun, noRuns } from './run-checks';
import { workspaceOf, type Run } from '../run-store';

export const exportRuns: Command = host => async (argument, all) => {
  const runs = await host.picker.pickMany(argument, all, anyRun, noRuns());
  if (runs.length > 0) await exportTo(host, runs);
};

async function exportTo(host: Host, runs: Run[]): Promise<void> {
  type Item = vscode.QuickPickItem & { part: ExportPart | 'model' };
  const here = new Set((await Promise.all(runs.map(({ reader }) => partsOf(reader)))).flat());
  const trained = (await Promise.all(runs.map(({ reader }) => reader.checkpoints()))).some(names => names.length > 0);
  const all: Item[] = [
    { part: 'metrics', label: vscode.l10n.t('Metrics'), description: 'metrics.csv', picked: true },
    { part: 'episodes', label: vscode.l10n.t('Episodes'), description: 'episodes.jsonl' },
    { part: 'configuration', label: vscode.l10n.t('Configuration'), description: 'configuration.yaml', picked: true },
    { part: 'tensorboard', label: vscode.l10n.t('TensorBoard'), description: 'tensorboard/' },
    { part: 'notebook', label: vscode.l10n.t('Notebook'), description: '<run>.ipynb (pandas)' },
    { part: 'model', label: vscode.l10n.t('Model of the newest checkpoint'), description: 'model/ (safetensors)' },
  ];
  const items = all.filter(({ part }) => (part === 'model' ? trained && vscode.workspace.isTrusted : here.has(part)));
  const title =
    runs.length === 1
      ? vscode.l10n.t('Export {0}', runs[0].summary.name)
      : vscode.l10n.t('Export {0} Runs', runs.length);
  const chosen = await showQuickPick(items, { title, canPickMany: true });
  if (!chosen || chosen.length === 0) return;
  const [into] =
    (await vscode.window.showOpenDialog({
      canSelectFiles: false,
      canSelectFolders: true,
      defaultUri: vscode.Uri.file(workspaceOf(runs[0])),
      openLabel: vscode.l10n.t('Export Here'),
      title: vscode.l10n.t('A folder for each run is created here'),
    })) ?? [];
  if (!into) return;
  await withProgress({ location: vscode.ProgressLocation.Notification, title }, async progress => {
    for (const run of runs) {
      progress.report(run.summary.name);
      const target = join(into.fsPath, run.summary.id);
      const parts = chosen.flatMap(({ part }) => (part === 'model' ? [] : [part]));
      await exportRun(run.reader, parts, target);
      const wantsModel = chosen.some(({ part }) => part === 'model') && (await run.reader.checkpoints()).length > 0;
      if (!wantsModel) continue;
      const { node, cli } = await host.cliFor(workspaceOf(run));
      const args = ['export', '--run', run.summary.id, '--out', join(target, 'model')];
      await askCli(node, cli, args, workspaceOf(run), vscode.l10n.t('the export'));
    }
  });
  notifyBriefly(vscode.l10n.t('Exported to {0}', into.fsPath), 8000, 'check');
}
