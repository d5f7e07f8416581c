// Notifies the user when a run fails or when its trainer ends unexpectedly. Also notifies the user when the trainer
// pauses the run, because the user must then fix a problem. Nothing is retried automatically.
import * as vscode from 'vscode';
import { openLog } from '../commands/view-commands';
import { failureLocation } from '../../environments/environment-problems';
import { notifyError, notifyWarning } from '../../notifications';
import { runPhase } from '../run-format';
import type { Run, RunStore } from '../run-store';
import { WaitingRuns } from './waiting-runs';

/** Subscribes to the store; disposing of the result ends the subscription. `memory` is the workspace state. */
export function noticeFailures(store: RunStore, memory: vscode.Memento): vscode.Disposable {
  const waiting = new WaitingRuns(memory);
  return vscode.Disposable.from(
    store.onDidChange(() => {
      for (const run of waiting.unreported(store.runs)) void notifyPause(run);
    }),
    store.onDidMove(async ({ run, to }) => {
      if (to !== 'failed' && to !== 'interrupted') return;
      // The state is read again, so that a run that is alive is never reported as interrupted.
      const now = to === 'interrupted' ? await store.find(run.folder) : run;
      if (!now || runPhase(now.summary) !== to) return;
      const { name, status } = run.summary;
      const [log, resume] = [vscode.l10n.t('Open Log'), vscode.l10n.t('Resume')];
      const message =
        to === 'failed'
          ? vscode.l10n.t('Run {0} failed: {1}', name, status.error ?? vscode.l10n.t('see its log'))
          : vscode.l10n.t(
              'Run {0} was interrupted at step {1}: its trainer process exited unexpectedly.',
              name,
              status.step,
            );
      const choice = await notifyError(message, ...(to === 'failed' ? [log] : [log, resume]));
      if (choice === log) await openLog(run);
      if (choice === resume) await vscode.commands.executeCommand('ragen.resume', run.folder);
    }),
  );
}

async function notifyPause({ folder, reader, summary }: Run): Promise<void> {
  const { name, status } = summary;
  const [show, resume] = [vscode.l10n.t('Show'), vscode.l10n.t('Resume')];
  const choice = await notifyWarning(vscode.l10n.t('Run {0} is paused: {1}', name, status.error ?? ''), show, resume);
  if (choice === resume) await vscode.commands.executeCommand('ragen.resume', folder);
  if (choice !== show) return;
  const location = failureLocation((await reader.events()).events, status.error ?? '');
  const shown =
    location &&
    (await vscode.window
      .showTextDocument(vscode.Uri.file(location.file), {
        selection: new vscode.Range(location.line - 1, 0, location.line - 1, 0),
      })
      .then(
        () => true,
        () => false,
      ));
  if (!shown) await vscode.commands.executeCommand('ragen.openDashboard', folder);
}
