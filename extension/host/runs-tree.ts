// The Runs view: every run of the workspace, grouped by where it stands. A group without runs is not shown.
import * as vscode from 'vscode';
import type { RunSummary } from '../protocol/pages';
import type { Run, RunStore } from './run-store';
import { duration, percent, short, standingOf, type Standing } from './run-words';

/** `interrupted` runs stand with the failed ones. */
type Group = Exclude<Standing, 'interrupted'>;
const groups: Group[] = ['running', 'paused', 'failed', 'finished', 'stopped'];
const groupOf = (run: RunSummary): Group => {
  const standing = standingOf(run);
  return standing === 'interrupted' ? 'failed' : standing;
};

/** A node of the tree: a group, or the folder of a run. The same object each time, so that the view keeps what is unfolded. */
export interface RunNode {
  group: Group;
  folder?: string;
}

export class RunsTree implements vscode.TreeDataProvider<RunNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscription: vscode.Disposable;
  readonly onDidChangeTreeData = this.changed.event;
  readonly view: vscode.TreeView<RunNode>;

  constructor(private readonly store: RunStore) {
    this.view = vscode.window.createTreeView('ragen.runs', { treeDataProvider: this, showCollapseAll: false });
    this.subscription = store.onDidChange(() => this.changed.fire());
  }

  getChildren(node?: RunNode): RunNode[] {
    const { runs } = this.store;
    if (!node)
      return groups.filter(group => runs.some(run => groupOf(run.summary) === group)).map(group => ({ group }));
    return runs.filter(run => groupOf(run.summary) === node.group).map(({ folder }) => ({ group: node.group, folder }));
  }

  getParent(node: RunNode): RunNode | undefined {
    return node.folder === undefined ? undefined : { group: node.group };
  }

  getTreeItem(node: RunNode): vscode.TreeItem {
    const run = node.folder === undefined ? undefined : this.store.get(node.folder);
    return run ? runItem(run) : groupItem(node.group, this.getChildren({ group: node.group }).length);
  }

  /** Folder of the selected run. */
  get selected(): string | undefined {
    return this.view.selection[0]?.folder;
  }

  dispose(): void {
    this.subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }
}

function groupItem(group: Group, count: number): vscode.TreeItem {
  const labels: Record<Group, string> = {
    running: vscode.l10n.t('Running'),
    paused: vscode.l10n.t('Paused'),
    failed: vscode.l10n.t('Failed or interrupted'),
    finished: vscode.l10n.t('Finished'),
    stopped: vscode.l10n.t('Stopped'),
  };
  const item = new vscode.TreeItem(labels[group], vscode.TreeItemCollapsibleState.Expanded);
  item.id = `group:${group}`;
  item.description = String(count);
  item.contextValue = 'group';
  return item;
}

function runItem({ folder, summary }: Run): vscode.TreeItem {
  const item = new vscode.TreeItem(summary.name, vscode.TreeItemCollapsibleState.None);
  const standing = standingOf(summary);
  item.id = folder;
  item.description = progressOf(summary);
  item.iconPath = iconOf(standing);
  item.tooltip = tooltipOf(summary);
  item.contextValue = contextOf(standing);
  item.accessibilityInformation = { label: `${summary.name}, ${stateWord(summary)}, ${item.description}` };
  item.command = {
    command: 'ragen.openDashboard',
    title: vscode.l10n.t('Open Dashboard'),
    arguments: [{ group: groupOf(summary), folder }],
  };
  return item;
}

/** What the menus of package.json ask for. */
function contextOf(standing: Standing): string {
  if (standing === 'running' || standing === 'paused') return `run.${standing}`;
  return standing === 'finished' ? 'run.finished' : 'run.ended';
}

/** `step 12/40 · success 61 %`, as far as it is known. */
function progressOf({ status }: RunSummary): string {
  const parts = [
    status.total_steps > 0 ? vscode.l10n.t('step {0}/{1}', status.step, status.total_steps) : vscode.l10n.t('starting'),
    ...(status.success === null ? [] : [vscode.l10n.t('success {0}', percent(status.success))]),
  ];
  return parts.join(' · ');
}

/** The icon of a standing: a shape and a colour, since colour alone tells nothing to some eyes. */
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

/** The state in a word, with the phase while the run is at work. */
export function stateWord(run: RunSummary): string {
  const { state, phase, download } = run.status;
  const words: Record<Standing, string> = {
    running: download
      ? vscode.l10n.t('fetching the model, {0}', percent(download.bytes / download.total))
      : state === 'running'
        ? phase
        : state,
    paused: vscode.l10n.t('paused'),
    finished: vscode.l10n.t('finished'),
    stopped: vscode.l10n.t('stopped'),
    failed: vscode.l10n.t('failed'),
    interrupted: vscode.l10n.t('interrupted: its trainer ended without a word'),
  };
  return words[standingOf(run)];
}

function tooltipOf(run: RunSummary): vscode.MarkdownString {
  const { status } = run;
  const rows: [string, string | undefined][] = [
    [vscode.l10n.t('State'), stateWord(run)],
    [vscode.l10n.t('Step'), `${status.step} / ${status.total_steps}`],
    [vscode.l10n.t('Success'), status.success === null ? undefined : percent(status.success)],
    [vscode.l10n.t('Return'), status.reward === null ? undefined : short(status.reward)],
    [vscode.l10n.t('Tokens/s'), status.tokens_per_s === null || !run.live ? undefined : short(status.tokens_per_s)],
    [vscode.l10n.t('Time left'), status.eta_s === null || !run.live ? undefined : duration(status.eta_s)],
    [vscode.l10n.t('Configuration'), run.config_name],
    [vscode.l10n.t('Started'), new Date(run.created).toLocaleString()],
    [vscode.l10n.t('Folder'), run.id],
  ];
  const text = new vscode.MarkdownString();
  text.appendMarkdown('**').appendText(run.name).appendMarkdown('**\n\n');
  if (status.error !== undefined) text.appendText(status.error).appendMarkdown('\n\n');
  text.appendMarkdown('| | |\n|---|---|\n');
  for (const [name, value] of rows) {
    if (value !== undefined) text.appendMarkdown(`| ${name} | `).appendText(value).appendMarkdown(' |\n');
  }
  return text;
}
