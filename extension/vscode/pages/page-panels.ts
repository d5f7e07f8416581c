// Webview panels of one kind, with one panel per run. Panels are restored after a window reload, and communicate by
// typed messages. A hidden page stays in memory, so that a return to its tab is immediate, but receives no messages. When
// it is shown again, it requests a new snapshot.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { Messenger } from 'vscode-messenger';
import type { WebviewIdMessageParticipant } from 'vscode-messenger-common';
import { pageVisibility, type PageState } from '../../protocol/page-state';
import { fillPanel } from './fill-panel';
import type { Run, RunStore } from '../runs/run-store';
import { PageMessenger } from './page-column';

/** An open page, as passed to `PageKind.serve`. */
export interface OpenPage {
  readonly folder: string;
  readonly panel: vscode.WebviewPanel;
  readonly messenger: Messenger;
  readonly page: WebviewIdMessageParticipant;
  /** Returns the run in its current state. Throws if the run's folder is gone. */
  run(): Run;
  /** Reloads the page, which then requests a new snapshot. */
  reload(): void;
}

/** A kind of page, such as the dashboard; each run has at most one page of a kind. */
export interface PageKind {
  viewType: string;
  /** Name of the bundle in `dist/pages`. */
  bundle: string;
  /** Returns the panel's title for a run's name. */
  title(run: string): string;
  /** Tab icon, a file in `media/icons`. */
  icon: string;
  /** Answers the page's messages until the page is closed. */
  serve(page: OpenPage): vscode.Disposable;
}

export class PagePanels implements vscode.WebviewPanelSerializer<PageState>, vscode.Disposable {
  private readonly open = new Map<string, OpenPage>();
  private readonly serializer: vscode.Disposable;

  constructor(
    private readonly kind: PageKind,
    private readonly extensionUri: vscode.Uri,
    private readonly store: RunStore,
  ) {
    this.serializer = vscode.window.registerWebviewPanelSerializer(kind.viewType, this);
  }

  /**
   * Shows a run's page: reveals the open one, or creates one in `column`. A page that opens automatically preserves the
   * focus, so that typing is not interrupted.
   */
  show(run: Run, column: vscode.ViewColumn, preserveFocus = false): void {
    const open = this.open.get(run.folder);
    if (open) return open.panel.reveal(undefined, preserveFocus);
    const { viewType, title } = this.kind;
    const dormant = this.dormantTab(title(run.summary.name));
    const viewColumn = dormant?.group.viewColumn ?? column;
    const place = { viewColumn, preserveFocus };
    const options = { retainContextWhenHidden: true };
    const panel = vscode.window.createWebviewPanel(viewType, title(run.summary.name), place, options);
    if (dormant) void vscode.window.tabGroups.close(dormant, true);
    this.attach(panel, run);
  }

  /**
   * Returns a tab that VS Code restored and that the user has not viewed yet. VS Code creates the panel of such a tab
   * only when the user views the tab, and no API can reveal the tab. `show` therefore replaces the tab by a new panel.
   */
  private dormantTab(label: string): vscode.Tab | undefined {
    const alike = vscode.window.tabGroups.all
      .flatMap(group => group.tabs)
      .filter(
        ({ input, label: other }) =>
          input instanceof vscode.TabInputWebview && input.viewType.endsWith(this.kind.viewType) && other === label,
      );
    const awake = [...this.open.values()].filter(({ panel }) => panel.title === label);
    return alike.length > awake.length ? alike.find(tab => !tab.isActive) : undefined;
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: Partial<PageState> | undefined): Promise<void> {
    const run = typeof state?.folder === 'string' ? await this.store.find(state.folder) : undefined;
    if (run) this.attach(panel, run);
    else panel.dispose(); // the run was deleted; the panel would be empty
  }

  /** Folder of the run whose page has the focus. */
  get focused(): string | undefined {
    return [...this.open.values()].find(({ panel }) => panel.active)?.folder;
  }

  /** Closes a run's page if it is open. */
  close(folder: string): void {
    this.open.get(folder)?.panel.dispose();
  }

  /**
   * Leaves the panels open, because VS Code also calls dispose at a window reload and restores the panels afterwards.
   */
  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel, run: Run): void {
    const { folder } = run;
    const messenger = new PageMessenger();
    const page: OpenPage = {
      folder,
      panel,
      messenger,
      page: messenger.registerWebviewPanel(panel),
      run: () => {
        const now = this.store.get(folder);
        if (!now) throw new Error(`the folder ${folder} of run ${basename(folder)} no longer exists: close this page`);
        return now;
      },
      reload: () => this.fill(panel, run),
    };
    this.open.set(folder, page);
    const service = this.kind.serve(page);
    let visible = panel.visible;
    panel.onDidChangeViewState(() => {
      if (panel.visible === visible) return;
      visible = panel.visible;
      messenger.sendNotification(pageVisibility, page.page, { visible });
    });
    panel.onDidDispose(() => {
      service.dispose();
      if (this.open.get(folder) === page) this.open.delete(folder);
    });
    this.fill(panel, run);
  }

  private fill(panel: vscode.WebviewPanel, { folder, summary }: Run): void {
    const { bundle, icon, title } = this.kind;
    fillPanel(panel, this.extensionUri, { title: title(summary.name), bundle, icon, folder });
  }
}
