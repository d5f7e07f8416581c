// Webview panels of one kind, one for each run: opened, brought back after a reload of the window, and served by typed messages.
// A hidden page is dropped by the editor and asks anew with `ready` when it is shown again, so nothing is sent to hidden ones.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { Messenger } from 'vscode-messenger';
import type { WebviewIdMessageParticipant } from 'vscode-messenger-common';
import type { PageState } from '../protocol/pages';
import { fillPanel } from './fill-panel';
import type { Run, RunStore } from './run-store';

/** An open page, as its server sees it. */
export interface OpenPage {
  readonly folder: string;
  readonly panel: vscode.WebviewPanel;
  readonly messenger: Messenger;
  readonly page: WebviewIdMessageParticipant;
  /** The run as it now stands. Throws where its folder has gone. */
  run(): Run;
  /** Starts the page anew, which then asks for a fresh snapshot. */
  reload(): void;
}

/** What tells one kind of page from another. */
export interface PageKind {
  viewType: string;
  /** Name of the bundle in `dist/pages`. */
  bundle: string;
  /** The panel's title for a run's name. */
  title(run: string): string;
  /** Icon in the tab, a file in `media/icons`. */
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
   * Shows a run's page: the one that is open, else a new one in `column`. One that opens by itself leaves the focus where it is, so
   * that whoever types goes on.
   */
  show(run: Run, column: vscode.ViewColumn, preserveFocus = false): void {
    const open = this.open.get(run.folder);
    if (open) return open.panel.reveal(undefined, preserveFocus);
    const { viewType, title } = this.kind;
    const dormant = this.dormantTab(title(run.summary.name));
    const viewColumn = dormant?.group.viewColumn ?? column;
    const panel = vscode.window.createWebviewPanel(viewType, title(run.summary.name), {
      viewColumn,
      preserveFocus,
    });
    if (dormant) void vscode.window.tabGroups.close(dormant, true);
    this.attach(panel, run);
  }

  /**
   * A tab that came back with the window but was not looked at since: the editor makes its panel only then, and no call reveals
   * it, so the page that is shown takes its place.
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
    else panel.dispose(); // the run was deleted meanwhile: an empty panel would say nothing
  }

  /** Folder of the run whose page has the focus. */
  get focused(): string | undefined {
    return [...this.open.values()].find(({ panel }) => panel.active)?.folder;
  }

  /** Closes a run's page, where it is open. */
  close(folder: string): void {
    this.open.get(folder)?.panel.dispose();
  }

  /** Leaves the panels themselves alone: this runs at a reload too, after which the editor brings them back. */
  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel, run: Run): void {
    const { folder } = run;
    const messenger = new Messenger();
    const page: OpenPage = {
      folder,
      panel,
      messenger,
      page: messenger.registerWebviewPanel(panel),
      run: () => {
        const now = this.store.get(folder);
        if (!now) throw new Error(`run ${basename(folder)}: its folder ${folder} is gone: close this page`);
        return now;
      },
      reload: () => this.fill(panel, run),
    };
    this.open.set(folder, page);
    const service = this.kind.serve(page);
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
