// Registers all features of run configurations: the commands, and the editor support.
import type * as vscode from 'vscode';
import type { Host } from '../host-services';
import { addConfigurationCommands } from './configuration-commands';
import { addConfigurationHelp } from './configuration-help';

/** Registers commands, providers and diagnostics of run configurations. */
export function registerConfigurations(context: vscode.ExtensionContext, host: Host): void {
  context.subscriptions.push(addConfigurationCommands(host), addConfigurationHelp(host.extensionPath, host.problems));
}
