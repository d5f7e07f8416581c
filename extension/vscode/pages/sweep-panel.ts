// Host side of the Sweep page: one panel per sweep, restored after a window reload. The host checks the sweep's file and
// its process once per second, notifies a visible page of changes, and reports the end of the sweep if the page is not in
// front.
import { readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as vscode from 'vscode';
import { isRunnerAlive } from '../../node/sweep-runner';
import type { PageState } from '../../protocol/page-state';
import { sweepChanged, sweepControl, sweepOpen, sweepReady } from '../../protocol/sweep-page';
import { parseMetricMeanings } from '../../run-data/metric-meanings';
import { runsFolder } from '../../run-data/run-file-names';
import { isSweepId, sweepFiles, sweepFileSchema, sweepsFolder, type SweepFile } from '../../run-data/sweep-file';
import { UserError } from '../../common/user-error';
import { notifyInformation } from '../notifications';
import { RunFigures } from '../run-files/metrics/run-figures';
import { SmallFile, stampOf } from '../run-files/small-file';
import type { Run, RunStore } from '../runs/run-store';
import { sweepSnapshot } from '../sweeps/sweep-snapshot';
import { fillPanel } from './fill-panel';
import { PageMessenger } from './page-column';

const viewType = 'ragen.sweep';
const updateMs = 1000;

/** Actions of the page's links and buttons. */
export interface SweepActions {
  dashboard(folder: string): void;
  compare(folders: string[]): void;
  /** Continues a sweep of a workspace folder. */
  resume(workspace: string, sweep: SweepFile): Promise<void>;
}

export class SweepPanels implements vscode.WebviewPanelSerializer<PageState>, vscode.Disposable {
  private readonly open = new Map<string, vscode.WebviewPanel>();
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(
    private readonly store: RunStore,
    private readonly extensionUri: vscode.Uri,
    /** Folder for metric columns of runs whose trainer wrote none; null if the workspace has no storage. */
    private readonly columns: string | null,
    private readonly actions: SweepActions,
  ) {}

  /** Shows the sweep `id` of a workspace folder, or reveals its page. The sweep may not have been planned yet. */
  show(workspace: string, id: string): void {
    const folder = join(workspace, sweepsFolder, id);
    const open = this.open.get(folder);
    if (open) return open.reveal();
    this.attach(vscode.window.createWebviewPanel(viewType, titleOf(folder), vscode.ViewColumn.Active), folder);
  }

  /** Whether the page of a sweep is open, visible or not. */
  isOpen(workspace: string, id: string): boolean {
    return this.open.has(join(workspace, sweepsFolder, id));
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: Partial<PageState> | undefined): Promise<void> {
    const folder = typeof state?.folder === 'string' ? state.folder : '';
    const roots = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => join(uri.fsPath, sweepsFolder));
    if (roots.includes(dirname(folder)) && isSweepId(basename(folder))) this.attach(panel, folder);
    else panel.dispose();
    return Promise.resolve();
  }

  /** Leaves the panels open, because VS Code also calls dispose at a window reload and restores the panels afterwards. */
  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel, folder: string): void {
    this.open.set(folder, panel);
    const workspace = join(folder, '..', '..', '..');
    const file = new SmallFile(folder, sweepFiles.index, sweepFileSchema);
    const figures = RunFigures.of(this.columns);
    const messenger = new PageMessenger();
    const page = messenger.registerWebviewPanel(panel);
    const runOf = (id: string) => this.store.get(join(workspace, runsFolder, id));
    const planned = async (): Promise<SweepFile> => {
      const content = await file.read();
      if (content) return content;
      throw new UserError(
        file.problem ?? vscode.l10n.t('The sweep has not been planned yet: wait, or see its terminal.'),
      );
    };
    messenger.onRequest(sweepReady, async ({ metric }) => {
      const content = await file.read();
      if (!content && file.problem !== undefined) throw new UserError(file.problem);
      if (!content) return null;
      await this.store.scanned;
      const meanings = await readFile(join(this.extensionUri.fsPath, 'docs', 'METRICS.md'), 'utf8');
      return { ...(await sweepSnapshot(content, runOf, figures, metric)), meanings: parseMetricMeanings(meanings) };
    });
    messenger.onRequest(sweepControl, async ({ action }) => {
      const content = await planned();
      if (action === 'stop') await writeFile(join(folder, sweepFiles.stop), '');
      else await this.actions.resume(workspace, content);
      return null;
    });
    messenger.onNotification(sweepOpen, async target => {
      if (typeof target === 'object') return this.actions.dashboard(target.dashboard);
      const content = await planned();
      if (target === 'file') return void vscode.window.showTextDocument(vscode.Uri.file(content.file));
      this.actions.compare(content.members.flatMap(({ run }) => (run === null ? [] : (runOf(run)?.folder ?? []))));
    });
    let isChanged = false;
    let wasRunning = false;
    let stamp = '';
    const look = async (): Promise<void> => {
      const content = await file.read();
      const isRunning = isRunnerAlive(content?.runner ?? null);
      const isInFront = panel.active && vscode.window.state.focused;
      if (content && wasRunning && !isRunning && !isInFront) void this.reportEnd(panel, content, runOf);
      wasRunning = isRunning;
      const now = `${await stampOf(join(folder, sweepFiles.index))} ${isRunning}`;
      if (!panel.visible || (now === stamp && !isChanged)) return;
      stamp = now;
      isChanged = false;
      messenger.sendNotification(sweepChanged, page, null);
    };
    const timer = setInterval(() => void look(), updateMs);
    const changed = (): void => void (isChanged = true);
    // Every poll touches every run. Touches of ended runs are ignored, because a change of such a run also fires
    // onDidChange.
    const listening = vscode.Disposable.from(
      this.store.onDidChange(changed),
      this.store.onDidTouch(run => this.store.get(run)?.summary.live && changed()),
    );
    panel.onDidDispose(() => {
      clearInterval(timer);
      listening.dispose();
      if (this.open.get(folder) === panel) this.open.delete(folder);
    });
    fillPanel(panel, this.extensionUri, { title: titleOf(folder), bundle: 'sweep', icon: 'dashboard.svg', folder });
  }

  /** Notifies the user that no process runs the sweep any more. */
  private async reportEnd(
    panel: vscode.WebviewPanel,
    { id, members }: SweepFile,
    runOf: (id: string) => Run | undefined,
  ): Promise<void> {
    const finished = members.filter(
      ({ run }) => run !== null && runOf(run)?.summary.status.state === 'finished',
    ).length;
    const show = vscode.l10n.t('Show');
    const text = vscode.l10n.t('Sweep {0} has ended: {1} of {2} runs finished.', id, finished, members.length);
    if ((await notifyInformation(text, show)) === show) panel.reveal();
  }
}

const titleOf = (folder: string): string => vscode.l10n.t('{0} · Sweep', basename(folder));
