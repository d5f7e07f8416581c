// Runs of other trainers: the command that opens one, and the commands that start and end the process that follows its
// files. The CLI recognises the files and writes the run folder (`ragen attach`).
import * as vscode from 'vscode';
import { UserError } from '../../../common/user-error';
import { UnmappedFields } from '../../../run-data/mapping-proposal';
import type { RunSummary } from '../../../protocol/page-state';
import { registerActions, registerCommands, report } from '../../command';
import type { Host } from '../../host-services';
import { notifyInformation, withProgress } from '../../notifications';
import { pageColumn } from '../../pages/page-column';
import { askCli } from '../../processes/cli-command';
import { showInputBox, showQuickPick } from '../../questions';
import { trusted } from '../../workspace-trust';
import { isActive } from '../run-format';
import { workspaceOf, type Run } from '../run-store';
import { askForFolder } from '../start/start-dialog';
import { askForMapping } from './mapping-form';

export function registerAttach(context: vscode.ExtensionContext, host: Host): void {
  const followed = (run: RunSummary): boolean => run.trainer !== undefined && isActive(run);
  const unfollowed = (run: RunSummary): boolean => run.trainer !== undefined && !isActive(run);
  context.subscriptions.push(
    registerActions(host, { 'ragen.attachRun': argument => attach(host, argument) }),
    registerCommands(host, {
      'ragen.followRun': () => async (argument, all) => {
        if (!trusted()) return;
        const none = vscode.l10n.t('Every run of another trainer is followed already.');
        for (const run of await host.picker.pickMany(argument, all, unfollowed, none)) await follow(host, run);
      },
      'ragen.unfollowRun': () => async (argument, all) => {
        if (!trusted()) return;
        const none = vscode.l10n.t('No run of another trainer is followed.');
        for (const run of await host.picker.pickMany(argument, all, followed, none)) await unfollow(host, run);
      },
    }),
  );
  void host.store.scanned.then(() => followAgain(host));
}

async function attach(host: Host, argument: unknown): Promise<void> {
  if (!trusted()) return;
  const folder = await askForFolder();
  const path = folder && (argument instanceof vscode.Uri ? argument.fsPath : await askForPath());
  if (!folder || path === undefined) return;
  const answer = await open(host, folder.uri.fsPath, path);
  if (!answer) return;
  const run = await host.store.find(String(answer['folder']));
  if (!run) throw new UserError(`${path} was opened in ${String(answer['folder'])}, which is not in this workspace`);
  host.dashboards.show(run, pageColumn(), true);
  void showReading(host, run).catch((error: unknown) => report(host, error));
  await describe(run, texts(answer['found']), texts(answer['missing']));
}

/**
 * Opens the files; if they are JSON lines whose fields have unusual names, lets the user correct a proposed mapping
 * first. Undefined if the user cancels.
 */
async function open(host: Host, workspace: string, path: string): Promise<Record<string, unknown> | undefined> {
  const attach = (...options: string[]): Promise<Record<string, unknown> | undefined> =>
    cancellable(path, signal => call(host, workspace, ['attach', path, ...options, '--detach'], path, signal));
  try {
    return await attach();
  } catch (error) {
    if (!(error instanceof UnmappedFields)) throw error;
    const mapping = await askForMapping(workspace, error.proposal);
    if (mapping === undefined) return undefined;
    return attach('--mapping', mapping);
  }
}

/** Asks for the folder or file of the other trainer; undefined if the user cancels. */
async function askForPath(): Promise<string | undefined> {
  const [folder, file, typed] = [
    vscode.l10n.t('Choose a folder…'),
    vscode.l10n.t('Choose a file…'),
    vscode.l10n.t('Type a path…'),
  ];
  const title = vscode.l10n.t('Open Run of Another Trainer');
  const chosen = await showQuickPick(
    [
      { label: folder, detail: vscode.l10n.t('the folder into which the trainer writes') },
      { label: file, detail: vscode.l10n.t('a JSON-lines file, a TensorBoard event file or a console log') },
      { label: typed, detail: vscode.l10n.t('for example on a mounted drive') },
    ],
    { title, placeHolder: vscode.l10n.t('Where are the files of the run?') },
  );
  if (chosen === undefined) return undefined;
  if (chosen.label === typed) {
    const text = await showInputBox({ title, prompt: vscode.l10n.t('Path of a folder or file') });
    return text === undefined || text.trim() === '' ? undefined : text.trim();
  }
  const isFolder = chosen.label === folder;
  const found = await vscode.window.showOpenDialog({ title, canSelectFolders: isFolder, canSelectFiles: !isFolder });
  return found?.[0].fsPath;
}

