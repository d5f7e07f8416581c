// Host side of the Log page: sends the newest part of the run's log, and new entries while the page is visible. A run
// that returned to a checkpoint has cut its log; the page is then reloaded.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { logCommand, logFiles, logGrown, logReady, type LogCommand } from '../../protocol/log-page';
import { notifyBriefly } from '../notifications';
import { RunLog } from '../run-files/run-log';
import type { RunStore } from '../runs/run-store';
import type { OpenPage, PageKind } from './page-panels';

/** Milliseconds between two checks for new lines. */
const lookMs = 1000;

export function logKind(store: RunStore): PageKind {
  return {
    viewType: 'ragen.log',
    bundle: 'log',
    title: run => vscode.l10n.t('{0} · Log', run),
    icon: 'log.svg',
    serve: page => serveLog(page, store),
  };
}

function serveLog(page: OpenPage, store: RunStore): vscode.Disposable {
  const { messenger, panel, folder } = page;
  let log = new RunLog(folder);
  let shown: string | undefined; // the run's status that the page has; undefined until the page has sent `ready`

  // Reads run one after another, because concurrent reads would send an entry twice.
  let last: Promise<unknown> = Promise.resolve();
  const inOrder = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
  messenger.onRequest(logReady, () =>
    inOrder(async () => {
      log = new RunLog(folder);
      const { entries } = await log.read();
      const run = page.run().summary;
      shown = JSON.stringify(run);
      return { run, entries, cut: log.cut };
    }),
  );
  messenger.onNotification(logCommand, command => void perform(command, folder));

  const send = async (): Promise<void> => {
    if (shown === undefined || !panel.visible || !store.get(folder)) return;
    const { entries, restarted } = await log.read();
    if (restarted) {
      shown = undefined;
      return page.reload();
    }
    const run = page.run().summary;
    const now = JSON.stringify(run);
    if (entries.length === 0 && now === shown) return;
    shown = now;
    messenger.sendNotification(logGrown, page.page, { run, entries });
  };
  const queue = () => void inOrder(send).catch(() => undefined); // the next look tries again
  const timer = setInterval(() => panel.visible && store.get(folder)?.summary.live && queue(), lookMs);
  return vscode.Disposable.from(
    store.onDidChange(queue),
    panel.onDidChangeViewState(() => {
      if (!panel.visible) shown = undefined;
    }),
    { dispose: () => clearInterval(timer) },
  );
}

async function perform(request: LogCommand, folder: string): Promise<void> {
  const run = (command: string, ...rest: unknown[]) => vscode.commands.executeCommand(command, ...rest);
  switch (request.command) {
    case 'dashboard':
      return void (await run('ragen.openDashboard', folder));
    case 'episodes':
      return void (await run('ragen.openEpisodes', folder));
    case 'file':
      if (logFiles.includes(request.name)) await run('vscode.open', vscode.Uri.file(join(folder, request.name)));
      return;
    case 'copy':
      await vscode.env.clipboard.writeText(request.text);
      notifyBriefly(vscode.l10n.t('Copied the line'), 4000);
  }
}
