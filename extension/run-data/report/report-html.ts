// A report as one HTML file that loads nothing. Every text of a run is escaped. The content security policy allows only
// the file's own style and script, by their hashes; the script shows the values of charts under the pointer.
import { escapeHtml } from '../../common/html';
import { describeBoard } from '../../common/board';
import { boardDrawing, boardSvg } from '../../common/board-picture';
import { paletteOf } from '../../common/palette';
import type { Theme } from '../charts/chart-theme';
import { plotArea, svgOf } from '../charts/svg-plot';
import type { ChartReading } from './chart-reading';
import type { ReportTable } from '../../../envs/api/plugins/report';
import type { DrawnBlock, DrawnReport, ReportChart, ReportEpisode, ReportState } from './report-blocks';
import { chartSize } from './report-charts';
import { reportStyle } from './report-style';

/** Colours of charts and boards as CSS variables, which the style sets for light and dark screens and for print. */
export const htmlTheme: Theme = {
  kind: 'light',
  highContrast: false,
  palette: paletteOf('light').map((_, i) => `var(--data-${i})`),
  background: 'var(--background)',
  foreground: 'var(--foreground)',
  muted: 'var(--muted)',
  border: 'var(--border)',
  warning: 'var(--data-5)',
  error: 'var(--data-1)',
  fontFamily: 'system-ui, sans-serif',
};

export interface HtmlParts {
  /** The bundle of webview/report. */
  readonly script: string;
  /** When the report was written, and by which program. */
  readonly footer: string;
  /** Returns the base64 of a text's SHA-256. */
  readonly sha256: (text: string) => string;
}

/** Escapes a text of a run for HTML. Control characters, which HTML forbids, become U+FFFD. */
export const escapeText = (text: string): string =>
  escapeHtml(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '\ufffd');

/** Returns the HTML document of a report. */
export function reportHtml({ title, blocks }: DrawnReport, { script, footer, sha256 }: HtmlParts): string {
  const code = script.replaceAll('</', '<\\/');
  const policy = `default-src 'none'; style-src 'sha256-${sha256(reportStyle)}'; img-src data:; script-src 'sha256-${sha256(code)}'; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeText(title)}</title>
<style>${reportStyle}</style>
</head>
<body>
<main>
<h1>${escapeText(title)}</h1>
${blocks.map(block).join('\n')}
</main>
<footer>${escapeText(footer)}</footer>
<script>${code}</script>
</body>
</html>
`;
}

/** A fact with more characters has a row of its own. */
const longFact = 32;

function block(content: DrawnBlock): string {
  switch (content.kind) {
    case 'heading':
      return `<h${content.level}>${escapeText(content.text)}</h${content.level}>`;
    case 'paragraph':
      return `<p${content.strong ? ' class="strong"' : ''}>${escapeText(content.text)}</p>`;
    case 'list':
      return `<ul>${content.items.map(item => `<li>${escapeText(item)}</li>`).join('')}</ul>`;
    case 'facts':
      return `<dl>${content.facts.map(([label, value]) => `<div${value.length > longFact ? ' class="wide"' : ''}><dt>${escapeText(label)}</dt><dd>${escapeText(value)}</dd></div>`).join('')}</dl>`;
    case 'table':
      return table(content);
    case 'charts':
      return `<div class="charts">${content.charts.map(chart).join('\n')}</div>`;
    case 'episode':
      return episode(content);
  }
}

function table({ heads, rows, numbers }: ReportTable): string {
  const kind = (column: number): string => (numbers.includes(column) ? ' class="number"' : '');
  const head = heads.map((text, i) => `<th scope="col"${kind(i)}>${escapeText(text)}</th>`).join('');
  const body = rows.map(cells => {
    const [first, ...rest] = cells;
    const others = rest.map((text, i) => `<td${kind(i + 1)}>${escapeText(text)}</td>`).join('');
    return `<tr><th scope="row"${kind(0)}>${escapeText(first)}</th>${others}</tr>`;
  });
  return `<div class="table" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

/** Renders a chart with the values that the script reads; `<` is escaped, so that no text can end the data block. */
function chart({ id, caption, data }: ReportChart): string {
  const reading: ChartReading = {
    area: { ...plotArea(data, chartSize), ...chartSize },
    ...{ x: data.x, y: data.y, log: data.log, unit: data.unit },
    lines: data.lines
      .filter(({ quiet }) => !quiet)
      .map(({ label, colour, points }) => ({
        ...{ label, colour },
        points: points.flatMap(({ x, y }): [number, number][] =>
          Number.isFinite(y) ? [[x, Number(y.toPrecision(6))]] : [],
        ),
      })),
  };
  const json = JSON.stringify(reading).replaceAll('<', '\\u003c');
  return `<figure class="chart" id="${id}">${svgOf(data, chartSize, `clip-${id}`)}<figcaption>${escapeText(caption)}</figcaption><script type="application/json">${json}</script></figure>`;
}

function episode({ id, title, summary, turns, end, problem }: ReportEpisode): string {
  const shown = turns.map(
    turn => `<section class="turn"><h4>${escapeText(turn.title)}</h4>
<div class="sides"><div>${state(turn.state)}</div><div><pre class="answer">${escapeText(turn.answer)}</pre><p class="outcome">${escapeText(turn.outcome)}</p></div></div></section>`,
  );
  return `<details class="episode" id="${id}" open><summary>${escapeText(title)}</summary>
<p class="muted">${escapeText(summary)}</p>
${shown.join('\n')}
${end === null && problem === null ? '' : `<section class="turn end"><h4>End</h4>${end === null ? '' : state(end)}${problem === null ? '' : `<p class="outcome">${escapeText(problem)}</p>`}</section>`}
</details>`;
}

function state({ pictures, ...shown }: ReportState): string {
  const images = pictures.map((url, i) =>
    url === null
      ? '<p class="muted">[picture missing]</p>'
      : `<img class="picture" src="${escapeText(url)}" alt="picture ${i + 1} of the state">`,
  );
  return `${textOf(shown)}${images.join('')}`;
}

function textOf({ text, board }: Omit<ReportState, 'pictures'>): string {
  if (!board) return `<pre>${escapeText(text)}</pre>`;
  const { before, after } = board.board;
  const around = (part: string): string => (part === '' ? '' : `<pre>${escapeText(part)}</pre>`);
  const picture = boardSvg(boardDrawing(board.board, board.previous, htmlTheme));
  return `${around(before)}<div class="board" role="img" aria-label="${escapeText(describeBoard(board.board))}">${picture}</div>${around(after)}`;
}
