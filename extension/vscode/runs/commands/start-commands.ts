// Commands that start a run: from a configuration, with the configuration of a run, or as an evaluation of a run.
import * as vscode from 'vscode';
import type { RunSummary } from '../../../protocol/page-state';
import { isEvaluation } from '../../../run-data/run-progress';
import type { Command } from '../../command';
import { notifyInformation } from '../../notifications';
import { noRuns, ownRun, takesNoSteps } from './run-checks';
import { workspaceOf } from '../run-store';
import { trustOptions } from '../run-trust-dialog';
import { begin } from '../start/begin-run';
import { clusterOptions } from '../start/cluster';
import { startWithOverrides } from '../start/overrides-box';
import { askForFolder, askForRun } from '../start/start-dialog';
import { trusted } from '../../workspace-trust';

export const startCommands: Record<string, Command> = {
  'ragen.startQuickstart': host => async () => {
    if (!trusted()) return;
    const folder = await askForFolder();
    if (!folder) return;
    const args = ['train', '--config-name', 'quickstart', ...clusterOptions()];
    await begin(host, args, folder.uri.fsPath, 'quickstart');
  },
  'ragen.startRun': host => async () => {
    if (!trusted()) return;
    const request = await askForRun(host.extensionPath);
    if (!request) return;
    const { args, cwd, name } = request;
    const title = vscode.l10n.t('Start Run: {0}', name);
    const prompt = vscode.l10n.t('Optional overrides as key=value. Press Enter to start.');
    await startWithOverrides({ title, prompt }, overrides =>
      begin(host, [...args, ...clusterOptions(), ...overrides], cwd, name),
    );
  },
  'ragen.duplicateRun': host => async argument => {
    if (!trusted()) return;
    const run = await host.picker.pick(argument, ownRun, noRuns());
    if (!run || (run.summary.trainer && takesNoSteps(run))) return;
    await vscode.commands.executeCommand('ragen.newRun', { run: run.folder });
  },
  'ragen.evaluateRun': host => async argument => {
    if (!trusted()) return;
    const trained = (run: RunSummary): boolean => ownRun(run) && !isEvaluation(run.status);
    const run = await host.picker.pick(argument, trained, noRuns());
    if (!run || takesNoSteps(run)) return;
    const { id, name } = run.summary;
    const [newest] = await run.reader.checkpoints();
    if (newest === undefined) return void notifyInformation(vscode.l10n.t('Run {0} has no checkpoint yet.', name));
    const question = {
      title: vscode.l10n.t('Evaluate {0}', name),
      prompt: vscode.l10n.t(
        'The checkpoint {0} plays the validation episodes once. Optional overrides as key=value. Press Enter to start.',
        newest,
      ),
      placeholder: 'es_manager.val.group_size=8',
    };
    const title = vscode.l10n.t('the evaluation of {0}', name);
    const trust = await trustOptions(host, run);
    if (!trust) return;
    await startWithOverrides(question, overrides =>
      begin(host, ['eval', '--run', id, ...trust, ...clusterOptions(), ...overrides], workspaceOf(run), title),
    );
  },
};
