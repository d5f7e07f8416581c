// Tests an engine server with `ragen engine probe`, which runs in a child process. The API key is passed only in an
// environment variable of the child process.
import * as vscode from 'vscode';
import { engineReportSchema, type EngineReport } from '../../protocol/engine-report';
import type { Host } from '../host-services';
import { withProgress } from '../notifications';
import { askCli } from '../processes/cli-command';
import { probeArguments, type EngineEntry } from './kept-engines';

/** The server to test. `newKey` is an API key that the user has typed and that is not stored yet, if there is one. */
export interface ProbedServer extends Omit<EngineEntry, 'facts'> {
  newKey?: string;
}

/**
 * Tests a server and shows a progress notification meanwhile. Returns undefined if the user cancels.
 * @param more further arguments of `ragen engine probe`
 * @throws UserError that states the reason and the remedy
 */
export async function probeServer(
  host: Pick<Host, 'cliFor' | 'extensionPath'>,
  server: ProbedServer,
  more: readonly string[],
): Promise<EngineReport | undefined> {
  const title = vscode.l10n.t('Testing {0}', server.url);
  const progress = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  return withProgress(progress, async (_, token) => {
    const stopped = new AbortController();
    token.onCancellationRequested(() => stopped.abort());
    try {
      return await askServer(host, server, more, stopped.signal);
    } catch (error) {
      if (stopped.signal.aborted) return undefined;
      throw error;
    }
  });
}

/** Tests a server without showing a notification. */
export async function askServer(
  host: Pick<Host, 'cliFor' | 'extensionPath'>,
  { newKey, ...server }: ProbedServer,
  more: readonly string[],
  signal?: AbortSignal,
): Promise<EngineReport> {
  const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? host.extensionPath;
  const { node, cli } = await host.cliFor(cwd);
  const { keyEnv } = server;
  const secrets = (): Record<string, string> => ({
    ...node.secrets?.(),
    ...(keyEnv !== null && newKey !== undefined && { [keyEnv]: newKey }),
  });
  const args = probeArguments(server, more);
  return engineReportSchema.parse(await askCli({ ...node, secrets }, cli, args, cwd, title(server.url), signal));
}

const title = (url: string): string => vscode.l10n.t('the test of {0}', url);