/** Says what was found and what is missing. */
async function describe({ summary, folder }: Run, found: string[], missing: string[]): Promise<void> {
  const episodes = vscode.l10n.t('Episodes');
  const sentence = vscode.l10n.t('{0} run {1}: {2}.', summary.trainer?.name ?? '', summary.name, found.join('; '));
  const lacking = missing.length === 0 ? '' : ` ${vscode.l10n.t('Missing: {0}.', missing.join('; '))}`;
  const choice = await notifyInformation(`${sentence}${lacking}`, episodes);
  if (choice === episodes) await vscode.commands.executeCommand('ragen.openEpisodes', folder);
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];

const follow = (host: Host, run: Run): Promise<unknown> =>
  inStatusBar(run, () =>
    call(host, workspaceOf(run), ['attach', '--run', run.summary.id, '--detach'], run.summary.name),
  );
const unfollow = (host: Host, run: Run): Promise<unknown> =>
  inStatusBar(run, () => call(host, workspaceOf(run), ['stop', run.summary.id], run.summary.name));

/** Follows the runs whose process has ended unexpectedly, for example because the machine was restarted. */
async function followAgain(host: Host): Promise<void> {
  if (!vscode.workspace.isTrusted) return;
  for (const run of host.store.runs.filter(({ reader }) => reader.lostFollower))
    await follow(host, run).catch((error: unknown) => host.log.info(`${run.summary.id}: ${String(error)}`));
}

async function call(
  host: Host,
  cwd: string,
  args: string[],
  name: string,
  signal?: AbortSignal,
): Promise<Record<string, unknown>> {
  const { node, cli } = await host.cliFor(cwd);
  return askCli(node, cli, args, cwd, readingText(name), signal);
}

const readingText = (name: string): string => vscode.l10n.t('Reading {0}', name);

const inStatusBar = async <T>({ summary }: Run, task: () => Promise<T>): Promise<T> =>
  withProgress({ location: vscode.ProgressLocation.Window, title: readingText(summary.name) }, task);

/** Shows a notification with Cancel while a task runs; undefined if the user cancels. */
async function cancellable<T>(name: string, task: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
  const progress = { location: vscode.ProgressLocation.Notification, title: readingText(name), cancellable: true };
  return withProgress(progress, async (_, token) => {
    const stopped = new AbortController();
    token.onCancellationRequested(() => stopped.abort());
    try {
      return await task(stopped.signal);
    } catch (error) {
      if (stopped.signal.aborted) return undefined;
      throw error;
    }
  });
}

/** Shows which step is read until all files are read; Cancel ends the process that reads them. */
async function showReading(host: Host, { folder, summary }: Run): Promise<void> {
  const title = readingText(summary.name);
  const progress = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  const readingRun = (): Run | undefined => {
    const run = host.store.get(folder);
    return run && isActive(run.summary) && run.summary.status.phase === 'reading' ? run : undefined;
  };
  if (!readingRun()) return;
  const cancelled = await withProgress(
    progress,
    (bar, token) =>
      new Promise<boolean>(resolve => {
        const look = (): void => {
          const run = readingRun();
          if (run) bar.report(run.summary.status.activity ?? '');
          else end(false);
        };
        const listeners = [host.store.onDidChange(look), token.onCancellationRequested(() => end(true))];
        const end = (isCancelled: boolean): void => {
          for (const each of listeners) each.dispose();
          resolve(isCancelled);
        };
      }),
  );
  const run = cancelled ? readingRun() : undefined;
  if (run) await unfollow(host, run);
}
