// What every command does. Commands reach the trainer through its link and start runs through the terminal's entry; what they
// change shows up by itself, since all views read the run folder.
import { dirname, join } from 'node:path';
import * as vscode from 'vscode';
import type { RunSummary } from '../protocol/pages';
import { runFiles } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';
import { findNode, nodeSearch } from './node-runtime';
import type { PagePanels } from './page-panels';
import type { Problems } from './problems';
import type { RunArgument, RunPicker } from './run-picker';
import type { Run, RunStore } from './run-store';
import { isActive, standingOf } from './run-words';
import { askForRun } from './start-dialog';
import { ConfigError, startRun, type StartedRun } from './start-run';

/** Everything that commands act on; made once, in `activate`. */
export interface Host {
  extensionPath: string;
  store: RunStore;
  picker: RunPicker;
  dashboards: PagePanels;
  episodes: PagePanels;
  problems: Problems;
  log: vscode.LogOutputChannel;
}

type Command = (host: Host) => (argument: RunArgument) => Promise<void>;

const is =
  (...standings: string[]) =>
  (run: RunSummary): boolean =>
    standings.includes(standingOf(run));

/** Every command of package.json to what it does. */
export const commands: Record<string, Command> = {
  'ragen.startRun': host => async () => {
    if (!trusted()) return;
    const request = await askForRun(host.extensionPath);
    if (request) await begin(host, request.args, request.cwd, request.name);
  },
  'ragen.pause': host => async argument => {
    const run = await host.picker.pick(argument, is('running'), vscode.l10n.t('No run is running.'));
    if (run) await host.store.link(run).pause();
  },
  'ragen.resume': host => async argument => {
    const none = vscode.l10n.t('No run is paused, and none that ended early has anything to resume.');
    const run = await host.picker.pick(argument, is('paused', 'stopped', 'failed', 'interrupted'), none);
    if (!run) return;
    if (standingOf(run.summary) === 'paused') await host.store.link(run).resume();
    else if (trusted()) await resumeFrom(host, run, []);
  },
  'ragen.stop': host => async argument => {
    const run = await host.picker.pick(argument, isActive, vscode.l10n.t('No run is running.'));
    if (run) await host.store.link(run).stop();
  },
  'ragen.saveCheckpoint': host => async argument => {
    const run = await host.picker.pick(argument, is('running'), vscode.l10n.t('No run is running.'));
    if (!run) return;
    const title = vscode.l10n.t('Checkpoint of {0} at the end of this step', run.summary.name);
    const link = host.store.link(run);
    await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, () => link.checkpoint());
  },
  'ragen.resumeFromCheckpoint': host => async argument => {
    if (!trusted()) return;
    const run = await host.picker.pick(argument, run => !isActive(run), vscode.l10n.t('No run has ended yet.'));
    if (!run) return;
    const checkpoints = await run.reader.checkpoints();
    if (checkpoints.length === 0)
      throw new UserError(vscode.l10n.t('Run {0} has no checkpoint yet.', run.summary.name));
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
  'ragen.showLog': host => async argument => {
    const run = await host.picker.pick(argument, () => true, noRuns());
    if (run) await openLog(run);
  },
};

/** A command as the editor calls it: whatever goes wrong becomes one notification. */
export function guarded(host: Host, command: Command): (argument: unknown) => Promise<void> {
  const run = command(host);
  return async argument => {
    try {
      await run(isRunArgument(argument) ? argument : undefined);
    } catch (error) {
      await report(host, error);
    }
  };
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

async function resumeFrom(host: Host, run: Run, options: string[]): Promise<void> {
  const workspace = dirname(dirname(dirname(run.folder))); // <workspace>/.ragen/runs/<id>
  await begin(host, ['resume', run.summary.id, ...options], workspace, run.summary.name);
}

/** Starts, waits until the run can be seen, and opens its dashboard. */
async function begin(host: Host, args: string[], cwd: string, name: string): Promise<void> {
  const { store, log, problems } = host;
  const cli = join(host.extensionPath, 'dist', 'cli.cjs');
  const setting = vscode.workspace.getConfiguration('ragen').get('nodePath', '');
  const progress = { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Starting {0}', name) };
  let started: StartedRun;
  try {
    started = await vscode.window.withProgress(progress, async () => {
      const node = await findNode(nodeSearch(setting));
      log.info(
        `${node.path} (Node ${node.version}${node.electron ? ', the editor’s own' : ''}) ${cli} ${args.join(' ')} in ${cwd}`,
      );
      return startRun(node, cli, args, cwd);
    });
  } catch (error) {
    const shown = error instanceof ConfigError ? problems.show(error.problems, cwd) : 0;
    if (shown > 0) await vscode.commands.executeCommand('workbench.actions.view.problems');
    if (shown > 1)
      throw new UserError(vscode.l10n.t('{0} … and {1} more in the Problems view.', messageOf(error), shown - 1));
    throw error;
  }
  problems.clear();
  const run = await store.find(started.folder);
  if (!run)
    throw new UserError(
      `run ${started.run} was started in ${started.folder}, which this workspace does not show: open its folder`,
    );
  host.dashboards.show(run, besideText(), true);
}

/** Beside the text being read, else where the reader is. */
const besideText = (): vscode.ViewColumn =>
  vscode.window.activeTextEditor ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active;

const noRuns = (): string => vscode.l10n.t('There is no run in this workspace yet: start one with RAGEN: Start Run.');

/** Environments are code that runs: nothing is started in a workspace that is not trusted. */
function trusted(): boolean {
  if (vscode.workspace.isTrusted) return true;
  const manage = vscode.l10n.t('Manage Trust');
  const message = vscode.l10n.t('A run executes code of this workspace, which is not trusted: trust it to start runs.');
  void vscode.window
    .showWarningMessage(message, manage)
    .then(choice => choice === manage && vscode.commands.executeCommand('workbench.trust.manage'));
  return false;
}

async function report({ log }: Host, error: unknown): Promise<void> {
  if (!(error instanceof UserError)) log.error(error instanceof Error ? error : String(error));
  void vscode.window.showErrorMessage(messageOf(error));
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The editor hands a view's commands its nodes, and others nothing or things of its own. */
function isRunArgument(argument: unknown): argument is RunArgument {
  return typeof argument === 'string' || (typeof argument === 'object' && argument !== null && 'folder' in argument);
}
