// The dashboard's side in the host: answers `ready` with all numbers, then sends each new line once, as the run folder grows.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { parseMetricMeanings } from '../protocol/metric-meanings';
import { dashboardCommand, dashboardLines, dashboardReady, type DashboardSnapshot } from '../protocol/pages';
import type { MetricsLine } from '../protocol/run-folder';
import type { OpenPage, PageKind } from './page-panels';
import type { RunNumbers } from './run-reader';
import type { RunStore } from './run-store';

/** What a dashboard's buttons do; the commands own it. */
export type DashboardActions = Record<'pause' | 'resume' | 'stop' | 'episodes' | 'log', (folder: string) => void>;

export function dashboardKind(store: RunStore, extensionPath: string, actions: DashboardActions): PageKind {
  return {
    viewType: 'ragen.dashboard',
    bundle: 'dashboard',
    title: run => vscode.l10n.t('{0} · Dashboard', run),
    icon: 'dashboard.svg',
    serve: page => serveDashboard(page, store, extensionPath, actions),
  };
}

/** How far the page has the run's numbers. */
interface Sent {
  epoch: number;
  metrics: number;
  events: number;
  summary: string;
}

function serveDashboard(
  page: OpenPage,
  store: RunStore,
  extensionPath: string,
  actions: DashboardActions,
): vscode.Disposable {
  let sent: Sent | undefined; // undefined until the page has asked
  const { messenger, panel } = page;

  messenger.onRequest(dashboardReady, async () => {
    const numbers = await page.run().reader.numbers();
    const run = page.run().summary;
    const meanings = parseMetricMeanings(await readFile(join(extensionPath, 'docs', 'METRICS.md'), 'utf8'));
    sent = { ...extentOf(numbers), summary: JSON.stringify(run) };
    return { run, ...columnsOf(numbers.metrics), events: [...numbers.events], meanings };
  });
  messenger.onNotification(dashboardCommand, ({ command }) => actions[command]?.(page.folder));

  const send = async () => {
    if (!sent || !panel.visible) return;
    const run = store.get(page.folder);
    if (!run) return;
    const numbers = await run.reader.numbers();
    if (!sent) return;
    if (numbers.epoch !== sent.epoch) {
      sent = undefined;
      return page.reload(); // a resume cut the files back: the page draws anew
    }
    const [lines, events] = [numbers.metrics.slice(sent.metrics), numbers.events.slice(sent.events)];
    const summary = JSON.stringify(run.summary);
    if (lines.length === 0 && events.length === 0 && summary === sent.summary) return;
    sent = { ...extentOf(numbers), summary };
    messenger.sendNotification(dashboardLines, page.page, { run: run.summary, lines, events });
  };
  return vscode.Disposable.from(
    store.onDidTouch(folder => folder === page.folder && void send()),
    store.onDidChange(() => void send()),
    panel.onDidChangeViewState(() => {
      if (!panel.visible) sent = undefined;
    }),
  );
}

const extentOf = ({ epoch, metrics, events }: Readonly<RunNumbers>) => ({
  epoch,
  metrics: metrics.length,
  events: events.length,
});

/** Lines as columns: one Float64Array for each numeric key, NaN where a line lacks it. */
export function columnsOf(lines: MetricsLine[]): Pick<DashboardSnapshot, 'steps' | 'series'> {
  const series: Record<string, Float64Array> = {};
  lines.forEach((line, row) => {
    for (const [key, value] of Object.entries(line)) {
      if (key === 'step' || typeof value !== 'number') continue;
      (series[key] ??= new Float64Array(lines.length).fill(NaN))[row] = value;
    }
  });
  return { steps: lines.map(line => line.step), series };
}
