// Breakpoints in the environments of a running training: the trainer opens their processes on the loopback, the editor's own debugger
// joins each, and limits of time come back when the last of its sessions has ended. Training itself is halted by nothing but waiting.
import * as vscode from 'vscode';
import { UserError } from '../protocol/user-error';
import type { Run, RunStore } from './run-store';

/** Debugs the run's environments until the sessions end. Throws a UserError where its trainer cannot be reached or nothing could start. */
export async function debugEnvironments(store: RunStore, run: Run): Promise<void> {
  const link = store.link(run);
  const { urls } = await link.debugEnvironments();
  const { name } = run.summary;
  const versions = new Set((await run.reader.versions()).map(({ version }) => version));
  const kept = await Promise.all([...versions].map(version => run.reader.keptEnvironment(version)));
  const roots = [...new Set(kept.flatMap(about => about?.root ?? []))];
  const open = new Set(urls);
  const ended = vscode.debug.onDidTerminateDebugSession(({ configuration, parentSession }) => {
    if (parentSession === undefined) leave(configuration.ragenEnvironment as string);
  });
  const leave = (url: string) => {
    open.delete(url);
    if (open.size > 0) return;
    ended.dispose();
    link.endDebugging().catch(() => undefined); // the run has ended, and its environments with it
  };
  for (const url of urls) {
    const started = await vscode.debug.startDebugging(undefined, {
      type: 'node',
      request: 'attach',
      name: vscode.l10n.t('Environments of {0}', name),
      address: '127.0.0.1',
      port: Number(new URL(url).port),
      sourceMaps: true,
      // Beside the sources, where their code is compiled, and not in what the extension itself runs.
      resolveSourceMapLocations: roots.map(root => `${root}/**`),
      skipFiles: ['<node_internals>/**', '**/environment-worker.cjs', '**/environment-host.cjs'],
      ragenEnvironment: url,
    });
    if (!started) leave(url);
  }
  if (open.size === 0)
    throw new UserError(vscode.l10n.t('run {0}: the debugger did not start: see its messages', name));
}
