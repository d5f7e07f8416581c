// Host side of the page that compares runs: one panel per set of runs. After a window reload, a panel is restored with
// the runs of its set that still exist. While a page is visible, the host notifies it of new data at most once per
// second; the page then requests the data.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { compareColour, compareColumns, compareGrew, compareOpen, compareReady } from '../../protocol/compare-page';
import { parseMetricMeanings } from '../../run-data/metric-meanings';
import type { PageState } from '../../protocol/page-state';
import type { Manifest } from '../../run-data/run-manifest';
import { comparedMarks } from '../../run-data/event-marks';
import { valueAt } from '../../run-data/changeable-settings';
import { groupRuns } from '../../run-data/compared-runs';
import { ownChartsOf } from '../../run-data/charts/own-charts';
import { fillPanel } from './fill-panel';
import { changeLabels } from '../run-files/run-labels';
import { MetricColumns } from '../run-files/metrics/metric-columns';
import type { Run, RunStore } from '../runs/run-store';
import { PageMessenger } from './page-column';

const viewType = 'ragen.compare';
const updateMs = 1000;
/**
 * Separates the run folders in the text `PageState.folder`. A newline is used, because paths do not contain newlines.
 */
const between = '\n';

/** Actions of the page's links. */
export interface CompareActions {
  dashboard(folder: string): void;
  difference(folders: [string, string]): void;
}

export class ComparePanels implements vscode.WebviewPanelSerializer<PageState>, vscode.Disposable {
  private readonly open = new Map<string, vscode.WebviewPanel>();
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(
    private readonly store: RunStore,
    private readonly extensionUri: vscode.Uri,
    /**
     * Folder for metric columns that the editor computes if the trainer wrote no columns; null if the workspace has no
     * storage.
     */
    private readonly columns: string | null,
    private readonly actions: CompareActions,
  ) {}

  /** Shows a comparison of runs, or reveals the existing panel with the same runs. */
  show(runs: readonly Run[]): void {
    const folders = [...new Set(runs.map(({ folder }) => folder))].sort();
    const open = this.open.get(folders.join(between));
    if (open) return open.reveal();
    const title = vscode.l10n.t('{0} Runs · Comparison', folders.length);
    this.attach(vscode.window.createWebviewPanel(viewType, title, vscode.ViewColumn.Active), folders);
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: Partial<PageState> | undefined): Promise<void> {
    const folders = typeof state?.folder === 'string' ? state.folder.split(between) : [];
    const found = (await Promise.all(folders.map(folder => this.store.find(folder)))).filter(run => run !== undefined);
    if (found.length > 0) this.attach(panel, folders);
    else panel.dispose(); // all runs were deleted
  }

  /**
   * Leaves the panels open, because VS Code also calls dispose at a window reload and restores the panels afterwards.
   */
  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel, folders: string[]): void {
    const key = folders.join(between);
    const messenger = new PageMessenger();
    const page = messenger.registerWebviewPanel(panel);
    const readers = new Map(folders.map(folder => [folder, new MetricColumns(folder, this.columns)]));
    let shown: Run[] = [];
    let pending: NodeJS.Timeout | undefined;
    messenger.onRequest(compareReady, async () => {
      shown = this.present(folders);
      const seen = await Promise.all(
        shown.map(async ({ folder, reader, summary }) => {
          const known = { manifest: reader.manifest as Manifest, name: summary.name };
          try {
            const { keys } = await readers.get(folder)!.update();
            return { ...known, keys, events: (await reader.events()).events, run: summary };
          } catch (error) {
            // A run that cannot be read is sent as a row with the reason.
            const problem = (error as Error).message;
            const name = `${summary.name} (${problem})`;
            return { ...known, name, keys: [], events: [], run: { ...summary, name, problem } };
          }
        }),
      );
      const meanings = await readFile(join(this.extensionUri.fsPath, 'docs', 'METRICS.md'), 'utf8');
      return {
        ...groupRuns(seen),
        runs: seen.map(({ run, manifest, keys, events }) => ({
          run,
          seed: String(valueAt(manifest.config, 'seed.train') ?? ''),
          keys,
          marks: comparedMarks(events),
        })),
        meanings: parseMetricMeanings(meanings),
        own: ownChartsOf(seen),
      };
    });
    messenger.onRequest(compareColumns, ({ keys }) =>
      shown.map(({ folder }) => {
        const table = readers.get(folder)!.rows;
        const known = new Set(table.keys);
        const columns = keys.filter(name => known.has(name)).map(name => [name, table.column(name).slice()]);
        return {
          steps: table.column('step').slice(),
          columns: Object.fromEntries(columns) as Record<string, Float64Array>,
        };
      }),
    );
    messenger.onRequest(compareColour, async ({ folders: wanted, colour }) => {
      for (const folder of wanted.filter(each => readers.has(each))) {
        await changeLabels(folder, () => ({ colour: colour ?? undefined }));
        await this.store.find(folder);
      }
      return null;
    });
    messenger.onNotification(compareOpen, request =>
      'dashboard' in request ? this.actions.dashboard(request.dashboard) : this.actions.difference(request.difference),
    );
    const grew = (folder?: string) => {
      if (!panel.visible || pending || (folder !== undefined && !readers.has(folder))) return;
      pending = setTimeout(() => {
        pending = undefined;
        if (panel.visible) messenger.sendNotification(compareGrew, page, null);
      }, updateMs);
    };
    // Every poll fires a touch event. Touch events of runs that are not live are ignored, because a change of such a
    // run also fires onDidChange.
    const listening = this.store.onDidTouch(folder => this.store.get(folder)?.summary.live && grew(folder));
    const listChanged = this.store.onDidChange(() => grew());
    this.open.set(key, panel);
    panel.onDidDispose(() => {
      clearTimeout(pending);
      listening.dispose();
      listChanged.dispose();
      if (this.open.get(key) === panel) this.open.delete(key);
    });
    fillPanel(panel, this.extensionUri, { title: panel.title, bundle: 'compare', icon: 'dashboard.svg', folder: key });
  }

  /** Returns the runs of a set that still exist, oldest first. */
  private present(folders: readonly string[]): Run[] {
    const runs = folders.map(folder => this.store.get(folder)).filter(run => run?.reader.manifest !== undefined);
    return (runs as Run[]).sort((a, b) => (a.summary.created < b.summary.created ? -1 : 1));
  }
}
