// Host side of the New Run page: a single panel, restored with the user's choices after a window reload. Lists
// configurations, evaluates the choices in the planning process, starts the run, and saves the configuration as a file
// in the workspace.
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import * as vscode from 'vscode';
import {
  newRunCheck,
  newRunConnect,
  newRunEngines,
  newRunPlan,
  newRunPrefill,
  newRunReady,
  newRunSave,
  newRunStart,
  type EngineList,
  type NewRunChoice,
  type NewRunPrefill,
  type PlannedRun,
  type PresetChoice,
} from '../../protocol/new-run-page';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { begin } from '../runs/start/begin-run';
import { clusterOptions, resumeOptions } from '../runs/start/cluster';
import { registerActions, report } from '../command';
import { workspaceOf, type Run } from '../runs/run-store';
import { trustOptions } from '../runs/run-trust-dialog';
import { engineKeys, engineLine, type KeptEngine } from '../engines/kept-engines';
import { trusted } from '../workspace-trust';
import type { Host } from '../host-services';
import { readConfigurationSchema } from '../configuration/configuration-schema';
import { fillPanel } from '../pages/fill-panel';
import { shippedPresets, workspacePresets } from '../runs/start/preset-files';
import { choicesOfRun, overridesOf } from './new-run-choice';
import { fieldGroups } from './new-run-fields';
import { abilitiesOf, fileName, planChoice, type PresetSource } from './new-run-plan';
import { sweepFile, sweepOf } from './new-run-sweep';
import { startSweep } from './start-sweep';
import { PageMessenger } from '../pages/page-column';

const viewType = 'ragen.newRun';

export function registerNewRun(context: vscode.ExtensionContext, host: Host): void {
  const page = new NewRunPanel(host, context.extensionUri);
  const show = async (argument: unknown): Promise<void> => {
    const { engine, run: folder, checkpoint } = isRecord(argument) ? argument : {};
    const run = typeof folder === 'string' ? host.store.get(folder) : undefined;
    const source = run && { run, ...(typeof checkpoint === 'string' && { checkpoint }) };
    if (trusted()) page.show(typeof engine === 'string' ? engine : null, source);
  };
  context.subscriptions.push(page, registerActions(host, { 'ragen.newRun': show }));
}

/** A run to duplicate or, with the name of a checkpoint, to fork from this checkpoint. */
interface RunSource {
  run: Run;
  checkpoint?: string;
}

