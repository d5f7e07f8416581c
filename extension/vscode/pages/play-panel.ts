// Play panels, one per environment. Each panel has a play session in a separate process. The process ends when the
// panel is closed. A panel restored after a window reload starts a new episode.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { PlayReply } from '../../protocol/environment-tools';
import type { PageState } from '../../protocol/page-state';
import { playCommand, playDo, playReady, playStale } from '../../protocol/play-page';
import { PlayProcess } from '../processes/environment-cli';
import type { CliInvocation } from '../processes/cli-command';
import { fillPanel } from './fill-panel';
import { PageMessenger } from './page-column';

const viewType = 'ragen.play';

/** Dependencies of the panels. */
export interface PlayServices {
  /** Returns the CLI for a workspace folder, and the Node.js that executes it. */
  cliFor(cwd: string): Promise<CliInvocation>;
  /** Checks the environment of a file. */
  check(file: vscode.Uri): void;
}

/** An environment to play: its built-in name or its file, and the workspace folder in which it runs. */
export interface Played {
  environment: string;
  cwd: string;
}

export class PlayPanels implements vscode.WebviewPanelSerializer<Partial<PageState>>, vscode.Disposable {
  private readonly open = new Map<string, vscode.WebviewPanel>();
  private readonly serializer = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly services: PlayServices,
  ) {}

  /** Shows the panel of an environment: reveals the open one, or creates one in `column`. */
  show(played: Played, column: vscode.ViewColumn): void {
    const open = this.open.get(keyOf(played));
    if (open) return open.reveal();
    this.attach(vscode.window.createWebviewPanel(viewType, titleOf(played), column), played);
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: Partial<PageState> | undefined): Promise<void> {
    const played = playedOf(state?.folder);
    if (played && vscode.workspace.isTrusted && existsSync(played.cwd)) this.attach(panel, played);
    else panel.dispose();
  }

  dispose(): void {
    this.serializer.dispose();
  }

  private attach(panel: vscode.WebviewPanel, played: Played): void {
    const key = keyOf(played);
    this.open.set(key, panel);
    const messenger = new PageMessenger();
    const page = messenger.registerWebviewPanel(panel);
    let session: PlayProcess | undefined;
    let newest: Promise<PlayReply> | undefined;
    /** Source files of the environment, from the newest reply. */
    let [source, files] = ['', [] as string[]];

    const begin = async (): Promise<PlayReply> => {
      session?.stop();
      session = new PlayProcess(await this.services.cliFor(played.cwd), played.environment, 1);
      return session.first;
    };
    const noted = (reply: Promise<PlayReply>): Promise<PlayReply> => {
      newest = reply;
      void reply.then(({ session: now }) => {
        if (now) ({ source, files } = now);
      });
      return reply;
    };
    messenger.onRequest(playReady, () => newest ?? noted(begin()));
    messenger.onRequest(playDo, asked => noted(session?.alive ? session.ask(asked) : begin()));
    messenger.onNotification(playCommand, ({ command, at }) => {
      const [, file = source, line] = /^(.*):(\d+)$/.exec(at ?? '') ?? [];
      if (command === 'check') this.services.check(vscode.Uri.file(source));
      else if (file !== '') void openSource(file, Number(line ?? 1));
    });
    const saved = vscode.workspace.onDidSaveTextDocument(({ uri }) => {
      if (files.includes(uri.fsPath) || uri.fsPath === join(played.cwd, played.environment))
        messenger.sendNotification(playStale, page, { file: vscode.workspace.asRelativePath(uri) });
    });
    panel.onDidDispose(() => {
      saved.dispose();
      session?.stop();
      if (this.open.get(key) === panel) this.open.delete(key);
    });
    fillPanel(panel, this.extensionUri, { title: titleOf(played), bundle: 'play', icon: 'play.svg', folder: key });
  }
}

/**
 * Opens a file at a line. The file opens in the column of a visible text editor; if no text editor is visible, it opens
 * beside the panel.
 */
async function openSource(file: string, line: number): Promise<void> {
  const text = vscode.window.visibleTextEditors.find(({ document }) => document.uri.scheme === 'file');
  const range = new vscode.Range(line - 1, 0, line - 1, 0);
  const viewColumn = text?.viewColumn ?? vscode.ViewColumn.Beside;
  await vscode.window.showTextDocument(vscode.Uri.file(file), { viewColumn, selection: range });
}

/** Encodes environment and workspace folder as the `folder` of the page state. */
const keyOf = ({ environment, cwd }: Played): string => JSON.stringify([environment, cwd]);

function playedOf(key: string | undefined): Played | undefined {
  try {
    const [environment, cwd] = JSON.parse(key ?? '') as [string, string];
    return { environment, cwd };
  } catch {
    return undefined;
  }
}

function titleOf({ environment }: Played): string {
  const name = environment
    .split('/')
    .at(-1)!
    .replace(/\.[cm]?[jt]s$/, '');
  const folder = environment.split('/').at(-2);
  return vscode.l10n.t('{0} · Play', name === 'index' && folder !== undefined ? folder : name);
}
