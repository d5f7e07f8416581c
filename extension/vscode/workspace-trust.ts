// Checks workspace trust; commands call this check before they start a process. The process launcher checks the trust
// again (processes/cli-launcher.ts).
import * as vscode from 'vscode';
import { notifyWarning } from './notifications';

/**
 * Returns whether the workspace is trusted; if not, notifies the user. In an untrusted workspace no process is started,
 * because the workspace's environments are executable code.
 */
export function trusted(
  message = vscode.l10n.t('The workspace is not trusted, so its code cannot run: trust the workspace to start runs.'),
): boolean {
  if (vscode.workspace.isTrusted) return true;
  const manage = vscode.l10n.t('Manage Trust');
  void notifyWarning(message, manage).then(
    choice => choice === manage && vscode.commands.executeCommand('workbench.trust.manage'),
  );
  return false;
}
