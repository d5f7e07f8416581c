// The commands on runs. Commands reach the trainer through its link and start runs through the CLI. Their effects need
// no extra update, since all views read the run folder.
import { dirname, join } from 'node:path';
import * as vscode from 'vscode';
import type { RunSummary } from '../../protocol/pages';
import { runFiles } from '../../run-data/run-files';
import { isEvaluation } from '../../run-data/run-progress';
import { UserError } from '../../common/user-error';
import type { ComparePanels } from '../pages/compare-panel';
import { compareEnvironments } from '../environments/compare-environments';
import type { CoverageDecorations } from '../environments/coverage-decorations';
import { debugEnvironments } from '../environments/debug-environment';
import type { CliInvocation } from '../processes/cli-process';
import { notifyBriefly, notifyError, notifyInformation, notifyWarning, withProgress } from '../notices';
import { startWithOverrides } from './overrides-box';
import type { PagePanels } from '../pages/page-panels';
import type { SecretStore } from '../processes/secret-store';
import type { Problems } from './problems';
import type { RunArgument, RunPicker } from './run-picker';
import type { RunTrust } from './run-trust';
import type { Run, RunStore } from './run-store';
import { isActive, runPhase } from './run-format';
import type { RunsTree } from './runs-tree';
import { askForRun } from './start-dialog';
import { ConfigError, startRun, type StartedRun } from './start-run';

/** Everything that commands use; created once, in `activate`. */
export interface Host {
  extensionPath: string;
  /** Returns the CLI for a folder, with the Node.js that runs it (see Terminals). */
  terminal(cwd: string): Promise<CliInvocation>;
  secrets: SecretStore;
  /** Asks for permission before code that a run folder names or holds is executed. */
  trust: RunTrust;
  store: RunStore;
  picker: RunPicker;
  dashboards: PagePanels;
  episodes: PagePanels;
  collapses: PagePanels;
  comparisons: ComparePanels;
  tree: RunsTree;
  problems: Problems;
  coverage: CoverageDecorations;
  /** Closes all pages of a run. */
  closePages(folder: string): void;
  log: vscode.LogOutputChannel;
}

/** A command on runs. `argument` is the run it was called on, `all` are the runs selected with it. */
export type Command = (host: Host) => (argument: RunArgument, all: RunArgument[]) => Promise<void>;

const is =
  (...phases: string[]) =>
  (run: RunSummary): boolean =>
    phases.includes(runPhase(run));

/** All run commands of package.json by id. */
export const commands: Record<string, Command> = {
  'ragen.startRun': host => async () => {
    if (!trusted()) return;
    const request = await askForRun(host.extensionPath);
    if (!request) return;
    const { args, cwd, name } = request;
    const title = vscode.l10n.t('Start Run: {0}', name);
    const prompt = vscode.l10n.t('Overrides as key=value, if any. Press Enter to start.');
    await startWithOverrides({ title, prompt }, overrides => begin(host, [...args, ...overrides], cwd, name));
  },
  'ragen.pause': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, is('running'), vscode.l10n.t('No run is running.'));
    await Promise.all(runs.map(run => host.store.link(run).pause()));
  },
  'ragen.resume': host => async (argument, all) => {
    const none = vscode.l10n.t('No run is paused, stopped, failed or interrupted.');
    const runs = await host.picker.pickMany(argument, all, is('paused', 'stopped', 'failed', 'interrupted'), none);
    for (const run of runs) {
      if (runPhase(run.summary) === 'paused') await host.store.link(run).resume();
      else if (trusted()) await resumeFrom(host, run, []);
    }
  },
  'ragen.stop': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, isActive, vscode.l10n.t('No run is running.'));
    await Promise.all(runs.map(run => host.store.link(run).stop()));
  },
  'ragen.saveCheckpoint': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, is('running'), vscode.l10n.t('No run is running.'));
    const save = (run: Run) => {
      const title = vscode.l10n.t('Checkpoint of {0} at the end of this step', run.summary.name);
      const link = host.store.link(run);
      return withProgress({ location: vscode.ProgressLocation.Window, title }, () => link.checkpoint());
    };
    await Promise.all(runs.filter(run => !takesNoSteps(run)).map(save));
  },
  'ragen.resumeFromCheckpoint': host => async argument => {
    if (!trusted()) return;
    const ended = (run: RunSummary) => !isActive(run) && !isEvaluation(run.status);
    const run = await host.picker.pick(argument, ended, vscode.l10n.t('No run has ended yet.'));
    if (!run || takesNoSteps(run)) return;
    const checkpoints = await run.reader.checkpoints();
    if (checkpoints.length === 0)
      return void notifyInformation(vscode.l10n.t('Run {0} has no checkpoint yet.', run.summary.name));
    const chosen = await vscode.window.showQuickPick(checkpoints, {
      placeHolder: vscode.l10n.t('Resume {0} from which checkpoint?', run.summary.name),
    });
    if (chosen !== undefined) await resumeFrom(host, run, ['--checkpoint', chosen]);
  },
  'ragen.openDashboard': host => async argument => {
    const run = await host.picker.pick(argument, () => true, noRuns());
    if (run) host.dashboards.show(run, besideText());
  },
  'ragen.openEpisodes': host => async argument => {
    const run = await host.picker.pick(argument, () => true, noRuns());
    if (run) host.episodes.show(run, vscode.ViewColumn.Active);
  },
  'ragen.openCollapse': host => async argument => {
    const run = await host.picker.pick(argument, () => true, noRuns());
    if (run) host.collapses.show(run, vscode.ViewColumn.Active);
  },
  'ragen.showLog': host => async argument => {
    const run = await host.picker.pick(argument, () => true, noRuns());
    if (run) await openLog(run);
  },
  'ragen.debugEnvironment': host => async argument => {
    if (!trusted()) return;
    const run = await host.picker.pick(argument, isActive, vscode.l10n.t('No run is running.'));
    if (run) await debugEnvironments(host.store, run);
  },
  'ragen.toggleCoverage': host => async argument => {
    const run = await host.picker.pick(argument, () => true, noRuns());
    if (!run) return;
    const on = await host.coverage.toggle(run);
    const { name } = run.summary;
    notifyBriefly(
      on
        ? vscode.l10n.t('Environment coverage of {0} is shown in its sources from the next step on', name)
        : vscode.l10n.t('Environment coverage of {0} is off', name),
      8000,
    );
  },
  'ragen.compareEnvironments': host => async argument => {
    const run = await host.picker.pick(argument, () => true, noRuns());
    if (run) await compareEnvironments(run);
  },
};

