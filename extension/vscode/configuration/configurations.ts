// Composition root of run configurations: registers their commands and the editor's help with them.
import type * as vscode from 'vscode';
import type { Host } from '../host-services';
import { addConfigurationCommands } from './configuration-commands';
import { addConfigurationHelp } from './configuration-help';

/** Registers the parts. */
export function registerConfigurations(context: vscode.ExtensionContext, host: Host): void {
  context.subscriptions.push(addConfigurationCommands(host), addConfigurationHelp(host.extensionPath, host.problems));
}
