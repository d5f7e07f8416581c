// Host side of the Timeline page: sends the seconds per lane of each step, and the spans of the step that the page
// shows. While the run trains and the page is visible, the host checks every second for new steps and for new data of
// the step in progress.
import { basename, join } from 'node:path';
import * as vscode from 'vscode';
import { keptSteps, readStepTimeline } from '../../node/read-timeline';
import {
  timelineCommand,
  timelineExport,
  timelineGrown,
  timelineReady,
  timelineStepAt,
  type TimelineCommand,
  type TimelineFacts,
} from '../../protocol/timeline-page';
import { traceText } from '../../run-data/chrome-trace';
import { runFiles } from '../../run-data/run-file-names';
import { stepSummarySchema, type StepTimeline } from '../../run-data/timeline';
import { notifyBriefly } from '../notifications';
import { JsonLines } from '../../node/json-lines';
import { stampOf } from '../run-files/small-file';
import type { RunStore } from '../runs/run-store';
import type { OpenPage, PageKind } from './page-panels';

/** Milliseconds between two checks for new data. */
const lookMs = 1000;

export function timelineKind(store: RunStore): PageKind {
  return {
    viewType: 'ragen.timeline',
    bundle: 'timeline',
    title: run => vscode.l10n.t('{0} · Timeline', run),
    icon: 'timeline.svg',
    serve: page => serveTimeline(page, store),
  };
}

function serveTimeline(page: OpenPage, store: RunStore): vscode.Disposable {
  const { messenger, panel, folder } = page;
  const newLines = () => new JsonLines(join(folder, runFiles.timelineSteps), stepSummarySchema, folder);
  let lines = newLines();
  let shown: string | undefined; // facts that the page has; undefined until the page has sent `ready`

  const facts = async (): Promise<TimelineFacts> => ({
    run: page.run().summary,
    kept: await keptSteps(folder),
    current: await stampOf(join(folder, runFiles.timelineCurrent)),
  });
  messenger.onRequest(timelineReady, async () => {
    lines = newLines();
    const { lines: steps } = await lines.read();
    const now = await facts();
    shown = JSON.stringify(now);
    return { ...now, steps };
  });
  messenger.onRequest(timelineStepAt, ({ step }) => readStepTimeline(folder, step));
  messenger.onRequest(timelineExport, ({ from, to }) => saveTrace(folder, page.run().summary.name, from, to));
  messenger.onNotification(timelineCommand, command => void perform(command, folder));

  const send = async () => {
    if (shown === undefined || !panel.visible || !store.get(folder)) return;
    const { lines: steps, restarted } = await lines.read();
    if (restarted) {
      shown = undefined;
      return page.reload(); // a resume removed steps
    }
    const now = await facts();
    if (steps.length === 0 && JSON.stringify(now) === shown) return;
    shown = JSON.stringify(now);
    messenger.sendNotification(timelineGrown, page.page, { ...now, steps });
  };
  // Updates run one after another, because concurrent updates would send a step twice.
  let sending: Promise<void> = Promise.resolve();
  const queue = () => void (sending = sending.then(send).catch(() => undefined)); // the next look tries again
  const timer = setInterval(() => panel.visible && store.get(folder)?.summary.live && queue(), lookMs);
  return vscode.Disposable.from(
    store.onDidChange(queue),
    panel.onDidChangeViewState(() => {
      if (!panel.visible) shown = undefined;
    }),
    { dispose: () => clearInterval(timer) },
  );
}

/**
 * Exports the steps `from` to `to` as a Chrome trace to a file that the user chooses. Steps whose spans are no longer
 * stored are left out. Returns false if the user cancels.
 */
async function saveTrace(folder: string, run: string, from: number, to: number): Promise<boolean> {
  const steps: StepTimeline[] = [];
  for (const step of await keptSteps(folder)) {
    const timeline = step >= from && step <= to ? await readStepTimeline(folder, step) : null;
    if (timeline) steps.push(timeline);
  }
  if (steps.length === 0)
    throw new Error(
      `the timeline of run ${basename(folder)} has no single calls of steps ${from} to ${to}: choose steps that the Timeline page can open`,
    );
  const workspace = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(folder))?.uri ?? vscode.Uri.file(folder);
  const file = await vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.joinPath(workspace, `${basename(folder)} steps ${from}-${to}.trace.json`),
    filters: { [vscode.l10n.t('Chrome trace')]: ['json'] },
  });
  if (!file) return false;
  await vscode.workspace.fs.writeFile(file, Buffer.from([...traceText(run, steps)].join('')));
  notifyBriefly(vscode.l10n.t('RAGEN: wrote {0}', basename(file.fsPath)), 5000);
  return true;
}

async function perform(request: TimelineCommand, folder: string): Promise<void> {
  const run = (command: string, ...rest: unknown[]) => vscode.commands.executeCommand(command, ...rest);
  switch (request.command) {
    case 'dashboard':
      return void (await run('ragen.openDashboard', folder));
    case 'episodes':
      return void (await run('ragen.openEpisodes', folder));
    case 'episode': {
      const [, mode, step] = /^(train|val)-(\d+)-/.exec(request.id) ?? [];
      if (mode !== undefined) await run('ragen.openTrace', { folder, step: Number(step), mode, id: request.id });
    }
  }
}
