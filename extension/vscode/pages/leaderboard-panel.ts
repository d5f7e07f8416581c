// Host side of the Leaderboard page: a single panel, restored after a window reload. The page asks for the evaluations,
// which the host reads from the run folders; it needs no process and works in untrusted workspaces.
import * as vscode from 'vscode';
import { jsonOrNothing } from '../../common/json';
import { hasEntry, readRunFile } from '../../node/read-run-file';
import { UserError } from '../../common/user-error';
import {
  leaderboardOpen,
  leaderboardReady,
  leaderboardSave,
  type LeaderboardSnapshot,
} from '../../protocol/leaderboard-page';
import type { PageState } from '../../protocol/page-state';
import { evaluationSchema } from '../../run-data/evaluation-file';
import { leaderboardOf, type EvaluatedRun } from '../../run-data/leaderboard';
import { leaderboardCsv, leaderboardMarkdown } from '../../run-data/leaderboard-texts';
import { runFiles } from '../../run-data/run-file-names';
import { registerActions } from '../command';
import type { Host } from '../host-services';
import { notifyBriefly } from '../notifications';
import type { Run, RunStore } from '../runs/run-store';
import { fillPanel } from './fill-panel';
import { PageMessenger } from './page-column';

const viewType = 'ragen.leaderboard';

export function registerLeaderboard(context: vscode.ExtensionContext, host: Host): void {
  const panel = new LeaderboardPanel(host.store, context.extensionUri);
  const show = (): Promise<void> => Promise.resolve(panel.show());
  context.subscriptions.push(panel, registerActions(host, { 'ragen.openLeaderboard': show }));
}

class LeaderboardPanel implements vscode.WebviewPanelSerializer<PageState>, vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(
    private readonly store: RunStore,
    private readonly extensionUri: vscode.Uri,
  ) {}

  show(): void {
    if (this.panel) return this.panel.reveal();
    this.attach(vscode.window.createWebviewPanel(viewType, title(), vscode.ViewColumn.Active));
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
    this.panel = panel;
    const messenger = new PageMessenger();
    messenger.registerWebviewPanel(panel);
    messenger.onRequest(leaderboardReady, () => this.read());
    messenger.onNotification(
      leaderboardOpen,
      ({ folder }) => void vscode.commands.executeCommand('ragen.openDashboard', folder),
    );
    messenger.onRequest(leaderboardSave, async ({ format }) => save(format, await this.read()));
    panel.onDidDispose(() => (this.panel = undefined));
    fillPanel(panel, this.extensionUri, {
      ...{ title: title(), bundle: 'leaderboard', icon: 'dashboard.svg', folder: 'leaderboard' },
    });
  }

  private async read(): Promise<LeaderboardSnapshot> {
    await this.store.scanned;
    const read = await Promise.all(this.store.runs.map(run => evaluationOf(run)));
    const runs = read.flatMap(({ run }) => (run ? [run] : []));
    return {
      tables: leaderboardOf(runs),
      folders: Object.fromEntries(this.store.runs.map(({ folder, summary }) => [summary.id, folder])),
      notes: read.flatMap(({ note }) => (note === undefined ? [] : [note])),
    };
  }
}

const title = (): string => vscode.l10n.t('Leaderboard');

/** Reads a run's evaluation; both parts are undefined for a run that is no finished evaluation. */
async function evaluationOf({ folder, reader, summary }: Run): Promise<{ run?: EvaluatedRun; note?: string }> {
  const { manifest } = reader;
  if (!manifest || !(await hasEntry(folder, runFiles.evaluation))) return {};
  try {
    const value = jsonOrNothing((await readRunFile(folder, runFiles.evaluation)).toString('utf8'));
    const { data, error } = evaluationSchema.safeParse(value);
    if (data) return { run: { manifest, name: summary.name, evaluation: data } };
    throw new UserError(`${error.issues[0].path.join('.') || runFiles.evaluation}: ${error.issues[0].message}`);
  } catch (error) {
    return { note: vscode.l10n.t('{0} is left out: {1}', summary.name, (error as Error).message) };
  }
}

async function save(format: 'csv' | 'md', { tables }: LeaderboardSnapshot): Promise<boolean> {
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  const file = await vscode.window.showSaveDialog({
    ...(folder && { defaultUri: vscode.Uri.joinPath(folder.uri, `leaderboard.${format}`) }),
    filters: format === 'csv' ? { CSV: ['csv'] } : { Markdown: ['md'] },
  });
  if (!file) return false;
  const text = format === 'csv' ? leaderboardCsv(tables) : leaderboardMarkdown(tables);
  await vscode.workspace.fs.writeFile(file, Buffer.from(text));
  notifyBriefly(vscode.l10n.t('RAGEN: wrote {0}', vscode.workspace.asRelativePath(file)), 5000);
  return true;
}