/** Wraps a command for registration: an error becomes one notification. */
export function guarded(host: Host, command: Command): (argument: unknown, nodes?: unknown) => Promise<void> {
  const run = command(host);
  return async (argument, nodes) => {
    try {
      // Key bindings of the tree pass `selection`, since VS Code passes nodes only to menus.
      const selected: unknown[] = argument === 'selection' ? host.tree.selected : Array.isArray(nodes) ? nodes : [];
      const all = selected.filter(isRunArgument);
      await run(argument !== 'selection' && isRunArgument(argument) ? argument : all[0], all);
    } catch (error) {
      await report(host, error);
    }
  };
}

/** Whether a run is an evaluation. If so, notifies the user why step-based commands do not apply. */
export function takesNoSteps({ summary: { name, status } }: Run): boolean {
  if (!isEvaluation(status)) return false;
  const refusal = vscode.l10n.t('Run {0} is an evaluation: it takes no steps and has no checkpoints.', name);
  void notifyInformation(refusal);
  return true;
}

/** Opens a run's trainer log in the editor. */
export async function openLog({ folder, summary }: Run): Promise<void> {
  const uri = vscode.Uri.file(join(folder, runFiles.log));
  try {
    await vscode.window.showTextDocument(uri, { preview: true });
  } catch {
    throw new UserError(vscode.l10n.t('Run {0} has no log yet: {1} is not there.', summary.name, uri.fsPath));
  }
}

/** Workspace folder of a run: `<workspace>/.ragen/runs/<id>`. */
export const workspaceOf = (run: Run): string => dirname(dirname(dirname(run.folder)));

async function resumeFrom(host: Host, run: Run, options: string[]): Promise<void> {
  const trust = await trustOptions(host, run);
  if (trust) await begin(host, ['resume', run.summary.id, ...trust, ...options], workspaceOf(run), run.summary.name);
}

/** Returns CLI options that permit executing the run's code, or undefined if the user refuses. */
export async function trustOptions({ trust }: Host, { folder }: Run): Promise<string[] | undefined> {
  const trusted = await trust.ask(folder);
  return trusted?.accepted.flatMap(sha256 => ['--trust-code', sha256]);
}

/**
 * Starts a run, waits until the store has it, and opens its dashboard. `args` are CLI arguments, `cwd` is the workspace
 * folder.
 */
export async function begin(host: Host, args: string[], cwd: string, name: string): Promise<void> {
  const { store, log, problems } = host;
  const progress = { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Starting {0}', name) };
  let started: StartedRun;
  try {
    started = await withProgress(progress, async () => {
      const { node, cli } = await host.terminal(cwd);
      log.info(
        `${node.path} (Node ${node.version}${node.electron ? ', the editor’s runtime' : ''}) ${cli} ${args.join(' ')} in ${cwd}`,
      );
      return startRun(node, cli, args, cwd);
    });
  } catch (error) {
    const shown = error instanceof ConfigError ? problems.show(error.problems, cwd) : 0;
    if (shown > 0) await vscode.commands.executeCommand('workbench.actions.view.problems');
    if (shown > 1)
      throw new UserError(vscode.l10n.t('{0} ({1} more in the Problems view)', messageOf(error), shown - 1));
    throw error;
  }
  problems.clear();
  const run = await store.find(started.folder);
  if (!run)
    throw new UserError(
      `run ${started.run} was started in ${started.folder}, which is not in this workspace: open its folder`,
    );
  host.dashboards.show(run, besideText(), true);
}

/** Beside the active text editor if there is one, else in the active column. */
const besideText = (): vscode.ViewColumn =>
  vscode.window.activeTextEditor ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active;

export const noRuns = (): string =>
  vscode.l10n.t('There is no run in this workspace yet: start one with RAGEN: Start Run.');

/**
 * Checks workspace trust and notifies the user if it is missing. Environments are code that runs, so nothing is started
 * in an untrusted workspace.
 */
export function trusted(
  message = vscode.l10n.t('A run executes code of this workspace, which is not trusted: trust it to start runs.'),
): boolean {
  if (vscode.workspace.isTrusted) return true;
  const manage = vscode.l10n.t('Manage Trust');
  void notifyWarning(message, manage).then(
    choice => choice === manage && vscode.commands.executeCommand('workbench.trust.manage'),
  );
  return false;
}

/** Shows an error as one notification. Errors that are not the user's are logged with their stack. */
export async function report({ log }: Pick<Host, 'log'>, error: unknown): Promise<void> {
  if (!(error instanceof UserError)) log.error(error instanceof Error ? error : String(error));
  void notifyError(messageOf(error));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** VS Code passes a view's commands its nodes, and other commands nothing or unrelated values. */
function isRunArgument(argument: unknown): argument is RunArgument {
  return typeof argument === 'string' || (typeof argument === 'object' && argument !== null && 'folder' in argument);
}
