// Workspace trust: what a command asks before it starts anything. The process launcher refuses as well
// (processes/cli-launcher.ts).
import * as vscode from 'vscode';
import { notifyWarning } from './notifications';

/**
 * Checks workspace trust and notifies the user if it is missing. Environments are code that runs, so nothing is started
 * in an untrusted workspace.
 */
export function trusted(
  message = vscode.l10n.t('A run executes code of this workspace, which is not trusted: trust it to start runs.'),
): boolean {
  if (vscode.workspace.isTrusted) return true;
  const manage = vscode.l10n.t('Manage Trust');
  void notifyWarning(message, manage).then(
    choice => choice === manage && vscode.commands.executeCommand('workbench.trust.manage'),
  );
  return false;
}
