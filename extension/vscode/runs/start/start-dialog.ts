// Dialog that selects the configuration and the workspace folder of a new run. The dialog for overrides is in
// overrides-box.ts.
import * as vscode from 'vscode';
import { UserError } from '../../../common/user-error';
import { plain } from '../../plain-text';
import { showQuickPick } from '../../questions';
import { shippedPresets, workspacePresets, type Preset } from './preset-files';

/** The CLI call that starts the selected configuration. */
export interface StartRequest {
  /** Arguments of `cli.cjs`. */
  args: string[];
  /** Workspace folder to start in. */
  cwd: string;
  name: string;
}

/** Shows the dialog; undefined if the user cancels. Throws a UserError if no folder is open. */
export async function askForRun(extensionPath: string): Promise<StartRequest | undefined> {
  requireFolder();
  const preset = await askForPreset(extensionPath);
  if (!preset) return undefined;
  const folder = preset.own?.folder ?? (await askForFolder());
  if (!folder) return undefined;
  const config = preset.own ? ['--config', preset.own.file] : [];
  const args = ['train', '--config-name', preset.name, ...config];
  return { args, cwd: folder.uri.fsPath, name: preset.name };
}

async function askForPreset(extensionPath: string): Promise<Preset | undefined> {
  type Item = vscode.QuickPickItem & { preset?: Preset };
  const heading = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const itemOf = (preset: Preset): Item => ({
    label: plain(preset.name),
    detail: plain(preset.description) || undefined,
    preset,
  });
  const items = (async () => {
    const [own, shipped] = await Promise.all([workspacePresets(), shippedPresets(extensionPath)]);
    const workspace = own.length === 0 ? [] : [heading(vscode.l10n.t('this workspace')), ...own.map(itemOf)];
    return [...workspace, heading(vscode.l10n.t('presets')), ...shipped.map(itemOf)];
  })();
  const chosen = await showQuickPick(items, {
    title: vscode.l10n.t('Start Run'),
    placeHolder: vscode.l10n.t('Which configuration?'),
    matchOnDetail: true,
  });
  return chosen?.preset;
}

function requireFolder(): void {
  if ((vscode.workspace.workspaceFolders ?? []).length === 0)
    throw new UserError(vscode.l10n.t('No workspace folder is open to store the run: open a folder first.'));
}

/**
 * Returns the workspace folder of a new run; asks if there are several. Undefined if the user cancels. Throws a
 * UserError if no folder is open.
 */
export async function askForFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  requireFolder();
  const folders = vscode.workspace.workspaceFolders ?? [];
  return folders.length === 1 ? folders[0] : vscode.window.showWorkspaceFolderPick();
}
