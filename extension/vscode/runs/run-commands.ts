// Commands of the Runs view that do not control trainers: labels (name, tags, notes, archived), duplicate with changes,
// configuration diff, export, and delete. Labels are written to the run folder, from which the views read them.
import { basename, join } from 'node:path';
import * as vscode from 'vscode';
import type { RunSummary } from '../../protocol/pages';
import type { Labels } from '../../run-data/run-manifest';
import { isEvaluation } from '../../run-data/run-progress';
import { UserError } from '../../common/user-error';
import { changeSettings } from './change-settings';
import { compareRuns } from './compare-runs';
import { begin, noRuns, takesNoSteps, trusted, trustOptions, workspaceOf, type Command, type Host } from './commands';
import { runConfigurationUri } from '../configuration/configuration-documents';
import { confirmAction, notifyBriefly, notifyInformation, withProgress } from '../notices';
import { startWithOverrides } from './overrides-box';
import { plain } from '../plain-text';
import { exportRun, partsOf, type ExportPart } from './run-export';
import { changeLabels, notesFile, type LabelChange } from './run-labels';
import { inList } from './run-picker';
import type { Run } from './run-store';
import { withoutArchived } from './run-format';
import { splitOverrides, askCli } from './start-run';
import { askForTags } from './tag-picker';

const any = (): boolean => true;

/** All run commands of package.json that are not in commands.ts, by id. */
export const runCommands: Record<string, Command> = {
  'ragen.changeSettings': changeSettings,
  'ragen.compareRuns': compareRuns,
  'ragen.renameRun': host => async argument => {
    const run = await host.picker.pick(argument, any, noRuns());
    if (!run) return;
    const name = await vscode.window.showInputBox({
      title: vscode.l10n.t('Rename Run'),
      prompt: plain(vscode.l10n.t('New name. Leave empty to restore the original name: {0}', nameAtStart(run))),
      value: run.summary.name,
      ignoreFocusOut: true, // a menu that returns the focus late must not close it
    });
    if (name !== undefined) await label(host, [run], () => ({ name: name.trim() || undefined }));
  },
  'ragen.tagRuns': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, any, noRuns());
    if (runs.length === 0) return;
    const known = host.store.runs.flatMap(({ summary }) => summary.tags ?? []);
    const change = await askForTags(runs, known);
    if (!change) return;
    await label(host, runs, (now, { reader }) => {
      const { tags = reader.origin?.tags ?? [] } = now;
      return { tags: [...new Set([...tags.filter(tag => !change.removed.includes(tag)), ...change.added])] };
    });
  },
  'ragen.editNotes': host => async argument => {
    const run = await host.picker.pick(argument, any, noRuns());
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
  'ragen.showArchived': host => () => host.tree.showArchived(true),
  'ragen.hideArchived': host => () => host.tree.showArchived(false),
  'ragen.filterRuns': host => async () => {
    await vscode.commands.executeCommand('ragen.runs.focus');
    const box = vscode.window.createInputBox();
    const before = host.tree.filter;
    box.title = vscode.l10n.t('Filter Runs');
    box.prompt = vscode.l10n.t('Words in names, tags (#tag) or configurations. Leave empty to show all runs.');
    box.value = before;
    box.ignoreFocusOut = true;
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
  'ragen.duplicateRun': host => async argument => {
    if (!trusted()) return;
    const run = await host.picker.pick(argument, any, noRuns());
    if (!run) return;
    const question = {
      title: vscode.l10n.t('Duplicate {0} with Changes', run.summary.name),
      prompt: vscode.l10n.t('Overrides as key=value, prefilled with those of the run. Press Enter to start.'),
      value: (run.reader.origin?.overrides ?? []).map(quoted).join(' '),
    };
    const trust = await trustOptions(host, run);
    if (!trust) return;
    await startWithOverrides(question, overrides =>
      begin(host, ['train', '--from', run.summary.id, ...trust, ...overrides], workspaceOf(run), run.summary.name),
    );
  },
  'ragen.evaluateRun': host => async argument => {
    if (!trusted()) return;
    const trained = ({ status }: RunSummary): boolean => !isEvaluation(status);
    const run = await host.picker.pick(argument, trained, noRuns());
    if (!run || takesNoSteps(run)) return;
    const { id, name } = run.summary;
    const [newest] = await run.reader.checkpoints();
    if (newest === undefined) return void notifyInformation(vscode.l10n.t('Run {0} has no checkpoint yet.', name));
    const question = {
      title: vscode.l10n.t('Evaluate {0}', name),
      prompt: vscode.l10n.t('{0} plays the validation episodes once. Overrides, if any. Press Enter to start.', newest),
      placeholder: 'es_manager.val.group_size=8',
    };
    const title = vscode.l10n.t('the evaluation of {0}', name);
    const trust = await trustOptions(host, run);
    if (!trust) return;
    await startWithOverrides(question, overrides =>
      begin(host, ['eval', '--run', id, ...trust, ...overrides], workspaceOf(run), title),
    );
  },
  'ragen.showRunConfiguration': host => async argument => {
    const run = await host.picker.pick(argument, any, noRuns());
    if (run) await vscode.window.showTextDocument(runConfigurationUri(run), { preview: true });
  },
  'ragen.compareConfigurations': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, any, noRuns());
    const [first] = runs;
    if (!first || runs.length > 2)
      throw new UserError(vscode.l10n.t('Select two runs in the Runs view to compare their configurations.'));
    const second = runs[1] ?? (await otherThan(host, first));
    if (!second) return;
    // The older run is on the left, as in VS Code's diffs.
    const [left, right] = [first, second].sort((a, b) => (a.summary.created < b.summary.created ? -1 : 1));
    const title = vscode.l10n.t('{0} ↔ {1}: Configuration', left.summary.name, right.summary.name);
    await vscode.commands.executeCommand('vscode.diff', runConfigurationUri(left), runConfigurationUri(right), title);
  },
  'ragen.revealRun': host => async argument => {
    const run = await host.picker.pick(argument, any, noRuns());
    if (!run) return;
    const isLocal = vscode.env.uiKind === vscode.UIKind.Desktop && vscode.env.remoteName === undefined;
    const command = isLocal ? 'revealFileInOS' : 'revealInExplorer'; // the local OS cannot show a remote folder
    await vscode.commands.executeCommand(command, vscode.Uri.file(run.folder));
  },
  'ragen.exportRun': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, any, noRuns());
    if (runs.length > 0) await exportRuns(host, runs);
  },
  'ragen.deleteRuns': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, any, noRuns());
    if (runs.length > 0) await deleteRuns(host, runs);
  },
};

