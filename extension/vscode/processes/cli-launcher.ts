// Single entry point for starting processes: trainers, plans, checks, play sessions, inspections and the doctor. In an
// untrusted workspace, every request to start a process throws, even if it comes from a restored document or page.
// Opening a folder therefore executes no code.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { UserError } from '../../common/user-error';
import type { CliInvocation } from './cli-command';
import type { SecretStore } from '../secrets/secret-store';
import { findNode, nodeSearch } from './node-runtime';

export class CliLauncher {
  constructor(
    private readonly extensionPath: string,
    private readonly secrets: SecretStore,
  ) {}

  /**
   * Returns the CLI for the folder `cwd`. Throws a UserError if the workspace is untrusted or no suitable Node.js is
   * found.
   */
  async in(cwd: string): Promise<CliInvocation> {
    if (!vscode.workspace.isTrusted)
      throw new UserError(
        vscode.l10n.t('The workspace is not trusted, so its code cannot run: trust the workspace first.'),
      );
    const setting = vscode.workspace.getConfiguration('ragen').get('nodePath', '');
    const [node, variables] = await Promise.all([findNode(nodeSearch(setting)), this.secrets.variables()]);
    return { node: { ...node, secrets: () => variables }, cli: join(this.extensionPath, 'dist', 'cli.cjs'), cwd };
  }
}
