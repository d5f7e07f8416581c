// Host side of the Query page: one panel per workspace folder, restored after a window reload. A query is executed by
// `ragen query` in a process of its own, which ends if the user cancels or closes the page. SQL is passed as one argument,
// never through a shell.
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { csvText } from '../../common/csv';
import type { PageState } from '../../protocol/page-state';
import { queryCancel, queryReady, queryRun, querySave, type QueryAnswer } from '../../protocol/query-page';
import type { QueryResult } from '../../protocol/query-result';
import { UserError } from '../../common/user-error';
import { messageOf, registerActions } from '../command';
import type { Host } from '../host-services';
import { notifyBriefly } from '../notifications';
import { askCli } from '../processes/cli-command';
import { fillPanel } from './fill-panel';
import { PageMessenger } from './page-column';

const viewType = 'ragen.query';
/** Most rows that the page receives. */
const mostRows = 10_000;
/** Longest SQL in characters; an argument of a process is limited to 32,767 characters on Windows. */
const longestSql = 20_000;

export function registerQuery(context: vscode.ExtensionContext, host: Host): void {
  const panels = new QueryPanels(host, context.extensionUri);
  const show = async (): Promise<void> => {
    const folders = vscode.workspace.workspaceFolders ?? [];
    if (folders.length === 0)
      throw new UserError(
        vscode.l10n.t('No workspace folder is open, so there are no runs to query: open a folder first.'),
      );
    const folder = folders.length === 1 ? folders[0] : await vscode.window.showWorkspaceFolderPick();
    if (folder) panels.show(folder.uri.fsPath);
  };
  context.subscriptions.push(panels, registerActions(host, { 'ragen.queryRuns': show }));
}

class QueryPanels implements vscode.WebviewPanelSerializer<Partial<PageState>>, vscode.Disposable {
  private readonly open = new Map<string, vscode.WebviewPanel>();
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(
    private readonly host: Host,
    private readonly extensionUri: vscode.Uri,
  ) {}

  show(folder: string): void {
    const open = this.open.get(folder);
    if (open) return open.reveal();
    this.attach(vscode.window.createWebviewPanel(viewType, titleOf(folder), vscode.ViewColumn.Active), folder);
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: Partial<PageState> | undefined): Promise<void> {
    const folder = state?.folder;
    const isOpen = vscode.workspace.workspaceFolders?.some(({ uri }) => uri.fsPath === folder);
    if (folder !== undefined && isOpen && existsSync(folder)) this.attach(panel, folder);
    else panel.dispose();
    return Promise.resolve();
  }

  /** Leaves the panels open, because VS Code also calls dispose at a window reload and restores the panels afterwards. */
  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel, folder: string): void {
    this.open.set(folder, panel);
    const messenger = new PageMessenger();
    messenger.registerWebviewPanel(panel);
    let running: AbortController | undefined;
    messenger.onRequest(queryReady, () => ({ folder: basename(folder), rows: mostRows }));
    messenger.onRequest(queryRun, ({ sql }) => {
      running?.abort();
      running = new AbortController();
      return this.answer(folder, sql, running.signal);
    });
    messenger.onNotification(queryCancel, () => running?.abort());
    messenger.onRequest(querySave, result => saveCsv(folder, result));
    panel.onDidDispose(() => {
      running?.abort();
      if (this.open.get(folder) === panel) this.open.delete(folder);
    });
    fillPanel(panel, this.extensionUri, { title: titleOf(folder), bundle: 'query', icon: 'dashboard.svg', folder });
  }

  private async answer(folder: string, sql: string, stopped: AbortSignal): Promise<QueryAnswer> {
    if (sql.length > longestSql)
      return {
        error: vscode.l10n.t('The SQL has {0} characters: shorten it to at most {1}.', sql.length, longestSql),
      };
    try {
      const { node, cli } = await this.host.cliFor(folder);
      // The blank keeps SQL that begins with a comment (--) from being taken as an option.
      const args = ['query', ` ${sql}`, '--rows', String(mostRows)];
      const document = await askCli(node, cli, args, folder, vscode.l10n.t('the query'), stopped);
      return isResult(document)
        ? { result: document }
        : { error: vscode.l10n.t('The query returned no result: reinstall the extension.') };
    } catch (error) {
      return stopped.aborted ? { cancelled: true } : { error: messageOf(error) };
    }
  }
}

const isResult = (document: object): document is QueryResult =>
  'columns' in document && 'rows' in document && Array.isArray(document.rows);

const titleOf = (folder: string): string => vscode.l10n.t('{0} · Query', basename(folder));

async function saveCsv(folder: string, { columns, rows }: Pick<QueryResult, 'columns' | 'rows'>): Promise<boolean> {
  const file = await vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.joinPath(vscode.Uri.file(folder), 'query.csv'),
    filters: { CSV: ['csv'] },
  });
  if (!file) return false;
  const heads = columns.map(({ name }) => name);
  await vscode.workspace.fs.writeFile(file, Buffer.from(csvText(heads, rows)));
  notifyBriefly(vscode.l10n.t('RAGEN: wrote {0}', basename(file.fsPath)), 5000);
  return true;
}
