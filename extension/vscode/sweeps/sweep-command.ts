// `RAGEN: Run Sweep…`: opens the page of a sweep that was started, or starts the sweep of a file, which is in the
// workspace's config/sweeps or bundled.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../../common/user-error';
import { isRunnerAlive } from '../../node/sweep-runner';
import { runsFolder } from '../../run-data/run-file-names';
import { registerActions } from '../command';
import type { Host } from '../host-services';
import { plain } from '../plain-text';
import { showInputBox, showQuickPick } from '../questions';
import { startedSweeps, sweepSources, sweepSourcesIn, type StartedSweep, type SweepSource } from './sweep-list';
import { runSweepTask } from './sweep-task';

type Item = vscode.QuickPickItem & { started?: StartedSweep; source?: SweepSource };

/** Registers the commands of sweeps. */
export function registerSweeps(context: vscode.ExtensionContext, host: Host): void {
  context.subscriptions.push(registerActions(host, { 'ragen.runSweep': () => runSweep(host) }));
}

async function runSweep(host: Host): Promise<void> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0)
    throw new UserError(vscode.l10n.t('No workspace folder is open, so a sweep has no place: open a folder first.'));
  const folder = folders.length === 1 ? folders[0] : await vscode.window.showWorkspaceFolderPick();
  if (!folder) return;
  const workspace = folder.uri.fsPath;
  const chosen = await showQuickPick(itemsOf(host, workspace), {
    title: vscode.l10n.t('Run Sweep'),
    placeHolder: vscode.l10n.t('Select a sweep to open or a sweep file to start'),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (chosen?.started) return host.sweeps.show(workspace, chosen.started.content.id);
  if (!chosen?.source) return;
  const overrides = await askForOverrides(chosen.source.name);
  if (!overrides) return;
  await runSweepTask(host, { workspace, file: chosen.source.file, overrides });
  host.sweeps.show(workspace, chosen.source.name);
}

async function itemsOf(host: Host, workspace: string): Promise<Item[]> {
  await host.store.scanned;
  const bundled = join(host.extensionPath, 'media', 'sweeps');
  const [started, own, shipped] = await Promise.all([
    startedSweeps(workspace),
    sweepSourcesIn(join(workspace, sweepSources)),
    sweepSourcesIn(bundled),
  ]);
  const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const sourceItem = (source: SweepSource): Item => ({
    label: plain(source.name),
    detail: plain(source.about),
    source,
  });
  const group = (label: string, items: Item[]): Item[] => (items.length > 0 ? [heading(label), ...items] : []);
  return [
    ...group(
      vscode.l10n.t('Started: open the page'),
      started.map(sweep => ({
        label: plain(sweep.content.id),
        description: progressOf(host, workspace, sweep),
        started: sweep,
      })),
    ),
    ...group(vscode.l10n.t('Files in {0}: start', sweepSources), own.map(sourceItem)),
    ...group(vscode.l10n.t('Of the papers: start'), shipped.map(sourceItem)),
  ];
}

function progressOf({ store }: Host, workspace: string, { content }: StartedSweep): string {
  const { members, runner } = content;
  const isFinished = (run: string | null): boolean =>
    run !== null && store.get(join(workspace, runsFolder, run))?.summary.status.state === 'finished';
  const done = members.filter(({ run }) => isFinished(run)).length;
  const progress = vscode.l10n.t('{0} of {1} runs finished', done, members.length);
  return isRunnerAlive(runner) ? vscode.l10n.t('running · {0}', progress) : progress;
}

/** Asks for overrides of every run; undefined if the user cancels. */
async function askForOverrides(name: string): Promise<string[] | undefined> {
  const text = await showInputBox({
    title: vscode.l10n.t('Run Sweep {0}', name),
    prompt: vscode.l10n.t('Overrides of every run, separated by blanks; leave empty for none'),
    placeHolder: 'model_path=ragen-tiny trainer.total_training_steps=20',
    validateInput: typed => {
      const wrong = wordsOf(typed).find(word => !/^(\+{1,2}|~)?[\w.@/-]+=/.test(word) && !/^~[\w.@/-]+$/.test(word));
      return wrong === undefined
        ? undefined
        : vscode.l10n.t('{0} is not an override: write it as key=value.', JSON.stringify(wrong));
    },
  });
  return text === undefined ? undefined : wordsOf(text);
}

const wordsOf = (text: string): string[] => text.split(/\s+/).filter(word => word !== '');
