// Host side of the run table: a single panel, restored after a window reload. Sends the summaries of all runs, and the
// values of the columns that the page requests. While the page is visible, the host notifies it of changed runs at most
// once per second. Saved views are stored in the workspace state.
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import pMap from 'p-map';
import * as vscode from 'vscode';
import {
  runTableAction,
  runTableCells,
  runTableChanged,
  runTableColour,
  runTableDeleteView,
  runTableExport,
  runTableNotes,
  runTableReady,
  runTableSaveView,
  runTableTags,
  runTableWriteNotes,
  type RunTableAction,
  type RunTableView,
} from '../../protocol/run-table-page';
import type { PageState, RunSummary } from '../../protocol/page-state';
import { parseMetricMeanings } from '../../run-data/metric-meanings';
import { UserError } from '../../common/user-error';
import { confirmAction, notifyBriefly } from '../notifications';
import { showInputBox } from '../questions';
import { changeLabels, readNotes, writeNotes } from '../run-files/run-labels';
import { RunFigures } from '../run-files/metrics/run-figures';
import type { Run, RunStore } from '../runs/run-store';
import { fillPanel } from './fill-panel';
import { configKeysOf, runCells } from './run-table-cells';
import { PageMessenger } from './page-column';

const viewType = 'ragen.runTable';
const viewsKey = 'ragen.runTable.views';
const updateMs = 1000;
/** Number of runs whose metrics are read at the same time. */
const concurrency = 8;

export class RunTablePanel implements vscode.WebviewPanelSerializer<PageState>, vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);
  private readonly figures: RunFigures;

  constructor(
    private readonly store: RunStore,
    private readonly extensionUri: vscode.Uri,
    private readonly memory: vscode.Memento,
    /** Folder for metric columns of runs whose trainer wrote none; null if the workspace has no storage. */
    columns: string | null,
  ) {
    this.figures = RunFigures.of(columns);
  }

  /** Shows the table, or reveals it. */
  show(): void {
    if (this.panel) return this.panel.reveal();
    this.attach(vscode.window.createWebviewPanel(viewType, vscode.l10n.t('Run Table'), vscode.ViewColumn.Active));
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel): Promise<void> {
    this.attach(panel);
    return Promise.resolve();
  }

  /** Leaves the panel open, because VS Code also calls dispose at a window reload and restores the panel afterwards. */
  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel): void {
    const { store, memory } = this;
    const messenger = new PageMessenger();
    const page = messenger.registerWebviewPanel(panel);
    /** Summaries that the page has, as JSON by folder; undefined until the page has sent `ready`. */
    let sent: Map<string, string> | undefined;
    const touched = new Set<string>();
    let pending: NodeJS.Timeout | undefined;

    messenger.onRequest(runTableReady, async () => {
      await store.scanned;
      const { runs } = store;
      sent = new Map(runs.map(({ folder, summary }) => [folder, JSON.stringify(summary)]));
      const meanings = await readFile(join(this.extensionUri.fsPath, 'docs', 'METRICS.md'), 'utf8');
      return {
        runs: runs.map(({ summary }) => summary),
        ...configKeysOf(runs.flatMap(({ reader }) => reader.manifest ?? [])),
        meanings: parseMetricMeanings(meanings),
        views: this.views,
      };
    });
    messenger.onRequest(runTableCells, async ({ folders, columns }) => {
      const metricKeys = new Set<string>();
      const cells = await pMap(
        folders.flatMap(folder => store.get(folder) ?? []),
        async run => {
          const { keys, ...found } = await runCells(this.figures, run, columns);
          for (const key of keys) metricKeys.add(key);
          return found;
        },
        { concurrency },
      );
      const answered = new Set(cells.map(({ folder }) => folder));
      const missing = folders
        .filter(folder => !answered.has(folder))
        .map(folder => ({ folder, values: columns.map(() => null) }));
      return { cells: [...cells, ...missing], metricKeys: [...metricKeys] };
    });
    messenger.onRequest(runTableTags, async ({ folder, tags }) => {
      await changeLabels(this.run(folder).folder, () => ({ tags }));
      await store.find(folder);
      return null;
    });
    messenger.onRequest(runTableColour, async ({ folder, colour }) => {
      await changeLabels(this.run(folder).folder, () => ({ colour: colour ?? undefined }));
      await store.find(folder);
      return null;
    });
    messenger.onRequest(runTableNotes, ({ folder }) => readNotes(this.run(folder).folder));
    messenger.onRequest(runTableWriteNotes, async ({ folder, before, text }) => {
      await writeNotes(this.run(folder).folder, before, text);
      await store.find(folder);
      return null;
    });
    messenger.onNotification(
      runTableAction,
      ({ action, folders }) =>
        void perform(
          action,
          folders.flatMap(folder => store.get(folder) ?? []),
        ),
    );
    messenger.onRequest(runTableSaveView, async ({ layout, name }) => {
      const chosen = name ?? (await this.askForName());
      if (chosen === undefined) return null;
      const others = this.views.filter(view => view.name !== chosen);
      await memory.update(viewsKey, [...others, { ...layout, name: chosen }]);
      return { views: this.views, name: chosen };
    });
    messenger.onRequest(runTableDeleteView, async ({ name }) => {
      await memory.update(
        viewsKey,
        this.views.filter(view => view.name !== name),
      );
      return this.views;
    });
    messenger.onRequest(runTableExport, ({ text }) => saveTable(text));

    const send = () => {
      pending = undefined;
      if (!sent || !panel.visible) return;
      const { runs } = store;
      const now = new Map(runs.map(({ folder, summary }) => [folder, JSON.stringify(summary)]));
      const changed: RunSummary[] = runs
        .filter(({ folder }) => touched.has(folder) || sent?.get(folder) !== now.get(folder))
        .map(({ summary }) => summary);
      const gone = [...sent.keys()].filter(folder => !now.has(folder));
      for (const folder of gone) this.figures.forget(folder);
      sent = now;
      touched.clear();
      if (changed.length + gone.length > 0) messenger.sendNotification(runTableChanged, page, { runs: changed, gone });
    };
    const queue = () => (pending ??= setTimeout(send, updateMs));
    // Every poll touches every run. Touches of ended runs are ignored, because a change of such a run also fires
    // onDidChange.
    const listening = vscode.Disposable.from(
      store.onDidChange(queue),
      store.onDidTouch(folder => {
        if (!store.get(folder)?.summary.live) return;
        touched.add(folder);
        queue();
      }),
    );
    this.panel = panel;
    panel.onDidDispose(() => {
      clearTimeout(pending);
      listening.dispose();
      if (this.panel === panel) this.panel = undefined;
    });
    fillPanel(panel, this.extensionUri, {
      title: vscode.l10n.t('Run Table'),
      bundle: 'run-table',
      icon: 'run-table.svg',
      folder: '',
    });
  }

  /** Returns a run. Throws a UserError if its folder is gone. */
  private run(folder: string): Run {
    const run = this.store.get(folder);
    if (run) return run;
    throw new UserError(vscode.l10n.t('Run {0} no longer exists: reload the table.', basename(folder)));
  }

  private get views(): RunTableView[] {
    return this.memory.get<RunTableView[]>(viewsKey, []);
  }

  private async askForName(): Promise<string | undefined> {
    const name = await showInputBox({
      title: vscode.l10n.t('Save View'),
      prompt: vscode.l10n.t('Name of the view. A view with the same name is replaced.'),
      validateInput: text => (text.trim() === '' ? vscode.l10n.t('Write a name.') : undefined),
    });
    return name?.trim();
  }
}

