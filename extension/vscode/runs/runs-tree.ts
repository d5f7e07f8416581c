// The Runs view: all runs of the workspace, grouped by standing; empty groups are hidden. Archived runs are hidden by
// default. A filter keeps runs with all its words in name, tags, configuration or id. The badge counts the active runs.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { RunSummary } from '../../protocol/pages';
import type { RunStatus } from '../../run-data/run-status-file';
import { progressOf } from '../../run-data/run-progress';
import { plain, unlinked } from '../plain-text';
import type { Run, RunStore } from './run-store';
import {
  briefly,
  contextOf,
  duration,
  isActive,
  matches,
  percent,
  sharedNames,
  short,
  runPhase,
  formatStart,
  waitsBecause,
  type RunPhase,
} from './run-format';

/** `interrupted` runs are listed with the failed ones, archived runs separately unless they are active. */
type Group = Exclude<RunPhase, 'interrupted'> | 'archived';
const groups: Group[] = ['running', 'paused', 'failed', 'finished', 'stopped', 'archived'];
const groupOf = (run: RunSummary): Group => {
  const phaseOfRun = runPhase(run);
  if (run.archived && !isActive(run)) return 'archived';
  return phaseOfRun === 'interrupted' ? 'failed' : phaseOfRun;
};

/** A tree node: a group, a run folder, or a folder with an unusable manifest (`damaged`). */
export interface RunNode {
  group: Group;
  folder?: string;
  damaged?: string;
}

/** Workspace state key for showing archived runs. */
const archivedKey = 'ragen.runs.archivedShown';

export class RunsTree implements vscode.TreeDataProvider<RunNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscription: vscode.Disposable;
  private filtered = '';
  /** Names shared by several visible runs. */
  private shared = new Set<string>();
  /** Last values of the context keys for the menus. */
  private readonly context = new Map<string, boolean>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<RunNode>;

  constructor(
    private readonly store: RunStore,
    private readonly memory: vscode.Memento,
  ) {
    const options = { treeDataProvider: this, showCollapseAll: false, canSelectMany: true };
    this.view = vscode.window.createTreeView('ragen.runs', options);
    this.subscription = store.onDidChange(() => this.refresh());
    this.refresh();
  }

  getChildren(node?: RunNode): RunNode[] {
    const runs = this.shown;
    const damaged = this.filtered === '' ? this.store.damaged : [];
    if (!node) {
      const has = (group: Group) =>
        runs.some(run => groupOf(run.summary) === group) || (group === 'failed' && damaged.length > 0);
      return groups.filter(has).map(group => ({ group }));
    }
    const rows = runs.filter(run => groupOf(run.summary) === node.group);
    return [
      ...rows.map(({ folder }) => ({ group: node.group, folder })),
      ...(node.group === 'failed' ? damaged.map(each => ({ group: node.group, damaged: each.folder })) : []),
    ];
  }

  getParent(node: RunNode): RunNode | undefined {
    return node.folder === undefined && node.damaged === undefined ? undefined : { group: node.group };
  }

  getTreeItem(node: RunNode): vscode.TreeItem {
    if (node.damaged !== undefined) {
      const found = this.store.damaged.find(({ folder }) => folder === node.damaged);
      return damagedItem(node.damaged, found?.reason ?? '');
    }
    const run = node.folder === undefined ? undefined : this.store.get(node.folder);
    return run
      ? runItem(run, this.shared.has(run.summary.name))
      : groupItem(node.group, this.getChildren({ group: node.group }).length);
  }

  /** Folders of the selected runs, in selection order. */
  get selected(): string[] {
    return this.view.selection.flatMap(({ folder }) => folder ?? []);
  }

  /** Words that visible runs contain in name, tags, configuration or id; empty shows all runs. */
  get filter(): string {
    return this.filtered;
  }
  set filter(words: string) {
    this.filtered = words.trim();
    this.refresh();
  }

  get archivedShown(): boolean {
    return this.memory.get(archivedKey, false);
  }

  /** Shows or hides archived runs; stored in the workspace state. */
  async showArchived(shown: boolean): Promise<void> {
    await this.memory.update(archivedKey, shown);
    this.refresh();
  }

  dispose(): void {
    this.subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }

  private get shown(): Run[] {
    const { archivedShown, filtered } = this;
    return this.store.runs.filter(
      ({ summary }) => (archivedShown || groupOf(summary) !== 'archived') && matches(summary, filtered),
    );
  }

  private refresh(): void {
    const { runs } = this.store;
    this.shared = sharedNames(this.shown.map(({ summary }) => summary));
    const active = runs.filter(run => isActive(run.summary)).length;
    this.view.badge = active === 0 ? undefined : { value: active, tooltip: atWork(active) };
    this.view.description = this.filtered;
    // An empty view shows its welcome text, which would claim that there are no runs.
    const hidden = runs.length > 0 && this.store.damaged.length === 0 && this.shown.length === 0;
    this.view.message = !hidden
      ? undefined
      : this.filtered !== ''
        ? vscode.l10n.t('No run matches “{0}” in name, tags or configuration.', this.filtered)
        : vscode.l10n.t('All runs of this workspace are archived.');
    this.setContext('ragen.hasRuns', runs.length > 0 || this.store.damaged.length > 0);
    this.setContext('ragen.archivedShown', this.archivedShown);
    this.setContext('ragen.runsFiltered', this.filtered !== '');
    this.changed.fire();
  }

  private setContext(key: string, value: boolean): void {
    if (this.context.get(key) === value) return;
    this.context.set(key, value);
    void vscode.commands.executeCommand('setContext', key, value);
  }
}

