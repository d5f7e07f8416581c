// The Runs view: all runs of the workspace, grouped by phase; empty groups are hidden. Archived runs are hidden by
// default. If a filter is set, a run is shown only if all words of the filter occur in its name, tags, configuration or
// id. The badge counts the active runs.
import * as vscode from 'vscode';
import { isActive, matches, sharedNames } from '../run-format';
import type { RunStore, Run } from '../run-store';
import { damagedItem, groupItem, groupOf, groups, runItem, type Group } from './run-items';

/** A tree node: a group, a run folder, or a folder with an unusable manifest (`damaged`). */
export interface RunNode {
  group: Group;
  folder?: string;
  damaged?: string;
}

/** Key under which the workspace state stores whether archived runs are shown. */
const archivedKey = 'ragen.runs.archivedShown';

export class RunsTree implements vscode.TreeDataProvider<RunNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscription: vscode.Disposable;
  private filtered = '';
  /** Names that several visible runs share. */
  private shared = new Set<string>();
  /** The last value set for each context key; menus depend on these keys. */
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
      ? runItem(run, this.shared.has(run.summary.name), id => this.nameOf(id))
      : groupItem(node.group, this.getChildren({ group: node.group }).length);
  }

  /** Folders of the selected runs, in selection order. */
  get selected(): string[] {
    return this.view.selection.flatMap(({ folder }) => folder ?? []);
  }

  /** Words that must occur in the name, tags, configuration or id of a visible run; if empty, all runs are visible. */
  get filter(): string {
    return this.filtered;
  }
  set filter(text: string) {
    this.filtered = text.trim();
    this.refresh();
  }

  get archivedShown(): boolean {
    return this.memory.get(archivedKey, false);
  }

  /** Shows or hides archived runs. The choice is stored in the workspace state. */
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

  private nameOf(id: string): string | undefined {
    return this.store.runs.find(({ summary }) => summary.id === id)?.summary.name;
  }

  private refresh(): void {
    const { runs } = this.store;
    this.shared = sharedNames(this.shown.map(({ summary }) => summary));
    const active = runs.filter(run => isActive(run.summary)).length;
    this.view.badge = active === 0 ? undefined : { value: active, tooltip: activeRuns(active) };
    this.view.description = this.filtered;
    // Without a message, an empty view would show the welcome text, which says that the workspace has no runs.
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

const activeRuns = (count: number): string =>
  count === 1 ? vscode.l10n.t('1 active run') : vscode.l10n.t('{0} active runs', count);
