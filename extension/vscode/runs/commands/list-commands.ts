// Commands on the list of runs: the run table, and the Runs view's archived runs and filter.
import * as vscode from 'vscode';
import type { Command } from '../../command';
import { createInputBox } from '../../questions';

export const listCommands: Record<string, Command> = {
  'ragen.openRunTable': host => async () => host.runTable.show(),
  'ragen.showArchived': host => () => host.tree.showArchived(true),
  'ragen.hideArchived': host => () => host.tree.showArchived(false),
  'ragen.filterRuns': host => async () => {
    await vscode.commands.executeCommand('ragen.runs.focus');
    const box = createInputBox();
    const before = host.tree.filter;
    box.title = vscode.l10n.t('Filter Runs');
    box.prompt = vscode.l10n.t(
      'Show only the runs whose name, tags (#tag) or configuration contain these words. Leave empty to show all runs.',
    );
    box.value = before;
    box.onDidChangeValue(filter => (host.tree.filter = filter));
    let accepted = false;
    box.onDidAccept(() => {
      accepted = true;
      box.hide();
    });
    box.onDidHide(() => {
      if (!accepted) host.tree.filter = before;
      box.dispose();
    });
    box.show();
  },
  'ragen.clearFilter': host => async () => {
    host.tree.filter = '';
  },
};
