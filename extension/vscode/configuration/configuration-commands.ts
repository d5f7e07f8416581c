// Commands of the code lenses above a run configuration: start a run, check the configuration with the trainer, or show
// the resolved configuration. The trainer's check is authoritative. In a trusted workspace, this check also runs after
// each save. Each problem is shown at its line.
import { basename, dirname, extname } from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../../common/user-error';
import { clusterOptions } from '../runs/start/cluster';
import { begin } from '../runs/start/begin-run';
import { report } from '../command';
import { trusted } from '../workspace-trust';
import type { Host } from '../host-services';
import { notifyBriefly, withProgress } from '../notifications';
import { askCli, ConfigError } from '../processes/cli-command';
import {
  resolvedConfigurationSchema,
  resolvedFileUri,
  serveConfigurations,
  type ResolvedConfiguration,
} from './configuration-documents';
import { isRunConfiguration, isComplete } from './run-configuration';

/** Milliseconds between the last save and the check, so that several saves in quick succession cause only one check. */
const settleMs = 300;

/** Registers the commands, the check on save, and the provider of resolved configurations. */
export function addConfigurationCommands(host: Host): vscode.Disposable {
  const register = (id: string, command: (file: string) => Promise<void>) =>
    vscode.commands.registerCommand(id, async (argument: unknown) => {
      try {
        await command(await configurationFile(argument));
      } catch (error) {
        await report(host, error);
      }
    });
  const commands = [
    register('ragen.startConfiguration', async file => {
      if (!trusted()) return;
      const name = basename(file, extname(file));
      await begin(
        host,
        ['train', '--config-name', name, '--config', file, ...clusterOptions()],
        workspaceFolder(file),
        name,
      );
    }),
    register('ragen.checkConfiguration', async file => {
      if (!trusted()) return;
      const title = vscode.l10n.t('Checking {0}', basename(file));
      const progress = { location: vscode.ProgressLocation.Window, title };
      const found = await withProgress(progress, () => check(host, file));
      if (found) notifyBriefly(vscode.l10n.t('{0} is valid', basename(file)), 8000, 'pass');
      else await vscode.commands.executeCommand('workbench.actions.view.problems');
    }),
    register('ragen.showResolvedConfiguration', async file => {
      if (!trusted()) return;
      if (!(await check(host, file))) return vscode.commands.executeCommand('workbench.actions.view.problems');
      const options = { viewColumn: vscode.ViewColumn.Beside, preview: true, preserveFocus: true };
      await vscode.window.showTextDocument(resolvedFileUri(file), options);
    }),
  ];

  const waiting = new Map<string, NodeJS.Timeout>();
  const saved = vscode.workspace.onDidSaveTextDocument(document => {
    const file = document.uri.fsPath;
    if (!vscode.workspace.isTrusted || !isCompleteConfiguration(document)) return;
    clearTimeout(waiting.get(file));
    const start = () => {
      waiting.delete(file);
      check(host, file).catch((error: unknown) => host.log.warn(String(error)));
    };
    waiting.set(file, setTimeout(start, settleMs));
  });
  const documents = serveConfigurations(file => resolve(host, file));
  const stop = { dispose: () => waiting.forEach(clearTimeout) };
  return vscode.Disposable.from(...commands, saved, documents, stop);
}

/** Whether a document belongs to the workspace and contains a configuration from which a run can start. */
export const isCompleteConfiguration = (document: vscode.TextDocument): boolean =>
  isConfigurationDocument(document) && isComplete(document.getText());

/** Whether a document is a run configuration of the workspace. */
export const isConfigurationDocument = (document: vscode.TextDocument): boolean =>
  document.uri.scheme === 'file' &&
  document.languageId === 'yaml' &&
  vscode.workspace.getWorkspaceFolder(document.uri) !== undefined &&
  isRunConfiguration(document.uri.path, document.getText());

/**
 * Checks a configuration with the trainer, and shows the found problems in place of earlier ones. Returns the resolved
 * configuration if it is valid.
 */
async function check(host: Host, file: string): Promise<ResolvedConfiguration | undefined> {
  try {
    const found = await resolve(host, file);
    host.problems.clear(file);
    return found;
  } catch (error) {
    if (error instanceof ConfigError && host.problems.show(error.problems, dirname(file), file) > 0) return undefined;
    throw error;
  }
}

async function resolve(host: Host, file: string): Promise<ResolvedConfiguration> {
  const cwd = workspaceFolder(file);
  const { node, cli } = await host.cliFor(cwd);
  const doing = vscode.l10n.t('the check of {0}', basename(file));
  const args = ['config', '--config', file, '--resolved'];
  return resolvedConfigurationSchema.parse(await askCli(node, cli, args, cwd, doing));
}

/**
 * Returns the path of a command's configuration: the command's argument or, without one, the active editor's document.
 * Saves unsaved changes first.
 */
async function configurationFile(argument: unknown): Promise<string> {
  const uri = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
  const document = uri && vscode.workspace.textDocuments.find(each => each.uri.toString() === uri.toString());
  if (!document || !isConfigurationDocument(document))
    throw new UserError(vscode.l10n.t('No run configuration is open: open a YAML file with RAGEN’s keys.'));
  if (document.isDirty) await document.save();
  return document.uri.fsPath;
}

function workspaceFolder(file: string): string {
  const folder = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(file));
  if (folder) return folder.uri.fsPath;
  throw new UserError(vscode.l10n.t('{0} is not in a workspace folder: open the folder that contains the file.', file));
}
