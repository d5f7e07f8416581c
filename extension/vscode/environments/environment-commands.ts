// Environment commands: New, Play and Check. All of them run code and therefore require a trusted workspace.
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../../common/user-error';
import { report } from '../command';
import { trusted } from '../workspace-trust';
import type { Host } from '../host-services';
import { EnvironmentChecks } from './environment-checks';
import { definitionIn, definitionLine, environmentFiles } from './environment-files';
import { nameProblem, scaffoldEnvironment } from '../../node/environment-scaffold';
import { writeEnvironmentTypes } from '../../node/environment-types';
import { notifyBriefly, notifyError, withProgress } from '../notifications';
import { plain } from '../plain-text';
import { pageColumn } from '../pages/page-column';
import { PlayPanels, type Played } from '../pages/play-panel';
import { showInputBox, showQuickPick } from '../questions';

/** Services that the commands use. */
interface EnvironmentTools extends Pick<Host, 'extensionPath' | 'log'> {
  play: PlayPanels;
  checks: EnvironmentChecks;
  /** The status bar message about a passed check, while it is shown. */
  notice?: vscode.Disposable;
}

type Command = (tools: EnvironmentTools, argument: unknown) => Promise<void>;

/** All environment commands by id. A command that is run from a file's menu receives the file's Uri as its argument. */
const environmentCommands: Record<string, Command> = {
  'ragen.newEnvironment': async ({ extensionPath }) => {
    const folder = await chosenFolder();
    if (!folder) return;
    const name = await showInputBox({
      title: vscode.l10n.t('New Environment'),
      prompt: vscode.l10n.t(
        'Name of the environment. Its code, test cases and a training configuration are created in envs/ and config/.',
      ),
      placeHolder: 'my_environment',
      validateInput: text => nameProblem(text, folder.uri.fsPath),
    });
    if (name === undefined) return;
    const [file] = await scaffoldEnvironment(extensionPath, folder.uri.fsPath, name);
    await writeEnvironmentTypes(extensionPath, folder.uri.fsPath);
    await vscode.window.showTextDocument(vscode.Uri.file(file));
  },
  'ragen.playEnvironment': async ({ extensionPath, play }, argument) => {
    const uri = argument instanceof vscode.Uri ? argument : undefined;
    const played = uri ? playedFile(uri) : await chosenEnvironment(extensionPath);
    if (played) play.show(played, pageColumn());
  },
  'ragen.checkEnvironment': async (tools, argument) => {
    tools.notice?.dispose();
    const uri = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
    if (!uri || (await definitionIn(uri)) === undefined)
      throw new UserError(
        vscode.l10n.t('No environment is open: open the file that ends with export default defineEnvironment(…).'),
      );
    const document = vscode.workspace.textDocuments.find(each => each.uri.toString() === uri.toString());
    if (document?.isDirty) await document.save();
    const title = vscode.l10n.t('Checking {0}', vscode.workspace.asRelativePath(uri));
    const progress = { location: vscode.ProgressLocation.Window, title };
    const found = await withProgress(progress, () => tools.checks.check(uri));
    const failed = found?.checks.filter(({ state }) => state === 'failed') ?? [];
    if (found && failed.length === 0) {
      const passed = found.checks.filter(({ state }) => state === 'passed').length;
      tools.notice = notifyBriefly(vscode.l10n.t('{0}: {1} checks passed', found.environment, passed), 8000, 'pass');
      return;
    }
    const show = vscode.l10n.t('Show Problems');
    const sentence = found
      ? vscode.l10n.t(
          'Environment {0} fails {1} of {2} checks: {3}',
          found.environment,
          failed.length,
          found.checks.length,
          failed[0].evidence,
        )
      : vscode.l10n.t('The check of {0} did not finish: open the Test Results panel.', basename(uri.fsPath));
    void notifyError(sentence, show).then(choice => {
      if (choice === show) void vscode.commands.executeCommand('workbench.actions.view.problems');
    });
  },
};

