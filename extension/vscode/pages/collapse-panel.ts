// Host side of the Collapse page: answers `ready` with the run's metrics, sends new lines as the run folder grows, and
// reads matrices, gradients and groups of one step on request.
import * as vscode from 'vscode';
import {
  collapseCommand,
  collapseFamilyAt,
  collapseKeys,
  collapseLines,
  collapseReady,
  gradientsAt,
  groupsAt,
  type CollapseCommand,
} from '../../protocol/collapse-page';
import type { MetricNumbers } from '../../run-data/metric-segments';
import type { RunEvent } from '../../run-data/run-events';
import { MetricColumns } from '../run-files/metrics/metric-columns';
import type { ColumnTable } from '../run-files/metrics/column-table';
import { notifyBriefly } from '../notifications';
import type { OpenPage, PageKind } from './page-panels';
import { promptGroups } from '../run-files/episodes/prompt-groups';
import { RunDiagnostics } from '../run-files/run-diagnostics';
import { derivedMetrics, metricsGuide, runMeanings } from '../run-files/run-meanings';
import type { Run, RunStore } from '../runs/run-store';

export function collapseKind(store: RunStore, extensionUri: vscode.Uri): PageKind {
  return {
    viewType: 'ragen.collapse',
    bundle: 'collapse',
    title: run => vscode.l10n.t('{0} · Collapse', run),
    icon: 'collapse.svg',
    serve: page => serveCollapse(page, store, extensionUri),
  };
}

/** What was sent to the page: the number of metrics lines, the number of events, and all other data as text. */
interface Sent {
  epochs: string;
  rows: number;
  events: number;
  rest: string;
}

function serveCollapse(page: OpenPage, store: RunStore, extensionUri: vscode.Uri): vscode.Disposable {
  const { messenger, panel, folder } = page;
  let columns = new MetricColumns(folder, null);
  let diagnostics = new RunDiagnostics(folder);
  let sent: Sent | undefined; // undefined until the page has sent `ready`

  /** Reads the data that every update checks: metrics, events, and the list of files. */
  const read = async (run: Run) => {
    const table = await columns.update();
    const { epoch, events } = await run.reader.events();
    const diagnosed = await diagnostics.steps();
    const checkpoints = (await run.reader.checkpoints()).map(name => Number(name.slice('step-'.length))).reverse();
    const scoredBy = run.summary.trainer ? ((await derivedMetrics(folder)).model ?? null) : null;
    const found = { diagnosed, checkpoints, scoredBy };
    const now = {
      epochs: `${columns.epoch} ${epoch}`,
      rows: table.rows,
      events: events.length,
      rest: JSON.stringify([run.summary, found]),
    };
    return { table, events, found, now };
  };
  messenger.onRequest(collapseReady, async () => {
    const run = page.run();
    const { table, events, found, now } = await read(run);
    const settings = await diagnostics.settings();
    sent = now;
    return {
      run: run.summary,
      steps: Array.from(table.column('step')),
      series: Object.fromEntries(drawnKeys(table).map(key => [key, table.column(key).slice()])),
      events: events.slice(0, now.events).filter(isRead),
      meanings: await runMeanings(extensionUri.fsPath, folder, run.summary.trainer?.name),
      settings,
      ...found,
    };
  });
  messenger.onRequest(collapseFamilyAt, ({ step, family }) => diagnostics.family(step, family));
  messenger.onRequest(gradientsAt, ({ step }) => diagnostics.gradients(step));
  messenger.onRequest(groupsAt, async ({ step }) => {
    const rows = await page.run().reader.episodeRows({ step, mode: 'train' });
    return promptGroups(rows, rows.length > 0 ? [] : await diagnostics.groupRows(step));
  });
  messenger.onNotification(collapseCommand, command => void perform(command, folder, extensionUri));

  const send = async () => {
    const run = store.get(folder);
    if (!sent || !panel.visible || !run) return;
    const { table, events, found, now } = await read(run);
    if (!sent) return;
    if (now.epochs !== sent.epochs) {
      sent = undefined;
      [columns, diagnostics] = [new MetricColumns(folder, null), new RunDiagnostics(folder)];
      return page.reload(); // a resume truncated the files: reload the page
    }
    if (now.rows === sent.rows && now.events === sent.events && now.rest === sent.rest) return;
    const lines = [...table.lineRange(sent.rows, now.rows)].map(drawnOf);
    const fresh = events.slice(sent.events, now.events).filter(isRead);
    sent = now;
    messenger.sendNotification(collapseLines, page.page, { run: run.summary, lines, events: fresh, ...found });
  };
  // Updates run one after another, because concurrent updates would send a line twice.
  let sending = Promise.resolve();
  const queue = () => void (sending = sending.then(send, send));
  return vscode.Disposable.from(
    store.onDidTouch(touched => touched === folder && queue()),
    store.onDidChange(queue),
    panel.onDidChangeViewState(() => {
      if (!panel.visible) sent = undefined;
    }),
  );
}

async function perform(request: CollapseCommand, folder: string, extensionUri: vscode.Uri): Promise<void> {
  const run = (command: string, ...rest: unknown[]) => vscode.commands.executeCommand(command, ...rest);
  switch (request.command) {
    case 'dashboard':
      return void (await run('ragen.openDashboard', folder));
    case 'episodes':
      return void (await run('ragen.openEpisodes', folder));
    case 'diagnose':
      return void (await run('ragen.diagnoseRun', folder));
    case 'episode':
      return void (await run('ragen.openTrace', { folder, step: request.step, mode: 'train', id: request.id }));
    case 'explain': {
      const guide = vscode.Uri.joinPath(extensionUri, ...metricsGuide).with({ fragment: request.anchor });
      return void (await run('markdown.showPreviewToSide', guide));
    }
    case 'copy':
      await vscode.env.clipboard.writeText(request.text);
      notifyBriefly(vscode.l10n.t('Copied {0}', request.text), 4000);
  }
}

const drawnKeys = ({ keys }: ColumnTable): string[] => keys.filter(key => collapseKeys.test(key));

/** Returns a metrics line with only the keys that the page uses. */
function drawnOf(line: MetricNumbers): MetricNumbers {
  const drawn = Object.entries(line).filter(([key]) => key === 'step' || collapseKeys.test(key));
  return Object.fromEntries(drawn) as MetricNumbers;
}

/** Whether the page uses an event. */
const isRead = ({ kind }: RunEvent): boolean => ['alarm', 'early_stop', 'setting'].includes(kind);
