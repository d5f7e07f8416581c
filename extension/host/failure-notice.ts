// The one thing the reader is told unasked: a run that was watched has failed, its trainer died, or it waits for something that he must
// mend. He decides what to do next.
import * as vscode from 'vscode';
import { openLog } from './commands';
import { tellError, tellWarning } from './notices';
import type { RunStore } from './run-store';

/** Watches the store; dispose to stop. */
export function noticeFailures(store: RunStore): vscode.Disposable {
  return store.onDidMove(async ({ run, to }) => {
    const { name, status } = run.summary;
    const waits = to === 'paused' && status.error !== undefined; // somebody who pauses a run gives no reason
    if (to !== 'failed' && to !== 'interrupted' && !waits) return;
    const [log, resume] = [vscode.l10n.t('Open Log'), vscode.l10n.t('Resume')];
    if (waits) {
      const choice = await tellWarning(vscode.l10n.t('Run {0} waits: {1}', name, status.error!), resume);
      if (choice === resume) await vscode.commands.executeCommand('ragen.resume', run.folder);
      return;
    }
    const message =
      to === 'failed'
        ? vscode.l10n.t('Run {0} failed: {1}', name, status.error ?? vscode.l10n.t('its log says why'))
        : vscode.l10n.t('Run {0} was interrupted at step {1}: its trainer ended without a word.', name, status.step);
    const choice = await tellError(message, ...(to === 'failed' ? [log] : [log, resume]));
    if (choice === log) await openLog(run);
    if (choice === resume) await vscode.commands.executeCommand('ragen.resume', run.folder);
  });
}
