// What shows the state of runs outside of pages, beside the Runs view: the status bar, and notifications of failures.
import type * as vscode from 'vscode';
import type { Host } from '../../host-services';
import { noticeFailures } from './failure-notice';
import { StatusBar } from './status-bar';

/** Registers both. */
export function registerRunsView(context: vscode.ExtensionContext, { store }: Host): void {
  context.subscriptions.push(new StatusBar(store), noticeFailures(store, context.workspaceState));
}
