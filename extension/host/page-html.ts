// The HTML around a page: one root element, its script and its style sheet, under a content security policy that lets nothing
// else in. No inline script; inline styles are allowed since the toolkit's components bring theirs as style elements.
import { randomBytes } from 'node:crypto';

export interface PageParts {
  title: string;
  /** `webview.cspSource`. */
  cspSource: string;
  script: string;
  style?: string;
  /** Absolute path of the run's folder (PageState). */
  folder: string;
}

/** A whole document. All texts are escaped; each call has a fresh nonce, so setting it again reloads the page. */
export function pageHtml({ title, cspSource, script, style, folder }: PageParts): string {
  const nonce = randomBytes(16).toString('base64');
  const policy = [
    `default-src 'none'`,
    `script-src 'nonce-${nonce}'`,
    `style-src ${cspSource} 'unsafe-inline'`,
    `img-src ${cspSource} data:`,
    `font-src ${cspSource}`,
    ...[`base-uri 'none'`, `form-action 'none'`], // which default-src does not cover
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

/** A text as it may stand in an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, character => entities[character]);
}
