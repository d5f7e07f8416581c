// `RAGEN: Store API Key…`: the user selects a variable and types its value in a password box. A stored value is never
// shown; it can be replaced or deleted.
import * as vscode from 'vscode';
import { registerCommands, type Command } from '../command';
import type { Host } from '../host-services';
import { knownSecrets, secretNameProblem, secretProblem, type SecretStore } from './secret-store';
import { notifyBriefly } from '../notifications';
import { showInputBox, showQuickPick } from '../questions';

export function registerSecrets(context: vscode.ExtensionContext, host: Host): void {
  context.subscriptions.push(registerCommands(host, { 'ragen.keepSecret': keepSecret }));
}

const keepSecret: Command = host => async () => {
  const name = await chosenName(host.secrets);
  if (name === undefined) return;
  const isKept = host.secrets.names.includes(name);
  const secret = await showInputBox({
    title: vscode.l10n.t('Store {0}', name),
    prompt: isKept
      ? vscode.l10n.t('The new value replaces the stored value. Leave empty to delete the stored value.')
      : vscode.l10n.t(
          'The value is stored in the editor’s secret storage and passed to runs as the environment variable {0}.',
          name,
        ),
    password: true,
    validateInput: secretProblem,
  });
  if (secret === undefined || (secret === '' && !isKept)) return;
  await host.secrets.keep(name, secret);
  notifyBriefly(secret === '' ? vscode.l10n.t('{0} deleted', name) : vscode.l10n.t('{0} stored', name), 4000, 'key');
};

async function chosenName(secrets: SecretStore): Promise<string | undefined> {
  type Item = vscode.QuickPickItem & { name?: string };
  const { names } = secrets;
  const items: Item[] = [...new Set([...names, ...knownSecrets])].map(name => ({
    label: name,
    description: names.includes(name) ? vscode.l10n.t('stored') : '',
    name,
  }));
  const other: Item = { label: vscode.l10n.t('$(add) Another variable…') };
  const placeHolder = vscode.l10n.t(
    'Which key or token? Runs receive its value in the environment variable of this name.',
  );
  const chosen = await showQuickPick([...items, other], { placeHolder });
  if (!chosen || chosen.name !== undefined) return chosen?.name;
  return showInputBox({
    title: vscode.l10n.t('Store API Key'),
    prompt: vscode.l10n.t('Name of the environment variable, as given in the key api_key_env'),
    placeHolder: 'MY_SERVICE_API_KEY',
    validateInput: secretNameProblem,
  });
}
