// The one gate through which the extension starts anything: trainers, plans, checks, plays, inspections and the doctor all ask here for
// the terminal's entry and a Node to run it. In a workspace that is not trusted it opens for nobody, whatever asks and however it was
// asked (a command, a page, a document that comes back with the window), so that a folder that was merely opened runs nothing.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../protocol/user-error';
import type { Terminal } from './environment-terminal';
import type { KeptSecrets } from './kept-secrets';
import { findNode, nodeSearch } from './node-runtime';

export class Terminals {
  constructor(
    private readonly extensionPath: string,
    private readonly secrets: KeptSecrets,
  ) {}

  /** The terminal's entry for the folder `cwd`. Throws a UserError where the workspace is not trusted, or there is no fit Node. */
  async in(cwd: string): Promise<Terminal> {
    if (!vscode.workspace.isTrusted)
      throw new UserError(vscode.l10n.t('The workspace is not trusted, so that nothing of it is run: trust it first.'));
    const setting = vscode.workspace.getConfiguration('ragen').get('nodePath', '');
    const [node, kept] = await Promise.all([findNode(nodeSearch(setting)), this.secrets.variables()]);
    return { node: { ...node, secrets: () => kept }, cli: join(this.extensionPath, 'dist', 'cli.cjs'), cwd };
  }
}