const atWork = (count: number): string =>
  count === 1 ? vscode.l10n.t('1 active run') : vscode.l10n.t('{0} active runs', count);

function groupItem(group: Group, count: number): vscode.TreeItem {
  const labels: Record<Group, string> = {
    running: vscode.l10n.t('Running'),
    paused: vscode.l10n.t('Paused'),
    failed: vscode.l10n.t('Failed or interrupted'),
    finished: vscode.l10n.t('Finished'),
    stopped: vscode.l10n.t('Stopped'),
    archived: vscode.l10n.t('Archived'),
  };
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(labels[group], group === 'archived' ? Collapsed : Expanded);
  item.id = `group:${group}`;
  item.description = String(count);
  item.contextValue = 'group';
  return item;
}

/** Tree item of a folder with an unusable manifest, with the reason. */
function damagedItem(folder: string, reason: string): vscode.TreeItem {
  const item = new vscode.TreeItem(plain(basename(folder)), vscode.TreeItemCollapsibleState.None);
  item.id = `damaged:${folder}`;
  item.description = vscode.l10n.t('unreadable: {0}', plain(briefly(reason)));
  item.iconPath = iconOf('interrupted');
  item.tooltip = new vscode.MarkdownString().appendText(unlinked(reason));
  item.contextValue = 'damaged';
  return item;
}

/** `isShared`: another visible run has the same name. */
function runItem({ folder, summary }: Run, isShared: boolean): vscode.TreeItem {
  const item = new vscode.TreeItem(summary.name, vscode.TreeItemCollapsibleState.None);
  const phaseOfRun = runPhase(summary);
  item.id = folder;
  // Tags come first, because a narrow side bar cuts off the rest.
  const tags = (summary.tags ?? []).map(tag => `#${tag}`).join(' ');
  const began = isShared ? [formatStart(summary.created)] : [];
  const rest = [...(tags === '' ? [] : [tags]), formatProgress(summary), ...began].join(' · ');
  const waits = waitsBecause(summary) !== undefined;
  const { trouble } = summary;
  const unread = trouble === undefined ? undefined : vscode.l10n.t('unreadable: {0}', plain(briefly(trouble)));
  item.description = unread ?? (waits ? `${plain(formatState(summary))} · ${rest}` : rest);
  item.iconPath = iconOf(waits || unread !== undefined ? 'interrupted' : phaseOfRun);
  item.tooltip = tooltipOf(summary);
  item.contextValue = contextOf(summary);
  item.accessibilityInformation = { label: `${summary.name}, ${formatState(summary)}, ${rest}` };
  item.command = {
    command: 'ragen.openDashboard',
    title: vscode.l10n.t('Open Dashboard'),
    arguments: [{ group: groupOf(summary), folder }],
  };
  return item;
}

