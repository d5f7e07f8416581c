// Sets up a webview panel: its icon, the resources it may load, and the HTML document around its bundle.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { pageHtml } from './page-html';

/** A page to show in a panel. */
export interface ShownPage {
  title: string;
  /** Name of the bundle in `dist/pages`. */
  bundle: string;
  /** Tab icon, a file in `media/icons`. */
  icon: string;
  /** `folder` of PageState, with which the page is restored after a window reload. */
  folder: string;
}

/** Shows a page in a panel. Calling it again reloads the page. */
export function fillPanel(panel: vscode.WebviewPanel, extensionUri: vscode.Uri, page: ShownPage): void {
  const { title, bundle, icon, folder } = page;
  const [pages, media] = [['dist', 'pages'], ['media']].map(parts => vscode.Uri.joinPath(extensionUri, ...parts));
  const uri = (name: string) => panel.webview.asWebviewUri(vscode.Uri.joinPath(pages, name)).toString();
  panel.iconPath = vscode.Uri.joinPath(media, 'icons', icon);
  panel.webview.options = { enableScripts: true, localResourceRoots: [pages, media] };
  panel.webview.html = pageHtml({
    title,
    folder,
    cspSource: panel.webview.cspSource,
    script: uri(`${bundle}.js`),
    style: existsSync(join(pages.fsPath, `${bundle}.css`)) ? uri(`${bundle}.css`) : undefined,
  });
}