class NewRunPanel implements vscode.WebviewPanelSerializer<unknown>, vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  /** The engine to select when the page is ready. */
  private chosen: string | null = null;
  /** The run to duplicate or to fork when the page is ready. */
  private source: RunSource | undefined;
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(
    private readonly host: Host,
    private readonly extensionUri: vscode.Uri,
  ) {}

  /**
   * Shows the page and selects the saved engine `chosen` in it, or shows the configuration of the run `source`.
   * Throws a UserError if no folder is open.
   */
  show(chosen: string | null, source?: RunSource): void {
    if ((vscode.workspace.workspaceFolders ?? []).length === 0)
      throw new UserError(vscode.l10n.t('No workspace folder is open to store the run: open a folder first.'));
    this.chosen = chosen;
    this.source = source;
    if (this.panel) {
      if (source) this.onSource();
      if (chosen !== null) this.onEngines();
      return this.panel.reveal();
    }
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
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    if (folder) this.host.planner.warm(folder.uri.fsPath);
    const messenger = new PageMessenger();
    const page = messenger.registerWebviewPanel(panel);
    this.onEngines = () => messenger.sendNotification(newRunEngines, page, this.engines());
    const changes = this.host.engines.onDidChange(() => this.onEngines());
    const schema = readConfigurationSchema(join(this.extensionUri.fsPath, 'media', 'configuration.schema.json'));
    const groups = fieldGroups(schema);
    const keys = groups.flatMap(({ fields }) => fields.map(({ key }) => key));
    const presets = this.presets(); // searched while the page loads
    presets.catch(() => undefined); // reported by the request
    this.onSource = () => {
      const prefill = this.prefill(keys);
      if (prefill) messenger.sendNotification(newRunPrefill, page, prefill);
    };
    messenger.onRequest(newRunReady, async ({ preset }) => ({
      presets: [...(await presets), ...this.runPreset(preset)],
      prefill: this.prefill(keys),
      folders: (vscode.workspace.workspaceFolders ?? []).map(({ uri, name }) => ({ path: uri.fsPath, name })),
      groups,
      ...this.engines(),
    }));
    const evaluate = async (choice: NewRunChoice, estimated: boolean): Promise<PlannedRun> =>
      planChoice(choice, this.sourceOf(choice.preset), keys, this.host.planner, {
        ...{ engine: this.engineOf(choice), estimated },
      });
    messenger.onRequest(newRunCheck, choice => evaluate(choice, false));
    messenger.onRequest(newRunPlan, choice => evaluate(choice, true));
    messenger.onRequest(newRunStart, async choice => {
      if (!trusted()) return null;
      const source = this.sourceOf(choice.preset);
      const { name, command, args, run } = source;
      const started = choice.values['trainer.experiment_name'] ?? name;
      if (choice.sweep) return this.startSweep(choice, source, started);
      const trust = run ? await trustOptions(this.host, run) : [];
      const place = run && command === 'resume' ? await resumeOptions(run.summary) : clusterOptions();
      if (!trust || !place) return null;
      const all = [command, ...args, ...trust, ...place, ...overridesOf(choice, this.keysOf(choice))];
      await begin(this.host, all, choice.folder, started);
      return null;
    });
    const save = async (choice: NewRunChoice): Promise<void> => this.save(choice, (await evaluate(choice, false)).yaml);
    messenger.onNotification(newRunSave, choice => void save(choice).catch(error => report(this.host, error)));
    messenger.onNotification(newRunConnect, () => void vscode.commands.executeCommand('ragen.connectEngine'));
    panel.onDidDispose(() => {
      changes.dispose();
      if (this.panel === panel) this.panel = undefined;
    });
    fillPanel(panel, this.extensionUri, { title: panel.title, bundle: 'new-run', icon: 'play.svg', folder: '' });
  }

  /** Sends the saved engines to the page. */
  private onEngines = (): void => undefined;
  /** Sends the run to duplicate or to fork to the page. */
  private onSource = (): void => undefined;

  /** Returns the run to duplicate or to fork as choices of the form, once; null if there is none. */
  private prefill(keys: readonly string[]): NewRunPrefill | null {
    const { source } = this;
    this.source = undefined;
    if (!source) return null;
    const { run, checkpoint } = source;
    // A fork has the settings in effect at its checkpoint, so the overrides of its parent are part of its configuration.
    const overrides = checkpoint === undefined ? (run.reader.manifest?.overrides ?? []) : [];
    return { preset: presetOfRun(source), folder: workspaceOf(run), ...choicesOfRun(overrides, keys) };
  }

  /** Returns the run with which a form was saved, as a starting point; nothing for other presets and lost runs. */
  private runPreset(preset: string): PresetChoice[] {
    const { id, checkpoint } = runInPreset(preset) ?? {};
    const run = this.host.store.runs.find(({ summary }) => summary.id === id);
    return run ? [presetOfRun({ run, checkpoint })] : [];
  }

  /** Returns the starting point for an id. @throws UserError if it is a run that no longer exists */
  private sourceOf(preset: string): StartSource {
    const named = runInPreset(preset);
    if (!named) return fileOrPreset(preset);
    const { id, checkpoint } = named;
    const run = this.host.store.runs.find(each => each.summary.id === id);
    const configuration = run?.reader.manifest?.config_name;
    if (!run || configuration === undefined)
      throw new UserError(vscode.l10n.t('The run {0} no longer exists: choose another starting point.', id));
    if (checkpoint === undefined) {
      const name = baseName(configuration);
      const file = run.reader.manifest?.config_file;
      const sweep = file === undefined ? { config_name: name } : { config: relative(workspaceOf(run), file) };
      return { name, command: 'train', args: ['--from', id], asked: { run: id }, sweep, run };
    }
    const args = [id, '--from', checkpoint, '--fork'];
    return { name: `${id}, ${checkpoint}`, command: 'resume', args, asked: { run: id, checkpoint }, sweep: null, run };
  }

  private engines(): EngineList {
    const { chosen } = this;
    this.chosen = null;
    const engines = this.host.engines.engines.map(engine => ({
      ...{ name: engine.name, url: engine.url, about: engineLine(engine), abilities: abilitiesOf(engine) },
    }));
    return { engines, chosen };
  }

  /** Returns the saved engine that the user chose. @throws UserError if this engine is no longer saved */
  private engineOf({ engine: name }: NewRunChoice): KeptEngine | undefined {
    if (name === '') return undefined;
    const engine = this.host.engines.find(name);
    if (engine) return engine;
    throw new UserError(vscode.l10n.t('The engine {0} is no longer saved: choose another engine.', name));
  }

  /** Starts the sweep of the form and opens the Sweep page. @throws UserError if a value is invalid */
  private async startSweep(choice: NewRunChoice, { sweep: source }: StartSource, title: string): Promise<null> {
    const sweep = sweepOf(choice.sweep!);
    if (!source || 'problems' in sweep)
      throw new UserError('problems' in sweep ? sweep.problems[0].message : 'a sweep cannot start from a checkpoint');
    const file = await startSweep(this.host, {
      ...{ name: fileName(title), folder: choice.folder, jobs: sweep.jobs },
      text: name => sweepFile(choice, sweep, source, name, this.keysOf(choice)),
    });
    this.host.log.info(`the sweep ${file} has started`);
    await vscode.commands.executeCommand('ragen.runs.focus');
    return null;
  }

  private keysOf(choice: NewRunChoice): Record<string, string | null> | undefined {
    const engine = this.engineOf(choice);
    return engine && engineKeys(engine);
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
  private async save(choice: NewRunChoice, yaml: string): Promise<void> {
    const { name, file } = this.sourceOf(choice.preset);
    const title = choice.values['trainer.experiment_name'] ?? name;
    const folder = file === undefined ? join(choice.folder, 'config') : dirname(file);
    const free = freeName(folder, fileName(title));
    const target = await vscode.window.showSaveDialog({
      defaultUri: vscode.Uri.file(join(folder, free)),
      filters: { YAML: ['yaml', 'yml'] },
      title: vscode.l10n.t('Save the Configuration'),
    });
    if (!target) return;
    await mkdir(dirname(target.fsPath), { recursive: true });
    await writeFile(target.fsPath, yaml);
    await vscode.window.showTextDocument(target, { viewColumn: vscode.ViewColumn.Beside });
  }
}