/** Formats progress as `step 12/40 · validation 61 %`, as far as known. Without validation it shows `success`. */
export function formatProgress({ status }: RunSummary): string {
  const { unit, done, of } = progressOf(status);
  const words = unit === 'step' ? vscode.l10n.t('step {0}/{1}', done, of) : vscode.l10n.t('episode {0}/{1}', done, of);
  const parts = [
    of > 0 ? words : vscode.l10n.t('starting'),
    ...(status.success === null ? [] : [formatSuccess(status.success, status.success_of)]),
  ];
  return parts.join(' · ');
}

const formatSuccess = (share: number, of: RunStatus['success_of']): string =>
  of === 'val' ? vscode.l10n.t('validation {0}', percent(share)) : vscode.l10n.t('success {0}', percent(share));

/**
 * Returns the icon of a standing: a shape and a colour, since colour alone is not accessible. A run that paused itself
 * has the icon of an interrupted one.
 */
function iconOf(phaseOfRun: RunPhase): vscode.ThemeIcon {
  const icons: Record<RunPhase, [string, string]> = {
    running: ['pulse', 'charts.blue'],
    paused: ['debug-pause', 'charts.yellow'],
    finished: ['pass', 'testing.iconPassed'],
    stopped: ['stop-circle', 'descriptionForeground'],
    failed: ['error', 'testing.iconFailed'],
    interrupted: ['warning', 'list.warningForeground'],
  };
  const [icon, colour] = icons[phaseOfRun];
  return new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
}

/** Formats the state, with the phase of an active run, and with the reason if the run paused itself. */
export function formatState(run: RunSummary): string {
  const { state, phase, activity, download } = run.status;
  const because = waitsBecause(run);
  const words: Record<RunPhase, string> = {
    running: download
      ? vscode.l10n.t('downloading the model, {0}', percent(download.bytes / download.total))
      : state === 'running'
        ? [phase, ...(activity === undefined ? [] : [activity])].join(' · ')
        : state,
    paused: because === undefined ? vscode.l10n.t('paused') : vscode.l10n.t('paused: {0}', briefly(because)),
    finished: vscode.l10n.t('finished'),
    stopped: vscode.l10n.t('stopped'),
    failed: vscode.l10n.t('failed'),
    interrupted: vscode.l10n.t('interrupted: the trainer process exited unexpectedly'),
  };
  return words[runPhase(run)];
}

function tooltipOf(run: RunSummary): vscode.MarkdownString {
  const { status } = run;
  const { unit, done, of } = progressOf(status);
  const rows: [string, string | undefined][] = [
    [vscode.l10n.t('State'), formatState(run)],
    [unit === 'step' ? vscode.l10n.t('Step') : vscode.l10n.t('Episode'), `${done} / ${of}`],
    [
      status.success_of === 'val' ? vscode.l10n.t('Validation success') : vscode.l10n.t('Success'),
      status.success === null ? undefined : percent(status.success),
    ],
    [vscode.l10n.t('Return'), status.reward === null ? undefined : short(status.reward)],
    [vscode.l10n.t('Tokens/s'), status.tokens_per_s === null || !run.live ? undefined : short(status.tokens_per_s)],
    [vscode.l10n.t('ETA'), status.eta_s === null || !run.live ? undefined : duration(status.eta_s)],
    [vscode.l10n.t('Configuration'), run.config_name],
    [vscode.l10n.t('Tags'), run.tags?.join(', ')],
    [vscode.l10n.t('Notes'), run.notes],
    [vscode.l10n.t('Started'), new Date(run.created).toLocaleString()],
    [vscode.l10n.t('Folder'), run.id],
  ];
  const text = new vscode.MarkdownString();
  text.appendMarkdown('**').appendText(unlinked(run.name)).appendMarkdown('**\n\n');
  if (run.trouble !== undefined) text.appendText(unlinked(run.trouble)).appendMarkdown('\n\n');
  if (status.error !== undefined) text.appendText(unlinked(status.error)).appendMarkdown('\n\n');
  text.appendMarkdown('| | |\n|---|---|\n');
  for (const [name, value] of rows) {
    if (value !== undefined) text.appendMarkdown(`| ${name} | `).appendText(unlinked(value)).appendMarkdown(' |\n');
  }
  return text;
}