/** Executes the command of an action. Stopping or archiving several runs needs a confirmation. */
async function perform(action: RunTableAction, runs: readonly Run[]): Promise<void> {
  if (runs.length === 0) return;
  const folders = runs.map(({ folder }) => folder);
  const commands: Record<RunTableAction, string> = {
    dashboard: 'ragen.openDashboard',
    compare: 'ragen.compareRuns',
    stop: 'ragen.stop',
    archive: 'ragen.archiveRuns',
    unarchive: 'ragen.unarchiveRuns',
    delete: 'ragen.deleteRuns',
    export: 'ragen.exportRun',
    search: 'ragen.searchEpisodes',
  };
  const names = runs.map(({ summary }) => summary.name);
  const detail = [
    ...names.slice(0, 10),
    ...(names.length > 10 ? [vscode.l10n.t('and {0} more', names.length - 10)] : []),
  ];
  const question =
    action === 'stop'
      ? { text: vscode.l10n.t('Stop {0} runs?', runs.length), choice: vscode.l10n.t('Stop') }
      : action === 'archive'
        ? { text: vscode.l10n.t('Archive {0} runs?', runs.length), choice: vscode.l10n.t('Archive') }
        : undefined;
  if (question && (await confirmAction(question.text, detail.join('\n'), question.choice)) !== question.choice) return;
  await vscode.commands.executeCommand(commands[action], folders[0], folders);
}

/** Writes CSV to a file that the user chooses. Returns false if the user cancels. */
async function saveTable(text: string): Promise<boolean> {
  const [workspace] = vscode.workspace.workspaceFolders ?? [];
  const file = await vscode.window.showSaveDialog({
    ...(workspace && { defaultUri: vscode.Uri.joinPath(workspace.uri, 'runs.csv') }),
    filters: { CSV: ['csv'] },
  });
  if (!file) return false;
  await vscode.workspace.fs.writeFile(file, Buffer.from(text));
  notifyBriefly(vscode.l10n.t('RAGEN: wrote {0}', basename(file.fsPath)), 5000);
  return true;
}
