// `RAGEN: Keep a Key or Token…`: asks for a variable, then for its value in a password box. A stored value is never
// shown again, only replaced or deleted.
import * as vscode from 'vscode';
import type { Command } from './commands';
import { knownSecrets, secretNameProblem, secretProblem, type KeptSecrets } from './kept-secrets';
import { tellBriefly } from './notices';

/** The command. */
export const keepSecret: Command = host => async () => {
  const name = await chosenName(host.secrets);
  if (name === undefined) return;
  const isKept = host.secrets.names.includes(name);
  const secret = await vscode.window.showInputBox({
    title: vscode.l10n.t('Keep {0}', name),
    prompt: isKept
      ? vscode.l10n.t('Takes the place of the one that is kept. Empty: it is forgotten.')
      : vscode.l10n.t('Kept in the editor’s secret storage, and given to what runs as the variable {0}.', name),
    password: true,
    ignoreFocusOut: true,
    validateInput: secretProblem,
  });
  if (secret === undefined || (secret === '' && !isKept)) return;
  await host.secrets.keep(name, secret);
  tellBriefly(
    secret === '' ? vscode.l10n.t('{0} is forgotten', name) : vscode.l10n.t('{0} is kept', name),
    4000,
    'key',
  );
};

async function chosenName(secrets: KeptSecrets): Promise<string | undefined> {
  type Item = vscode.QuickPickItem & { name?: string };
  const { names } = secrets;
  const items: Item[] = [...new Set([...names, ...knownSecrets])].map(name => ({
    label: name,
    description: names.includes(name) ? vscode.l10n.t('kept') : '',
    name,
  }));
  const other: Item = { label: vscode.l10n.t('$(add) Another variable…') };
  const placeHolder = vscode.l10n.t('Which key or token? Runs find it in the variable of this name.');
  const chosen = await vscode.window.showQuickPick([...items, other], { placeHolder, ignoreFocusOut: true });
  if (!chosen || chosen.name !== undefined) return chosen?.name;
  return vscode.window.showInputBox({
    title: vscode.l10n.t('Keep a Key or Token'),
    prompt: vscode.l10n.t('Name of the variable, as api_key_env has it'),
    placeHolder: 'MY_SERVICE_API_KEY',
    ignoreFocusOut: true,
    validateInput: secretNameProblem,
  });
}
