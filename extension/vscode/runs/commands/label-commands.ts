// Commands that change the labels of runs: name, tags, notes, archived. The commands write the labels to the run
// folder; the views read them from there.
import * as vscode from 'vscode';
import type { RunSummary } from '../../../protocol/page-state';
import type { Labels } from '../../../run-data/run-manifest';
import type { Command } from '../../command';
import type { Host } from '../../host-services';
import { plain } from '../../plain-text';
import { showInputBox } from '../../questions';
import { changeLabels, notesFile, type LabelChange } from '../../run-files/run-labels';
import { anyRun, noRuns, refuseLive } from './run-checks';
import { askForTags } from './tag-picker';
import type { Run } from '../run-store';

export const labelCommands: Record<string, Command> = {
  'ragen.renameRun': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (!run) return;
    const name = await showInputBox({
      title: vscode.l10n.t('Rename Run'),
      prompt: plain(vscode.l10n.t('New name. Leave empty to restore the original name: {0}', nameAtStart(run))),
      value: run.summary.name,
    });
    if (name !== undefined) await label(host, [run], () => ({ name: name.trim() || undefined }));
  },
  'ragen.tagRuns': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, anyRun, noRuns());
    if (runs.length === 0) return;
    const known = host.store.runs.flatMap(({ summary }) => summary.tags ?? []);
    const change = await askForTags(runs, known);
    if (!change) return;
    await label(host, runs, (now, { reader }) => {
      const { tags = reader.manifest?.tags ?? [] } = now;
      return { tags: [...new Set([...tags.filter(tag => !change.removed.includes(tag)), ...change.added])] };
    });
  },
  'ragen.editNotes': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) await vscode.window.showTextDocument(vscode.Uri.file(await notesFile(run.folder, run.summary.name)));
  },
  'ragen.archiveRuns': host => async (argument, all) => {
    const open = (run: RunSummary): boolean => !run.archived;
    const runs = await host.picker.pickMany(argument, all, open, vscode.l10n.t('There is no run to archive.'));
    for (const run of runs) await refuseLive(run, archiving);
    await label(host, runs, () => ({ archived: true }));
  },
  'ragen.unarchiveRuns': host => async (argument, all) => {
    const archived = (run: RunSummary): boolean => run.archived === true;
    const runs = await host.picker.pickMany(argument, all, archived, vscode.l10n.t('No run is archived.'));
    await label(host, runs, () => ({ archived: undefined }));
  },
};

/** Changes the labels of runs and updates the views immediately. */
async function label(host: Host, runs: Run[], change: (now: Labels, run: Run) => LabelChange): Promise<void> {
  for (const run of runs) {
    await changeLabels(run.folder, now => change(now, run));
    await host.store.find(run.folder);
  }
}

const nameAtStart = ({ reader, summary }: Run): string => reader.manifest?.name ?? summary.id;

const archiving = (name: string): string => vscode.l10n.t('Run {0} is active: stop it before archiving it.', name);
