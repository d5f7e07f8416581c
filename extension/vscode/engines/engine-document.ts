// Shows the result of testing an engine server as a read-only document.
import * as vscode from 'vscode';

const scheme = 'ragen-engine';

/** Provides one document per server address, which contains the newest test report of that server. */
export class EngineDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly provider = vscode.workspace.registerTextDocumentContentProvider(scheme, this);

  async show(url: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme, path: `/Engine ${new URL(url).host.replace(/[^\w.-]+/g, ' ')}.txt` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    await vscode.window.showTextDocument(uri, { preview: true, preserveFocus: true });
  }

  provideTextDocumentContent({ path }: vscode.Uri): string {
    return this.texts.get(path) ?? vscode.l10n.t('Run RAGEN: Engines… to test the server again.');
  }

  dispose(): void {
    vscode.Disposable.from(this.changed, this.provider).dispose();
  }
}