/** Changes the labels of runs and updates the views immediately. */
async function label(host: Host, runs: Run[], change: (now: Labels, run: Run) => LabelChange): Promise<void> {
  for (const run of runs) {
    await changeLabels(run.folder, now => change(now, run));
    await host.store.find(run.folder);
  }
}

const nameAtStart = ({ reader, summary }: Run): string => reader.origin?.name ?? summary.id;

/** Quotes an override for a line of overrides; see splitOverrides. */
const quoted = (override: string): string => (splitOverrides(override).length === 1 ? override : `"${override}"`);

async function otherThan(host: Host, first: Run): Promise<Run | undefined> {
  const others = withoutArchived(host.store.runs.filter(run => run.folder !== first.folder));
  const items = others.map(run => ({ ...inList(run), run }));
  const placeHolder = vscode.l10n.t('Compare the configuration of {0} with that of which run?', first.summary.name);
  return (await vscode.window.showQuickPick(items, { placeHolder, matchOnDetail: true }))?.run;
}

async function exportRuns(host: Host, runs: Run[]): Promise<void> {
  type Item = vscode.QuickPickItem & { part: ExportPart | 'model' };
  const here = new Set((await Promise.all(runs.map(({ reader }) => partsOf(reader)))).flat());
  const trained = (await Promise.all(runs.map(({ reader }) => reader.checkpoints()))).some(names => names.length > 0);
  const all: Item[] = [
    { part: 'metrics', label: vscode.l10n.t('Metrics'), description: 'metrics.csv', picked: true },
    { part: 'episodes', label: vscode.l10n.t('Episodes'), description: 'episodes.jsonl' },
    { part: 'configuration', label: vscode.l10n.t('Configuration'), description: 'configuration.yaml', picked: true },
    { part: 'tensorboard', label: vscode.l10n.t('TensorBoard'), description: 'tensorboard/' },
    { part: 'model', label: vscode.l10n.t('Model of the newest checkpoint'), description: 'model/ (safetensors)' },
  ];
  const items = all.filter(({ part }) => (part === 'model' ? trained && vscode.workspace.isTrusted : here.has(part)));
  const title =
    runs.length === 1
      ? vscode.l10n.t('Export {0}', runs[0].summary.name)
      : vscode.l10n.t('Export {0} Runs', runs.length);
  const chosen = await vscode.window.showQuickPick(items, { title, canPickMany: true, ignoreFocusOut: true });
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
      const { node, cli } = await host.terminal(workspaceOf(run));
      const args = ['export', '--run', run.summary.id, '--out', join(target, 'model')];
      await askCli(node, cli, args, workspaceOf(run), vscode.l10n.t('the export'));
    }
  });
  notifyBriefly(vscode.l10n.t('Exported to {0}', into.fsPath), 8000, 'check');
}

/** Throws `refusal` with the run's name if the run is active, according to its current files. */
async function refuseLive({ reader, summary }: Run, refusal: (name: string) => string): Promise<void> {
  await reader.refresh();
  if (reader.summary?.live) throw new UserError(refusal(summary.name));
}

const archiving = (name: string): string => vscode.l10n.t('Run {0} is active: stop it before archiving it.', name);
const deleting = (name: string): string => vscode.l10n.t('Run {0} is active: stop it before deleting it.', name);

async function deleteRuns(host: Host, runs: Run[]): Promise<void> {
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
    await refuseLive(run, deleting); // another window may have resumed it meanwhile
    host.closePages(run.folder);
    try {
      await vscode.workspace.fs.delete(uri, { recursive: true, useTrash });
    } catch (error) {
      if (!useTrash) throw error;
      // Remote machines and some file systems have no trash.
      const forGood = vscode.l10n.t('Delete Permanently');
      const lost = vscode.l10n.t('It cannot be moved to the trash here. A permanently deleted run cannot be restored.');
      if ((await confirmAction(question, lost, forGood)) !== forGood) return;
      useTrash = false;
      await vscode.workspace.fs.delete(uri, { recursive: true });
    }
    await host.store.find(run.folder);
  }
}
