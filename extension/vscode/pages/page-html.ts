// The HTML document of a page: one root element, the page's script and the page's style sheet. A content security
// policy blocks inline scripts, and resources from elsewhere. Inline styles are permitted because the toolkit's
// components insert style elements.
import { escapeHtml } from '../../common/html';
import { randomBytes } from 'node:crypto';

export interface PageParts {
  title: string;
  /** `webview.cspSource`. */
  cspSource: string;
  script: string;
  style?: string;
  /** Absolute path of the run folder (PageState). */
  folder: string;
}

/**
 * Returns the document, with all texts escaped. Each document has a new nonce and therefore differs from the previous
 * document, so that VS Code reloads the page when the new document is set.
 */
export function pageHtml({ title, cspSource, script, style, folder }: PageParts): string {
  const nonce = randomBytes(16).toString('base64');
  const policy = [
    `default-src 'none'`,
    `script-src 'nonce-${nonce}'`,
    `style-src ${cspSource} 'unsafe-inline'`,
    `img-src ${cspSource} data:`,
    `font-src ${cspSource}`,
    // These directives have no fallback to `default-src`, so they are set explicitly.
    `base-uri 'none'`,
    `form-action 'none'`,
  ].join('; ');
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1.0">
<title>${escapeHtml(title)}</title>${style === undefined ? '' : `\n<link rel="stylesheet" href="${escapeHtml(style)}">`}
</head>
<body data-run="${escapeHtml(folder)}">
<div id="app"></div>
<script nonce="${nonce}" src="${escapeHtml(script)}"></script>
</body>
</html>`;
}
