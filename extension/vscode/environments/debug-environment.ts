// Attaches VS Code's debugger to the environment processes of an active run. The trainer opens their inspectors on the
// loopback interface. It suspends the time limits of calls until the last debug session has ended. Training continues;
// while the debugger halts an environment, training waits only for calls into this environment.
import * as vscode from 'vscode';
import { UserError } from '../../common/user-error';
import { isActive } from '../runs/run-format';
import type { Run, RunStore } from '../runs/run-store';

/**
 * Activates VS Code's JavaScript debugger, which takes seconds when it is needed for the first time. Does nothing if the
 * debugger is disabled or absent; `debugEnvironments` then reports the failure.
 */
const activateDebugger = (): Thenable<unknown> =>
  vscode.extensions.getExtension('ms-vscode.js-debug')?.activate() ?? Promise.resolve();

/** Activates the debugger when the user sets a breakpoint while a run is active, so that the first halt comes sooner. */
export const activateDebuggerEarly = (store: RunStore): vscode.Disposable =>
  vscode.debug.onDidChangeBreakpoints(({ added }) => {
    if (added.length > 0 && store.runs.some(({ summary }) => isActive(summary)))
      activateDebugger().then(undefined, () => undefined); // the attempt to debug reports a failure
  });

/**
 * Debugs the run's environments until all debug sessions have ended. Throws a UserError if the trainer cannot be
 * reached or no session could start.
 */
export async function debugEnvironments(store: RunStore, run: Run): Promise<void> {
  const trainer = store.trainer(run);
  const { urls } = await trainer.debugEnvironments();
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
    // The request fails if the run has ended. This error is ignored, because the environment processes have then ended
    // as well.
    trainer.endDebugging().catch(() => undefined);
  };
  for (const url of urls) {
    const started = await vscode.debug.startDebugging(undefined, {
      type: 'node',
      request: 'attach',
      name: vscode.l10n.t('Environments of {0}', name),
      address: '127.0.0.1',
      port: Number(new URL(url).port),
      sourceMaps: true,
      // Only the source maps of the environments' bundles are used, not those of the extension.
      resolveSourceMapLocations: roots.map(root => `${root}/**`),
      skipFiles: ['<node_internals>/**', '**/environment-worker.cjs', '**/environment-host.cjs'],
      ragenEnvironment: url,
    });
    if (!started) leave(url);
  }
  if (open.size === 0)
    throw new UserError(
      vscode.l10n.t('run {0}: the debugger did not start; see the error messages of the debugger', name),
    );
}
