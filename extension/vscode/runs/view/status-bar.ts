// Status bar item for the newest active run: `quickstart 12/40 · 61 %`. If a trainer has paused its run, this run takes
// precedence and is shown as a warning, because the run continues only after the user acts. A click opens the run's
// dashboard. The item is hidden if no run is active.
import * as vscode from 'vscode';
import { progressOf } from '../../../run-data/run-progress';
import { plain } from '../../plain-text';
import type { RunStore } from '../run-store';
import { isActive, percent, runPhase, waitsBecause } from '../run-format';
import { formatState } from '../state-label';
import type { RunNode } from './runs-tree';

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('ragen.run', vscode.StatusBarAlignment.Left, 0);
  private readonly subscription: vscode.Disposable;

  constructor(private readonly store: RunStore) {
    this.item.name = vscode.l10n.t('RAGEN Run');
    this.subscription = store.onDidChange(() => this.draw());
  }

  dispose(): void {
    this.subscription.dispose();
    this.item.dispose();
  }

  private draw(): void {
    const active = this.store.runs.filter(run => isActive(run.summary));
    if (active.length === 0) return this.item.hide();
    const { folder, summary } = active.find(run => waitsBecause(run.summary) !== undefined) ?? active[0];
    const because = waitsBecause(summary);
    const silent = summary.silent_s !== undefined;
    const { status, name } = summary;
    const paused = runPhase(summary) === 'paused';
    const { done, of } = progressOf(status);
    const progress = [
      of > 0 ? `${name} ${done}/${of}` : name,
      ...(status.success === null ? [] : [`${status.success_of === 'val' ? 'val ' : ''}${percent(status.success)}`]),
    ].join(' · ');
    this.item.text = `$(${because !== undefined || silent ? 'warning' : paused ? 'debug-pause' : 'pulse'}) ${plain(progress)}`;
    this.item.backgroundColor =
      because === undefined ? undefined : new vscode.ThemeColor('statusBarItem.warningBackground');
    const stateLabel = silent || because === undefined ? formatState(summary) : vscode.l10n.t('paused: {0}', because);
    const more = active.length > 1 ? [vscode.l10n.t('and {0} more active', active.length - 1)] : [];
    this.item.tooltip = [`RAGEN: ${name}, ${stateLabel}`, ...more].join(', ');
    this.item.accessibilityInformation = { label: `RAGEN ${progress}, ${stateLabel}`, role: 'button' };
    const node: RunNode = { group: paused ? 'paused' : 'running', folder };
    this.item.command = { command: 'ragen.openDashboard', title: vscode.l10n.t('Open Dashboard'), arguments: [node] };
    this.item.show();
  }
}
