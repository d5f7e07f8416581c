// Registers the status bar items and the notifications about failed and finished runs, which report the state of runs
// outside the pages and the Runs view.
import type * as vscode from 'vscode';
import type { Host } from '../../host-services';
import { noticeEnds } from './end-notice';
import { noticeFailures } from './failure-notice';
import { StatusBar } from './status-bar';

/** Registers the status bar items and the notifications. */
export function registerRunsView(context: vscode.ExtensionContext, host: Host): void {
  const { store } = host;
  const { workspaceState } = context;
  context.subscriptions.push(
    new StatusBar(store),
    noticeFailures(store, workspaceState),
    noticeEnds(host, workspaceState),
  );
}
