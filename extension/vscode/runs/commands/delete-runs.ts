// `RAGEN: Delete Run…`: after a confirmation, moves run folders to the trash, or deletes them if the system has no
// trash.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { Command } from '../../command';
import type { Host } from '../../host-services';
import { confirmAction } from '../../notifications';
import { anyRun, noRuns, refuseLive } from './run-checks';
import type { Run } from '../run-store';

export const deleteRuns: Command = host => async (argument, all) => {
  const runs = await host.picker.pickMany(argument, all, anyRun, noRuns());
  if (runs.length > 0) await moveToTrash(host, runs);
};

const deleting = (name: string): string => vscode.l10n.t('Run {0} is active: stop it before deleting it.', name);

async function moveToTrash(host: Host, runs: Run[]): Promise<void> {
  for (const run of runs) await refuseLive(run, deleting);
  const [one] = runs;
  const question =
    runs.length === 1
      ? vscode.l10n.t('Delete the run {0}?', one.summary.name)
      : vscode.l10n.t('Delete {0} runs?', runs.length);
  const names = runs.slice(0, 10).map(({ summary, folder }) => `${summary.name} (${basename(folder)})`);
  const more = runs.length > names.length ? [vscode.l10n.t('and {0} more', runs.length - names.length)] : [];
  const detail = [
    ...names,
    ...more,
    '',
    vscode.l10n.t('This also deletes its checkpoints, episodes and metrics.'),
  ].join('\n');
  const go = vscode.l10n.t('Move to Trash');
  if ((await confirmAction(question, detail, go)) !== go) return;
  let useTrash = true;
  for (const run of runs) {
    const uri = vscode.Uri.file(run.folder);
    await refuseLive(run, deleting); // another window may have resumed the run in the meantime
    host.closePages(run.folder);
    try {
      await vscode.workspace.fs.delete(uri, { recursive: true, useTrash });
    } catch (error) {
      if (!useTrash) throw error;
      // Remote machines and some file systems have no trash.
      const forGood = vscode.l10n.t('Delete Permanently');
      const lost = vscode.l10n.t(
        'The run could not be moved to the trash. A permanently deleted run cannot be restored.',
      );
      if ((await confirmAction(question, lost, forGood)) !== forGood) return;
      useTrash = false;
      await vscode.workspace.fs.delete(uri, { recursive: true });
    }
    await host.store.find(run.folder);
  }
}
