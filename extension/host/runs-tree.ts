// The Runs view: every run of the workspace, grouped by where it stands. A group without runs is not shown. Archived runs are left out
// unless asked for, and a filter leaves those that have all its words in name, tags or configuration. The view's badge counts the runs
// at work.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { RunSummary } from '../protocol/pages';
import type { RunStatus } from '../protocol/run-folder';
import { progressOf } from '../protocol/run-progress';
import { plain, unlinked } from './plain-text';
import type { Run, RunStore } from './run-store';
import { briefly, contextOf, duration, isActive, matches, percent, sharedNames, short, standingOf, startWords, waitsBecause, type Standing } from './run-words'; // prettier-ignore

/** `interrupted` runs stand with the failed ones; an archived one stands with the archived ones unless it is at work. */
type Group = Exclude<Standing, 'interrupted'> | 'archived';
const groups: Group[] = ['running', 'paused', 'failed', 'finished', 'stopped', 'archived'];
const groupOf = (run: RunSummary): Group => {
  const standing = standingOf(run);
  if (run.archived && !isActive(run)) return 'archived';
  return standing === 'interrupted' ? 'failed' : standing;
};

/** A node of the tree: a group, the folder of a run, or a folder whose manifest cannot be used (`damaged`). The same object each time, so that the view keeps what is unfolded. */
export interface RunNode {
  group: Group;
  folder?: string;
  damaged?: string;
}

/** Where the workspace remembers that archived runs are shown. */
const archivedKey = 'ragen.runs.archivedShown';

export class RunsTree implements vscode.TreeDataProvider<RunNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscription: vscode.Disposable;
  private filtered = '';
  /** Names of several of the runs that are shown. */
  private shared = new Set<string>();
  /** What the menus were told last. */
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
      const has = (group: Group) => runs.some(run => groupOf(run.summary) === group) || (group === 'failed' && damaged.length > 0); // prettier-ignore
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

  /** Folders of the selected runs, in the order of their selection. */
  get selected(): string[] {
    return this.view.selection.flatMap(({ folder }) => folder ?? []);
  }

  /** What the runs that are shown have in name, tags or configuration; all of them where it is empty. */
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

  /** Shows archived runs or leaves them out; the workspace remembers it. */
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
    // A view without a row shows its welcome, which must not say that there are no runs.
    const hidden = runs.length > 0 && this.store.damaged.length === 0 && this.shown.length === 0;
    this.view.message = !hidden
      ? undefined
      : this.filtered !== ''
        ? vscode.l10n.t('No run has “{0}” in its name, tags or configuration.', this.filtered)
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
  count === 1 ? vscode.l10n.t('1 run at work') : vscode.l10n.t('{0} runs at work', count);

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

/** A folder whose manifest cannot be used, with the reason. */
function damagedItem(folder: string, reason: string): vscode.TreeItem {
  const item = new vscode.TreeItem(plain(basename(folder)), vscode.TreeItemCollapsibleState.None);
  item.id = `damaged:${folder}`;
  item.description = vscode.l10n.t('cannot be read: {0}', plain(briefly(reason)));
  item.iconPath = iconOf('interrupted');
  item.tooltip = new vscode.MarkdownString().appendText(unlinked(reason));
  item.contextValue = 'damaged';
  return item;
}

