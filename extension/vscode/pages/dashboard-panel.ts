// Host side of the dashboard: first sends a snapshot without metrics, then the columns of the visible charts. As the
// run folder grows, the host sends each new line once. Columns of long runs are first sent as overviews. If the lines
// of a long run must be parsed, the newest lines are sent first.
import { join } from 'node:path';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import * as vscode from 'vscode';
import { hasRunFile } from '../../node/read-run-file';
import {
  dashboardColumns,
  dashboardCommand,
  dashboardEpisode,
  dashboardExport,
  dashboardLines,
  dashboardPicked,
  dashboardRead,
  dashboardReady,
  dashboardScores,
  dashboardView,
  type ColumnPart,
  type DashboardCommandName,
  type DashboardSnapshot,
} from '../../protocol/dashboard-page';
import { noneRedundant, redundantColumns } from '../../run-data/redundant-columns';
import { runFiles } from '../../run-data/run-file-names';
import { pickEpisodes } from '../../run-data/picked-episodes';
import { isUnended } from '../../run-data/run-progress';
import { readEnding } from '../run-files/ending-reader';
import { runMeanings } from '../run-files/run-meanings';
import { ColumnOverviews } from '../run-files/metrics/column-overviews';
import { configuredEpisodes } from '../../run-data/configured-episodes';
import { MetricColumns } from '../run-files/metrics/metric-columns';
import type { ColumnTable } from '../run-files/metrics/column-table';
import { csvOf } from '../run-files/metrics/metrics-csv';
import type { OpenPage, PageKind } from './page-panels';
import type { RunStore } from '../runs/run-store';
import { saveExport } from './save-export';
import { EpisodeIndexReader } from '../run-files/episodes/episode-index-reader';
import { ScoreStrips } from '../run-files/episodes/score-strips';
import { ThreadScanner } from '../run-files/episodes/thread-scanner';

/** Actions of the dashboard's buttons, implemented by the commands. */
export interface DashboardActions extends Record<DashboardCommandName, (folder: string) => void> {
  /** Opens an episode of a run on its Episodes page. */
  episode(folder: string, id: string): void;
}

/** Storage that outlives the pages of a workspace. */
export interface DashboardStorage {
  /**
   * Folder for metric columns that the editor computes if the trainer wrote no columns; null if the workspace has no
   * storage.
   */
  columns: string | null;
  /** Folder for indexes of episodes that the editor computes if the trainer wrote none; null without storage. */
  episodes: string | null;
  memory: vscode.Memento;
}

/** Key of the view settings in the workspace state. */
const viewKey = 'ragen.dashboard.view';

/** Key in the workspace state. Its value names the columns that the most recently opened page requested first. */
const requestedKey = 'ragen.dashboard.asked';

/** Maximum number of overviews that are computed in advance, while the page is loading. */
const mostAhead = 64;

/** Number of rows above which a column is first sent as an overview. */
const longRun = 20_000;

/** Maximum number of new lines per message. If more lines are new, the page must request the data again. */
const mostLines = 2000;

/**
 * Epoch of the temporary snapshot that contains only the newest lines. The page shows this snapshot while the older
 * lines are read.
 */
const readingEpoch = -1;

export function dashboardKind(
  store: RunStore,
  extensionPath: string,
  actions: DashboardActions,
  storage: DashboardStorage,
): PageKind {
  return {
    viewType: 'ragen.dashboard',
    bundle: 'dashboard',
    title: run => vscode.l10n.t('{0} · Dashboard', run),
    icon: 'dashboard.svg',
    serve: page => serveDashboard(page, store, extensionPath, actions, storage),
  };
}

/** The columns that a page requested for its first charts. */
interface RequestedColumns {
  keys: string[];
  smoothing: number;
}

/** Number of rows and events that were sent to the page, and their epochs. */
interface Sent {
  epoch: number;
  rows: number;
  events: number;
  eventsEpoch: number;
  summary: string;
  /** Whether the run had ended. */
  ended: boolean;
}

