// Saves a picture, a movie or a table that a page exports, in a file that the user chooses.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { Export } from '../../protocol/dashboard-page';
import type { EpisodeMovie } from '../../protocol/episodes-page';
import { notifyBriefly } from '../notifications';

/** Lets the user choose a file and writes `bytes` to it. Returns false if the user cancels. */
export async function saveExport(folder: string, request: Export | EpisodeMovie, bytes: Uint8Array): Promise<boolean> {
  const format = request.kind === 'csv' ? 'csv' : request.format;
  const name = `${basename(folder)} ${request.name.replace(/[^\w.@ -]+/g, '-')}.${format}`;
  const workspace = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(folder))?.uri ?? vscode.Uri.file(folder);
  const file = await vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.joinPath(workspace, name),
    filters: { [format.toUpperCase()]: [format] },
  });
  if (!file) return false;
  await vscode.workspace.fs.writeFile(file, bytes);
  notifyBriefly(vscode.l10n.t('RAGEN: wrote {0}', basename(file.fsPath)), 5000);
  return true;
}