/** Wraps a command for registration: checks workspace trust first, and shows an error as one notification. */
function guarded(tools: EnvironmentTools, command: Command): (argument: unknown) => Promise<void> {
  return async argument => {
    try {
      if (
        trusted(
          vscode.l10n.t('The workspace is not trusted, so its environments cannot run: trust the workspace first.'),
        )
      )
        await command(tools, argument);
    } catch (error) {
      await report(tools, error);
    }
  };
}

async function chosenFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0)
    throw new UserError(vscode.l10n.t('No folder is open: open the folder that is to contain the environment.'));
  return folders.length === 1 ? folders[0] : vscode.window.showWorkspaceFolderPick();
}

/**
 * Returns the environment in a file, for the Play panel. Its name is the path relative to the workspace folder; for a
 * file outside the workspace, its name is the absolute path.
 */
function playedFile(uri: vscode.Uri): Played {
  const folder = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath;
  if (folder === undefined) return { environment: uri.fsPath, cwd: dirname(uri.fsPath) };
  return { environment: relative(folder, uri.fsPath).replaceAll('\\', '/'), cwd: folder };
}

/**
 * Lets the user choose an environment. The list starts with the open file, followed by the workspace's other
 * environments and the built-in environments.
 */
async function chosenEnvironment(extensionPath: string): Promise<Played | undefined> {
  type Item = vscode.QuickPickItem & { played?: Played };
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? extensionPath;
  const active = vscode.window.activeTextEditor?.document.uri.toString();
  const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const items = (async () => {
    const registry = JSON.parse(await readFile(join(extensionPath, 'envs', 'registry.json'), 'utf8')) as object;
    const files = await environmentFiles();
    const own = [...files].sort((a, b) => Number(b.uri.toString() === active) - Number(a.uri.toString() === active));
    const ownItems = own.map(({ uri }): Item => {
      const played = playedFile(uri);
      return { label: plain(basename(uri.path)), description: plain(played.environment), played };
    });
    const builtIn = Object.keys(registry).map((label): Item => ({
      label,
      played: { environment: label, cwd: folder },
    }));
    const workspace = ownItems.length === 0 ? [] : [heading(vscode.l10n.t('this workspace')), ...ownItems];
    return [...workspace, heading(vscode.l10n.t('built in')), ...builtIn];
  })();
  const chosen = await showQuickPick(items, {
    title: vscode.l10n.t('Play Environment'),
    placeHolder: vscode.l10n.t('Which environment?'),
    matchOnDescription: true,
  });
  return chosen?.played;
}

/** Registers the commands, the Play panels and the Test Explorer items. */
export function registerEnvironmentTools({ extensionUri, subscriptions }: vscode.ExtensionContext, host: Host): void {
  const { extensionPath, log, cliFor } = host;
  const checks = new EnvironmentChecks(cliFor);
  const check = (uri: vscode.Uri) => void vscode.commands.executeCommand('ragen.checkEnvironment', uri);
  const play = new PlayPanels(extensionUri, { cliFor, check });
  const tools: EnvironmentTools = { extensionPath, log, play, checks };
  const commands = Object.entries(environmentCommands).map(([id, command]) =>
    vscode.commands.registerCommand(id, guarded(tools, command)),
  );
  const writeTypes = () => {
    if (!vscode.workspace.isTrusted) return; // no file is written in an untrusted workspace
    for (const { uri } of vscode.workspace.workspaceFolders ?? [])
      writeEnvironmentTypes(extensionPath, uri.fsPath, true).catch((error: Error) => log.warn(error.message));
  };
  writeTypes();

  // Sets a context key, so that editor menus show Play and Check for an open environment file in any folder.
  const updateOpen = () => {
    const document = vscode.window.activeTextEditor?.document;
    const open = document?.languageId === 'typescript' && definitionLine(document.getText()) !== undefined;
    void vscode.commands.executeCommand('setContext', 'ragen.environmentIsOpen', open);
  };
  updateOpen();
  const watching = [
    vscode.workspace.onDidGrantWorkspaceTrust(writeTypes),
    vscode.window.onDidChangeActiveTextEditor(updateOpen),
    vscode.workspace.onDidSaveTextDocument(updateOpen),
  ];
  subscriptions.push(checks, play, vscode.Disposable.from(...commands, ...watching));
}
