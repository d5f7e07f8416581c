// A report as Markdown (GitHub's dialect) with one SVG file per chart and board, for the appendix of a paper. Every text
// of a run is escaped or stands in a code block that it cannot end.
import { describeBoard } from '../../common/board';
import { boardDrawing, boardSvg } from '../../common/board-picture';
import { maximum } from '../../common/lists';
import { paletteOf } from '../../common/palette';
import type { Theme } from '../charts/chart-theme';
import { svgOf } from '../charts/svg-plot';
import type { ReportTable } from '../../../envs/api/plugins/report';
import type { DrawnBlock, DrawnReport, ReportEpisode, ReportState } from './report-blocks';
import { chartSize } from './report-charts';

/** Colours of the SVG files: literal values for white paper. */
export const paperTheme: Theme = {
  kind: 'light',
  highContrast: false,
  palette: paletteOf('light'),
  background: '#ffffff',
  foreground: '#1f1f1f',
  muted: '#5c5c5c',
  border: '#d4d4d4',
  warning: paletteOf('light')[5],
  error: paletteOf('light')[1],
  fontFamily: 'sans-serif',
};

/** The content of a picture: the text of an SVG, or a file in base64. */
export type PictureContent = string | { base64: string };

export interface MarkdownReport {
  readonly text: string;
  /** Contents of the pictures by name, relative to the text's folder: SVG as text, PNG and JPEG in base64. */
  readonly pictures: ReadonlyMap<string, PictureContent>;
}

/** Escapes a text for one line of Markdown. */
export const escapeMarkdown = (text: string): string =>
  text
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/[\\`*_{}[\]()#+.!|~$^:@-]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');

/** Returns the report as Markdown; pictures are in the folder `folder`, relative to the text. */
export function reportMarkdown({ title, blocks }: DrawnReport, folder: string, footer: string): MarkdownReport {
  const pictures = new Map<string, PictureContent>();
  const picture: AddPicture = (name, alt, content, type = 'svg') => {
    const file = `${folder}/${name}.${type}`;
    pictures.set(file, content);
    return `![${escapeMarkdown(alt)}](${file.split('/').map(encodeURIComponent).join('/')})`;
  };
  const parts = blocks.map(block => rendered(block, picture));
  const text = [`# ${escapeMarkdown(title)}`, ...parts, escapeMarkdown(footer)].join('\n\n');
  return { text: `${text}\n`, pictures };
}

/** Adds a picture, an SVG by default; returns its Markdown. */
type AddPicture = (name: string, alt: string, content: PictureContent, type?: 'svg' | 'png' | 'jpeg') => string;

function rendered(block: DrawnBlock, picture: AddPicture): string {
  switch (block.kind) {
    case 'heading':
      return `${'#'.repeat(block.level)} ${escapeMarkdown(block.text)}`;
    case 'paragraph':
      return block.strong ? `**${escapeMarkdown(block.text)}**` : escapeMarkdown(block.text);
    case 'list':
      return block.items.map(item => `- ${escapeMarkdown(item)}`).join('\n');
    case 'facts':
      return table({ kind: 'table', heads: ['', ''], rows: block.facts.map(fact => [...fact]), numbers: [] });
    case 'table':
      return table(block);
    case 'charts':
      return block.charts
        .map(({ id, caption, data }) => picture(id, `${data.title} (${caption})`, svgOf(data, chartSize)))
        .join('\n\n');
    case 'episode':
      return episode(block, picture);
  }
}

/** Renders a table of GitHub's dialect. */
export function table({ heads, rows, numbers }: ReportTable): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(escapeMarkdown).join(' | ')} |`;
  const rule = `| ${heads.map((_, i) => (numbers.includes(i) ? '---:' : '---')).join(' | ')} |`;
  return [line(heads), rule, ...rows.map(line)].join('\n');
}

function episode({ id, title, summary, turns, end, problem }: ReportEpisode, picture: AddPicture): string {
  const parts = turns.flatMap((turn, i) => [
    `##### ${escapeMarkdown(turn.title)}`,
    state(turn.state, `${id}-${i + 1}`, picture),
    fenced(turn.answer),
    escapeMarkdown(turn.outcome),
  ]);
  const last = [
    ...(end === null ? [] : [state(end, `${id}-end`, picture)]),
    ...(problem === null ? [] : [escapeMarkdown(problem)]),
  ];
  const ending = last.length > 0 ? ['##### End', ...last] : [];
  return [`#### ${escapeMarkdown(title)}`, escapeMarkdown(summary), ...parts, ...ending].join('\n\n');
}

function state({ pictures, ...shown }: ReportState, name: string, picture: AddPicture): string {
  const images = pictures.map((url, i) => {
    const [, type, base64] = /^data:image\/(png|jpeg);base64,(.*)$/.exec(url ?? '') ?? [];
    if (type !== 'png' && type !== 'jpeg') return '[picture missing]';
    return picture(`${name}-picture-${i + 1}`, `picture ${i + 1} of the state`, { base64 }, type);
  });
  return [textOf(shown, name, picture), ...images].join('\n\n');
}

function textOf({ text, board }: Omit<ReportState, 'pictures'>, name: string, picture: AddPicture): string {
  if (!board) return fenced(text);
  const { before, after } = board.board;
  const drawing = boardSvg(boardDrawing(board.board, board.previous, paperTheme));
  return [
    ...(before === '' ? [] : [fenced(before)]),
    picture(name, describeBoard(board.board), drawing),
    ...(after === '' ? [] : [fenced(after)]),
  ].join('\n\n');
}

/** Puts a text into a code block whose fence is longer than every run of backticks in the text. */
function fenced(text: string): string {
  const longest = maximum(
    (text.match(/`+/g) ?? []).map(run => run.length),
    2,
  );
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text.replace(/\r\n?/g, '\n')}\n${fence}`;
}
