// Reports the end of runs: a notification with the results and the next steps, and a status bar item that stays until
// the user has seen the end. Nothing is reported if the window has the focus and shows the run's dashboard, because the
// dashboard's banner contains the same facts, nor if the page of the run's sweep is open, which reports the end of the
// sweep. failure-notice.ts reports runs that failed.
import * as vscode from 'vscode';
import { endingSentence } from '../../../run-data/run-ending';
import { isEvaluation } from '../../../run-data/run-progress';
import type { Host } from '../../host-services';
import { notifyInformation } from '../../notifications';
import { plain } from '../../plain-text';
import { readEnding } from '../../run-files/ending-reader';
import { MetricColumns } from '../../run-files/metrics/metric-columns';
import { duration, percent, runPhase, short } from '../run-format';
import { workspaceOf, type Run } from '../run-store';
import { formatProgress } from '../state-label';
import type { RunNode } from './runs-tree';
import { UnseenEnds } from './unseen-ends';

/** Subscribes to the store; disposing of the result ends the subscription. `memory` is the workspace state. */
export function noticeEnds(
  { store, dashboards, sweeps }: Pick<Host, 'store' | 'dashboards' | 'sweeps'>,
  memory: vscode.Memento,
): vscode.Disposable {
  const unseen = new UnseenEnds(memory);
  const item = vscode.window.createStatusBarItem('ragen.ended', vscode.StatusBarAlignment.Left, -1);
  item.name = vscode.l10n.t('RAGEN Finished Run');
  const isOnSweepPage = (run: Run): boolean => {
    const id = run.reader.manifest?.sweep?.id;
    return id !== undefined && sweeps.isOpen(workspaceOf(run), id);
  };
  const isWatched = (folder: string): boolean => vscode.window.state.focused && dashboards.focused === folder;

  function draw(): void {
    for (const folder of unseen.folders) if (isWatched(folder)) unseen.see(folder);
    const ended = unseen.folders
      .map(folder => store.get(folder))
      .filter(run => run !== undefined && runPhase(run.summary) === 'finished');
    const newest = ended[0];
    if (!newest) return item.hide();
    const { folder, summary } = newest;
    const text = vscode.l10n.t('{0} finished · {1}', summary.name, formatProgress(summary));
    const more = ended.length > 1 ? [vscode.l10n.t('and {0} more', ended.length - 1)] : [];
    item.text = `$(pass) ${plain(text)}`;
    item.tooltip = [text, ...more, vscode.l10n.t('click to open the dashboard')].join(', ');
    item.accessibilityInformation = { label: `RAGEN ${text}`, role: 'button' };
    const node: RunNode = { group: 'finished', folder };
    item.command = { command: 'ragen.openDashboard', title: vscode.l10n.t('Open Dashboard'), arguments: [node] };
    item.show();
  }

  async function report(run: Run): Promise<void> {
    const { folder, reader, summary } = run;
    unseen.add(folder);
    draw();
    const ending = await readEnding(reader, await new MetricColumns(folder, null).update());
    if (!ending) return;
    const commands = new Map([
      [vscode.l10n.t('Dashboard'), 'ragen.openDashboard'],
      [vscode.l10n.t('Compare'), 'ragen.compareRuns'],
      ...(isEvaluation(summary.status) || summary.trainer
        ? []
        : ([
            [vscode.l10n.t('Evaluate'), 'ragen.evaluateRun'],
            [vscode.l10n.t('Fork'), 'ragen.forkRun'],
          ] as const)),
      [vscode.l10n.t('Export'), 'ragen.exportRun'],
    ]);
    const sentence = endingSentence(summary.name, ending, { percent, duration, short });
    const choice = await notifyInformation(sentence, ...commands.keys());
    if (choice === undefined) return;
    unseen.see(folder);
    draw();
    await vscode.commands.executeCommand(commands.get(choice)!, folder);
  }

  draw();
  return vscode.Disposable.from(
    item,
    store.onDidMove(({ run, from, to }) => {
      const ends = to === 'finished' && (from === 'running' || from === 'paused');
      if (ends && !isWatched(run.folder) && !isOnSweepPage(run)) void report(run);
    }),
    store.onDidChange(draw),
    vscode.window.onDidChangeWindowState(draw),
    vscode.window.tabGroups.onDidChangeTabs(draw),
    vscode.window.tabGroups.onDidChangeTabGroups(draw),
  );
}
