// Host side of the New Run page: a single panel, restored with the user's choices after a window reload. Lists
// configurations, evaluates the choices with the CLI, starts the run, and saves the configuration as a file in the
// workspace.
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as vscode from 'vscode';
import { Messenger } from 'vscode-messenger';
import { newRunPlan, newRunReady, newRunSave, newRunStart } from '../../protocol/new-run-page';
import type { NewRunChoice, PresetChoice } from '../../protocol/new-run-page';
import { UserError } from '../../common/user-error';
import { begin } from '../runs/start/begin-run';
import { registerCommands, report, type Command } from '../command';
import { trusted } from '../workspace-trust';
import type { Host } from '../host-services';
import { readConfigurationSchema } from '../configuration/configuration-schema';
import { fillPanel } from '../pages/fill-panel';
import { shippedPresets, workspacePresets } from '../runs/start/preset-files';
import { askCli } from '../processes/cli-command';
import { overridesOf, yamlOfChoice } from './new-run-choice';
import { fieldGroups } from './new-run-fields';
import { planChoice, type PresetSource } from './new-run-plan';

const viewType = 'ragen.newRun';

export function registerNewRun(context: vscode.ExtensionContext, host: Host): void {
  const page = new NewRunPanel(host, context.extensionUri);
  const show: Command = () => async () => {
    if (trusted()) page.show();
  };
  context.subscriptions.push(page, registerCommands(host, { 'ragen.newRun': show }));
}

class NewRunPanel implements vscode.WebviewPanelSerializer<unknown>, vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(
    private readonly host: Host,
    private readonly extensionUri: vscode.Uri,
  ) {}

  /** Shows the page. Throws a UserError if no folder is open. */
  show(): void {
    if ((vscode.workspace.workspaceFolders ?? []).length === 0)
      throw new UserError(vscode.l10n.t('No workspace folder is open to store the run: open a folder first.'));
    if (this.panel) return this.panel.reveal();
    this.attach(vscode.window.createWebviewPanel(viewType, vscode.l10n.t('New Run'), vscode.ViewColumn.Active));
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel): Promise<void> {
    if (vscode.workspace.isTrusted && !this.panel) this.attach(panel);
    else panel.dispose();
    return Promise.resolve();
  }

  /** Leaves the panel open, because VS Code also calls dispose at a window reload and restores the panel afterwards. */
  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel): void {
    this.panel = panel;
    const messenger = new Messenger();
    messenger.registerWebviewPanel(panel);
    const schema = readConfigurationSchema(join(this.extensionUri.fsPath, 'media', 'configuration.schema.json'));
    const groups = fieldGroups(schema);
    const keys = groups.flatMap(({ fields }) => fields.map(({ key }) => key));
    messenger.onRequest(newRunReady, async () => ({
      presets: await this.presets(),
      folders: (vscode.workspace.workspaceFolders ?? []).map(({ uri, name }) => ({ path: uri.fsPath, name })),
      groups,
    }));
    messenger.onRequest(newRunPlan, async choice => {
      const { node, cli } = await this.host.cliFor(choice.folder);
      const ask = (args: string[]) => askCli(node, cli, args, choice.folder, vscode.l10n.t('the plan of the run'));
      return planChoice(choice, sourceOf(choice.preset), keys, ask);
    });
    messenger.onRequest(newRunStart, async choice => {
      if (!trusted()) return null;
      const { name, args } = sourceOf(choice.preset);
      const title = choice.values['trainer.experiment_name'] ?? name;
      await begin(this.host, ['train', ...args, ...overridesOf(choice)], choice.folder, title);
      return null;
    });
    messenger.onNotification(newRunSave, choice => void this.save(choice).catch(error => report(this.host, error)));
    panel.onDidDispose(() => {
      if (this.panel === panel) this.panel = undefined;
    });
    fillPanel(panel, this.extensionUri, { title: panel.title, bundle: 'new-run', icon: 'play.svg', folder: '' });
  }

  private async presets(): Promise<PresetChoice[]> {
    const [own, shipped] = await Promise.all([workspacePresets(), shippedPresets(this.host.extensionPath)]);
    return [...shipped, ...own].map(({ name, description, own: file }) => ({
      id: file?.file ?? name,
      name,
      description,
    }));
  }

  /**
   * Lets the user choose a file and writes the configuration. The dialog suggests the folder of the preset that the
   * configuration extends. For a built-in preset, the dialog suggests the workspace's folder `config`.
   */
  private async save(choice: NewRunChoice): Promise<void> {
    const { name, file } = sourceOf(choice.preset);
    const title = choice.values['trainer.experiment_name'] ?? name;
    const folder = file === undefined ? join(choice.folder, 'config') : dirname(file);
    const free = freeName(folder, slug(title));
    const target = await vscode.window.showSaveDialog({
      defaultUri: vscode.Uri.file(join(folder, free)),
      filters: { YAML: ['yaml', 'yml'] },
      title: vscode.l10n.t('Save the Configuration'),
    });
    if (!target) return;
    await mkdir(dirname(target.fsPath), { recursive: true });
    await writeFile(target.fsPath, yamlOfChoice(choice, name, `${title}: extends ${name}`));
    await vscode.window.showTextDocument(target, { viewColumn: vscode.ViewColumn.Beside });
  }
}

/**
 * Returns the preset for an id. An id that is an absolute path is a file of the workspace; any other id is the name of
 * a built-in preset.
 */
function sourceOf(preset: string): PresetSource & { file?: string } {
  if (!/[/\\]/.test(preset)) return { name: preset, args: ['--config-name', preset] };
  const name = preset.replace(/^.*[/\\]/, '').replace(/\.ya?ml$/i, '');
  return { name, args: ['--config-name', name, '--config', preset], file: preset };
}

/** Returns an unused file name in `folder`. */
function freeName(folder: string, name: string): string {
  for (let counter = 1; ; counter++) {
    const file = `${name}${counter === 1 ? '' : `-${counter}`}.yaml`;
    if (!existsSync(join(folder, file))) return file;
  }
}

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '') || 'run';