/** `isShared`: another run that is shown has its name, too. */
function runItem({ folder, summary }: Run, isShared: boolean): vscode.TreeItem {
  const item = new vscode.TreeItem(summary.name, vscode.TreeItemCollapsibleState.None);
  const standing = standingOf(summary);
  item.id = folder;
  // Tags first: in a narrow side bar they are what is left of the line.
  const tags = (summary.tags ?? []).map(tag => `#${tag}`).join(' ');
  const began = isShared ? [startWords(summary.created)] : [];
  const rest = [...(tags === '' ? [] : [tags]), progressWords(summary), ...began].join(' · ');
  const waits = waitsBecause(summary) !== undefined;
  const { trouble } = summary;
  const unread = trouble === undefined ? undefined : vscode.l10n.t('cannot be read: {0}', plain(briefly(trouble)));
  item.description = unread ?? (waits ? `${plain(stateWord(summary))} · ${rest}` : rest);
  item.iconPath = iconOf(waits || unread !== undefined ? 'interrupted' : standing);
  item.tooltip = tooltipOf(summary);
  item.contextValue = contextOf(summary);
  item.accessibilityInformation = { label: `${summary.name}, ${stateWord(summary)}, ${rest}` };
  item.command = {
    command: 'ragen.openDashboard',
    title: vscode.l10n.t('Open Dashboard'),
    arguments: [{ group: groupOf(summary), folder }],
  };
  return item;
}

/** `step 12/40 · validation 61 %`, as far as it is known; of a run that does not validate, or has not yet, `success`. */
export function progressWords({ status }: RunSummary): string {
  const { unit, done, of } = progressOf(status);
  const words = unit === 'step' ? vscode.l10n.t('step {0}/{1}', done, of) : vscode.l10n.t('episode {0}/{1}', done, of);
  const parts = [
    of > 0 ? words : vscode.l10n.t('starting'),
    ...(status.success === null ? [] : [successWords(status.success, status.success_of)]),
  ];
  return parts.join(' · ');
}

const successWords = (share: number, of: RunStatus['success_of']): string =>
  of === 'val' ? vscode.l10n.t('validation {0}', percent(share)) : vscode.l10n.t('success {0}', percent(share));

/**
 * The icon of a standing (a run that paused itself has that of an interrupted one): a shape and a colour, since colour alone tells nothing
 * to some eyes.
 */
function iconOf(standing: Standing): vscode.ThemeIcon {
  const icons: Record<Standing, [string, string]> = {
    running: ['pulse', 'charts.blue'],
    paused: ['debug-pause', 'charts.yellow'],
    finished: ['pass', 'testing.iconPassed'],
    stopped: ['stop-circle', 'descriptionForeground'],
    failed: ['error', 'testing.iconFailed'],
    interrupted: ['warning', 'list.warningForeground'],
  };
  const [icon, colour] = icons[standing];
  return new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
}

/** The state in a word, with the phase while the run is at work, and with the reason of one that paused itself. */
export function stateWord(run: RunSummary): string {
  const { state, phase, activity, download } = run.status;
  const because = waitsBecause(run);
  const words: Record<Standing, string> = {
    running: download
      ? vscode.l10n.t('fetching the model, {0}', percent(download.bytes / download.total))
      : state === 'running'
        ? [phase, ...(activity === undefined ? [] : [activity])].join(' · ')
        : state,
    paused: because === undefined ? vscode.l10n.t('paused') : vscode.l10n.t('paused: {0}', briefly(because)),
    finished: vscode.l10n.t('finished'),
    stopped: vscode.l10n.t('stopped'),
    failed: vscode.l10n.t('failed'),
    interrupted: vscode.l10n.t('interrupted: its trainer ended without a word'),
  };
  return words[standingOf(run)];
}

function tooltipOf(run: RunSummary): vscode.MarkdownString {
  const { status } = run;
  const { unit, done, of } = progressOf(status);
  const rows: [string, string | undefined][] = [
    [vscode.l10n.t('State'), stateWord(run)],
    [unit === 'step' ? vscode.l10n.t('Step') : vscode.l10n.t('Episode'), `${done} / ${of}`],
    [
      status.success_of === 'val' ? vscode.l10n.t('Validation success') : vscode.l10n.t('Success'),
      status.success === null ? undefined : percent(status.success),
    ],
    [vscode.l10n.t('Return'), status.reward === null ? undefined : short(status.reward)],
    [vscode.l10n.t('Tokens/s'), status.tokens_per_s === null || !run.live ? undefined : short(status.tokens_per_s)],
    [vscode.l10n.t('Time left'), status.eta_s === null || !run.live ? undefined : duration(status.eta_s)],
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