/**
 * Returns the preset for an id. An id that is an absolute path is a file of the workspace; any other id is the name of
 * a built-in preset.
 */
function fileOrPreset(preset: string): StartSource {
  const command = 'train';
  if (!/[/\\]/.test(preset))
    return {
      ...{ name: preset, command, args: ['--config-name', preset], asked: { configName: preset } },
      sweep: { config_name: preset },
    };
  const name = baseName(preset);
  const asked = { configName: name, configFile: preset };
  const args = ['--config-name', name, '--config', preset];
  return { name, command, args, asked, sweep: { config: preset }, file: preset };
}

/** What a run starts from, and the command of the CLI that starts it. */
interface StartSource extends PresetSource {
  command: 'train' | 'resume';
  /** Path of the configuration file; undefined if the source is no file. */
  file?: string;
  /** The run to duplicate or to fork; undefined if the source is no run. */
  run?: Run;
}

/** Returns a run or one of its checkpoints as a starting point of the form. `runInPreset` reads the id. */
function presetOfRun({ run: { summary }, checkpoint }: RunSource): PresetChoice {
  const { id, name } = summary;
  if (checkpoint === undefined)
    return {
      id: `run:${id}`,
      name: vscode.l10n.t('run {0}', name),
      description: vscode.l10n.t('The configuration of run {0}. Its overrides can be changed below.', name),
    };
  const step = Number(checkpoint.slice('step-'.length));
  return {
    id: `fork:${checkpoint}:${id}`,
    name: vscode.l10n.t('{0} from step {1}', name, step),
    description: vscode.l10n.t(
      'A fork: the new run continues from step {0} of run {1} with the settings in effect at this step. Run {1} stays as it is.',
      step,
      name,
    ),
  };
}

/** Returns the run, and the checkpoint of a fork, that the id of a starting point names; undefined for other ids. */
function runInPreset(preset: string): { id: string; checkpoint?: string } | undefined {
  const [, checkpoint, id] = /^(?:run|fork:([^:/\\]+)):([^/\\]+)$/.exec(preset) ?? [];
  return id === undefined ? undefined : { id, checkpoint };
}

/** Returns the name of a configuration file without its folder and ending. */
const baseName = (file: string): string => file.replace(/^.*[/\\]/, '').replace(/\.ya?ml$/i, '');

/** Returns an unused file name in `folder`. */
function freeName(folder: string, name: string): string {
  for (let counter = 1; ; counter++) {
    const file = `${name}${counter === 1 ? '' : `-${counter}`}.yaml`;
    if (!existsSync(join(folder, file))) return file;
  }
}
