// The one thing the reader is told unasked: a run that was watched has failed or its trainer died. He decides what to do next.
import * as vscode from 'vscode';
import { openLog } from './commands';
import type { RunStore } from './run-store';

/** Watches the store; dispose to stop. */
export function noticeFailures(store: RunStore): vscode.Disposable {
  return store.onDidMove(async ({ run, to }) => {
    if (to !== 'failed' && to !== 'interrupted') return;
    const { name, status } = run.summary;
    const message =
      to === 'failed'
        ? vscode.l10n.t('Run {0} failed: {1}', name, status.error ?? vscode.l10n.t('its log says why'))
        : vscode.l10n.t('Run {0} was interrupted at step {1}: its trainer ended without a word.', name, status.step);
    const [log, resume] = [vscode.l10n.t('Open Log'), vscode.l10n.t('Resume')];
    const choice = await vscode.window.showErrorMessage(message, ...(to === 'failed' ? [log] : [log, resume]));
    if (choice === log) await openLog(run);
    if (choice === resume) await vscode.commands.executeCommand('ragen.resume', run.folder);
  });
}