function serveDashboard(
  page: OpenPage,
  store: RunStore,
  extensionPath: string,
  actions: DashboardActions,
  storage: DashboardStorage,
): vscode.Disposable {
  const { messenger, panel, folder } = page;
  let columns: MetricColumns | undefined; // set while the page is visible
  let overviews: ColumnOverviews | undefined;
  let requested: RequestedColumns = { keys: [], smoothing: 0 };
  let newest: ColumnTable | undefined; // set while the older lines are read
  let scores: ScoreStrips | undefined;
  let index: EpisodeIndexReader | undefined; // set when the page has asked for the picked episodes
  const scanner = new ThreadScanner(join(extensionPath, 'dist', 'episode-worker.cjs'));
  let sent: Sent | undefined; // undefined until the page has sent `ready`
  let sending: Promise<void> | undefined;
  let again = false;

  messenger.onRequest(dashboardReady, async (): Promise<DashboardSnapshot> => {
    const source = wake();
    if (!newest && (await source.isLong())) readAll(source, (newest = await source.newest()));
    const table = newest ?? (await source.update());
    const epoch = newest ? readingEpoch : source.epoch;
    const { events, epoch: eventsEpoch } = await page.run().reader.events();
    const run = page.run().summary;
    const manifest = page.run().reader.manifest;
    const ended = !isUnended(run.status.state);
    sent = { epoch, rows: table.rows, events: events.length, eventsEpoch, summary: JSON.stringify(run), ended };
    return {
      run,
      epoch,
      steps: stepRuns(table.column('step')),
      keys: table.keys,
      read: newest ? 0 : 1,
      events: [...events],
      meanings: await runMeanings(extensionPath, folder, run.trainer?.name),
      view: storage.memory.get(viewKey),
      episodes: configuredEpisodes({ ...manifest?.config }),
      scored: hasRunFile(folder, runFiles.scores),
      redundant: newest ? noneRedundant : redundantColumns(table.keys.map(key => [key, table.slices(key)])),
      ending: newest ? null : await readEnding(page.run().reader, table),
    };
  });

  messenger.onRequest(dashboardColumns, async ({ epoch, keys, overview, smoothing }) => {
    const table = tableOf(epoch);
    if (!table) return { epoch: columns?.epoch ?? 0, rows: 0, columns: {} };
    if (overview) requested = { keys: [...new Set([...requested.keys, ...keys])], smoothing };
    const { rows } = table;
    const parts: Record<string, ColumnPart> = {};
    for (const key of keys) {
      if (overview && rows > longRun) parts[key] = overviewsOf(table, smoothing).part(key);
      else parts[key] = { kind: 'whole', values: table.column(key).slice(0, rows) };
      if (rows > longRun) await yieldToEventLoop();
    }
    return { epoch, rows, columns: parts };
  });

  messenger.onRequest(dashboardScores, ({ from, to, columns }) =>
    (scores ??= new ScoreStrips(folder)).strips(from, to, columns),
  );
  messenger.onRequest(dashboardPicked, async () => {
    index ??= new EpisodeIndexReader(folder, storage.episodes, scanner);
    await index.update();
    return pickEpisodes(index.table);
  });
  messenger.onNotification(dashboardEpisode, ({ id }) => actions.episode(folder, id));
  messenger.onRequest(dashboardExport, async request => {
    const bytes = request.kind === 'picture' ? request.bytes : await csvOf(tableOf(sent?.epoch ?? 0), request);
    return saveExport(folder, request, bytes);
  });
  messenger.onNotification(dashboardView, ({ view }) => void storage.memory.update(viewKey, view));
  messenger.onNotification(dashboardCommand, ({ command }) => actions[command]?.(folder));

  function tableOf(epoch: number): ColumnTable | undefined {
    if (epoch === readingEpoch) return newest;
    return columns?.epoch === epoch ? columns.rows : undefined;
  }

  function overviewsOf(table: ColumnTable, smoothing: number): ColumnOverviews {
    if (overviews?.table !== table || overviews.smoothing !== smoothing)
      overviews = new ColumnOverviews(table, smoothing);
    return overviews;
  }

  function wake(): MetricColumns {
    if (!columns) {
      columns = new MetricColumns(folder, storage.columns);
      // An error is ignored here, because the page's own request will fail with the same error and report it.
      readAhead(columns, storage.memory.get<RequestedColumns>(requestedKey)).catch(() => undefined);
    }
    return columns;
  }

  /**
   * Reads the data on disk while the page loads, and computes the overviews of the columns that the previously opened
   * page requested first.
   */
  async function readAhead(source: MetricColumns, last: RequestedColumns | undefined): Promise<void> {
    if (await source.isLong()) return;
    const table = await source.update();
    if (!last || table.rows <= longRun) return;
    const known = new Set(table.keys);
    for (const key of last.keys.filter(key => known.has(key))) {
      if (columns?.rows !== table) return;
      overviewsOf(table, last.smoothing).part(key);
      await yieldToEventLoop();
    }
  }

  /** Reads all lines while the page shows the newest lines, and sends the progress to the page. */
  function readAll(source: MetricColumns, part: ColumnTable): void {
    let reported = 0;
    const report = (read: number) => {
      if (read < 1 && read - reported < 0.05) return;
      reported = read;
      if (panel.visible) messenger.sendNotification(dashboardRead, page.page, { read });
    };
    const done = () => {
      if (newest === part) newest = undefined;
      report(1);
    };
    source.update(report).then(done, done);
  }

  /**
   * Sends new data to the page. If an earlier call is still sending, the new call sends nothing and waits for the
   * earlier call, which checks for new data once more before it ends.
   */
  async function send(): Promise<void> {
    again = true;
    sending ??= (async () => {
      while (again) {
        again = false;
        await sendOnce();
      }
    })().finally(() => (sending = undefined));
    await sending;
  }

  async function sendOnce(): Promise<void> {
    if (!sent || !panel.visible || !columns || newest) return;
    const run = store.get(folder);
    if (!run) return;
    const table = await columns.update();
    const { events, epoch: eventsEpoch } = await run.reader.events();
    if (!sent || !columns) return;
    const { rows } = table;
    const ended = !isUnended(run.summary.status.state);
    const isStale = columns.epoch !== sent.epoch || eventsEpoch !== sent.eventsEpoch || rows - sent.rows > mostLines;
    if (isStale || (ended && !sent.ended)) {
      // A resume truncated the files, more than `mostLines` lines are new, or the run has ended and its summary is new:
      // the page requests a new snapshot.
      sent = undefined;
      return void messenger.sendNotification(dashboardRead, page.page, { read: 1 });
    }
    const summary = JSON.stringify(run.summary);
    if (rows === sent.rows && events.length === sent.events && summary === sent.summary) return;
    const lines = [...table.lineRange(sent.rows, rows)];
    const fresh = events.slice(sent.events);
    sent = { ...sent, rows, events: events.length, summary, ended };
    messenger.sendNotification(dashboardLines, page.page, { run: run.summary, lines, events: fresh });
  }

  /** Stores which columns this page requested first. `readAhead` reads these columns when the page is opened again. */
  function remember(): void {
    const before = storage.memory.get<RequestedColumns>(requestedKey);
    const keys = [...new Set([...requested.keys, ...(before?.keys ?? [])])].slice(0, mostAhead);
    if (requested.keys.length > 0) void storage.memory.update(requestedKey, { ...requested, keys });
    requested = { keys: [], smoothing: 0 };
  }

  if (panel.visible) wake();
  return vscode.Disposable.from(
    new vscode.Disposable(remember),
    store.onDidTouch(touched => touched === folder && void send()),
    store.onDidChange(() => void send()),
    panel.onDidChangeViewState(() => {
      if (panel.visible) return void wake();
      remember();
      sent = columns = overviews = newest = scores = index = undefined; // the data of a hidden page is released
    }),
    new vscode.Disposable(() => scanner.end()),
  );
}

/** Groups steps into ranges of consecutive steps. */
function stepRuns(steps: Float64Array): [first: number, count: number][] {
  const runs: [number, number][] = [];
  let last: [number, number] | undefined;
  for (const step of steps) {
    if (last && step === last[0] + last[1]) last[1]++;
    else runs.push((last = [step, 1]));
  }
  return runs;
}
