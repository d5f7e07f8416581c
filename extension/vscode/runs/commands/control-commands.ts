// Commands that control the trainers of runs: pause, resume, stop, save a checkpoint, resume from a checkpoint,
// fork from a checkpoint.
import * as vscode from 'vscode';
import type { RunSummary } from '../../../protocol/page-state';
import { isEvaluation } from '../../../run-data/run-progress';
import type { Command } from '../../command';
import type { Host } from '../../host-services';
import { notifyInformation, withProgress } from '../../notifications';
import { isQueuedStatus } from '../../../run-data/job-record';
import { askCli } from '../../processes/cli-command';
import { jobOptions, resumeOptions } from '../start/cluster';
import { noRuns, ownRun, takesNoSteps } from './run-checks';
import { isActive, resumeOutcome, runPhase } from '../run-format';
import { workspaceOf, type Run } from '../run-store';
import { trustOptions } from '../run-trust-dialog';
import { begin } from '../start/begin-run';
import { askForCheckpoint, continueOptions } from '../start/checkpoint-dialog';
import { trusted } from '../../workspace-trust';

const is =
  (...phases: string[]) =>
  (run: RunSummary): boolean =>
    ownRun(run) && phases.includes(runPhase(run));

export const controlCommands: Record<string, Command> = {
  'ragen.pause': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, is('running'), vscode.l10n.t('No run is running.'));
    await Promise.all(runs.map(run => host.store.trainer(run).pause()));
  },
  'ragen.resume': host => async (argument, all) => {
    const named = await host.picker.named(argument, all);
    if (named.length > 0 && named.every(({ summary }) => resumeOutcome(summary) !== 'resume'))
      return openUnresumed(named[0]);
    const none = vscode.l10n.t('No run can be resumed: none is paused, stopped, failed or interrupted.');
    const runs = await host.picker.pickMany(argument, all, is('paused', 'stopped', 'failed', 'interrupted'), none);
    for (const run of runs) {
      if (runPhase(run.summary) === 'paused') await host.store.trainer(run).resume();
      else if (trusted()) await resumeFrom(host, run, []);
    }
  },
  'ragen.stop': host => async (argument, all) => {
    const runs = await host.picker.pickMany(
      argument,
      all,
      is('running', 'paused'),
      vscode.l10n.t('No run is running.'),
    );
    await Promise.all(runs.map(run => stop(host, run)));
  },
  'ragen.saveCheckpoint': host => async (argument, all) => {
    const runs = await host.picker.pickMany(argument, all, is('running'), vscode.l10n.t('No run is running.'));
    const save = (run: Run) => {
      const title = vscode.l10n.t('A checkpoint of {0} is saved at the end of this step', run.summary.name);
      const trainer = host.store.trainer(run);
      return withProgress({ location: vscode.ProgressLocation.Window, title }, () => trainer.checkpoint());
    };
    await Promise.all(runs.filter(run => !takesNoSteps(run)).map(save));
  },
  'ragen.resumeFromCheckpoint': host => async argument => {
    if (!trusted()) return;
    const ended = (run: RunSummary) => ownRun(run) && !isActive(run) && !isEvaluation(run.status);
    const run = await host.picker.pick(argument, ended, vscode.l10n.t('No run has ended yet.'));
    if (!run || takesNoSteps(run)) return;
    const question = vscode.l10n.t('Resume {0} from which checkpoint?', run.summary.name);
    const chosen = await askForCheckpoint(run, question);
    const options = chosen && (await continueOptions(run, chosen));
    if (options) await resumeFrom(host, run, options);
  },
  'ragen.forkRun': host => async argument => {
    if (!trusted()) return;
    const trained = (run: RunSummary): boolean => ownRun(run) && !isEvaluation(run.status);
    const run = await host.picker.pick(argument, trained, noRuns());
    if (!run || takesNoSteps(run)) return;
    const question = vscode.l10n.t('Start a new run from which checkpoint of {0}?', run.summary.name);
    const chosen = await askForCheckpoint(run, question);
    if (chosen) await vscode.commands.executeCommand('ragen.newRun', { run: run.folder, checkpoint: chosen.name });
  },
};

/**
 * Opens a run that needs no resume, and says why. The user may have pressed Resume in an old notification or on a page
 * that has not been updated yet.
 */
async function openUnresumed({ folder, summary }: Run): Promise<void> {
  const { name, status } = summary;
  await vscode.commands.executeCommand('ragen.openDashboard', folder);
  void notifyInformation(
    resumeOutcome(summary) === 'continues'
      ? vscode.l10n.t('Run {0} continues: its trainer is running (step {1}).', name, status.step)
      : vscode.l10n.t('Run {0} has finished at step {1}.', name, status.step),
  );
}

async function resumeFrom(host: Host, run: Run, options: string[]): Promise<void> {
  const trust = await trustOptions(host, run);
  const place = trust && (await resumeOptions(run.summary));
  if (!place) return;
  const args = ['resume', run.summary.id, ...trust, ...options, ...place];
  await begin(host, args, workspaceOf(run), run.summary.name);
}

/** Stops a run; cancels the job of a queued run, which has no trainer yet. */
async function stop(host: Host, run: Run): Promise<void> {
  const { id, name, job, status } = run.summary;
  if (!job || !isQueuedStatus(status)) return void (await host.store.trainer(run).stop());
  const options = trusted() ? await jobOptions({ ...run.summary, job }) : undefined;
  if (!options) return;
  const title = vscode.l10n.t('Cancelling the job of {0}', name);
  await withProgress({ location: vscode.ProgressLocation.Window, title }, async () => {
    const cwd = workspaceOf(run);
    const { node, cli } = await host.cliFor(cwd);
    return askCli(node, cli, ['stop', id, ...options], cwd, title);
  });
}
