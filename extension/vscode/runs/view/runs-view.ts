// Registers the status bar item and the failure notifications, which report the state of runs outside the pages and the
// Runs view.
import type * as vscode from 'vscode';
import type { Host } from '../../host-services';
import { noticeFailures } from './failure-notice';
import { StatusBar } from './status-bar';

/** Registers the status bar item and the failure notifications. */
export function registerRunsView(context: vscode.ExtensionContext, { store }: Host): void {
  context.subscriptions.push(new StatusBar(store), noticeFailures(store, context.workspaceState));
}
