// Hovers of a trace: a card about a token or, for a state that is a board, its pictures or a picture of the board.
import * as vscode from 'vscode';
import { describeBoard, gameOf, readBoard } from '../../common/board';
import { boardDrawing, boardSvg } from '../../common/board-picture';
import { paletteOf, type ThemeKind } from '../../common/palette';
import type { Span } from './tokens/spelling';
import { tokenCard } from './tokens/token-card';
import { tokenFacts } from './tokens/token-facts';
import type { OpenTrace, TraceDocuments } from './trace-documents';
import type { TraceScores } from './trace-scores';
import { pictureHover } from './trace-pictures';
import { rangeOf } from './trace-structure';

export class TraceHover implements vscode.HoverProvider {
  constructor(
    private readonly documents: TraceDocuments,
    private readonly scores: TraceScores,
  ) {}

  async provideHover(document: vscode.TextDocument, position: vscode.Position): Promise<vscode.Hover | undefined> {
    const open = await this.documents.of(document);
    if (!open) return undefined;
    const at = document.offsetAt(position);
    return this.tokenHover(document, open, at) ?? (await stateHover(document, open, at));
  }

  private tokenHover(document: vscode.TextDocument, open: OpenTrace, at: number): vscode.Hover | undefined {
    const { trace, location, clip } = open;
    const here = trace.tokens.filter(({ from, to }) => at >= from && at < to);
    if (here.length === 0) return undefined;
    const rescored = this.scores.known(location);
    const cards = here.map(token => {
      const turn = trace.tokens.filter(other => other.turn === token.turn);
      const facts = tokenFacts(trace.episode, token.index, rescored, clip);
      const text = rescored?.tokens[token.index]?.text ?? trace.text.slice(token.from, token.to);
      const source = { checkpoint: rescored?.checkpoint.name, step: trace.episode.step, clip };
      return tokenCard({ facts, text, location: [turn.indexOf(token) + 1, turn.length] }, source);
    });
    const content = new vscode.MarkdownString(cards.join('\n\n---\n\n'));
    if (!rescored) {
      const score = vscode.Uri.parse(`command:ragen.scoreTrace?${encodeURIComponent(JSON.stringify([location]))}`);
      content.appendMarkdown(`\n\n[${vscode.l10n.t('Score with the newest checkpoint')}](${score.toString()})`);
      content.isTrusted = { enabledCommands: ['ragen.scoreTrace'] };
    }
    return new vscode.Hover(content, rangeOf(document, here[0]));
  }
}

/** Returns a hover with the pictures of a state, or with its board. Cells that changed since the previous state are framed. */
async function stateHover(
  document: vscode.TextDocument,
  open: OpenTrace,
  at: number,
): Promise<vscode.Hover | undefined> {
  const { turns, finalState, episode } = open.trace;
  const states: { span: Span; state: string; pictures?: (string | null)[] }[] = [
    ...turns.map(({ state: span, turn: { state, pictures } }) => ({ span, state, pictures })),
    { span: finalState, state: episode.final_state, pictures: episode.final_pictures },
  ];
  const i = states.findIndex(({ span }) => at >= span.from && at <= span.to);
  if (i < 0) return undefined;
  const pictures = await pictureHover(open, states[i].pictures);
  if (pictures) return new vscode.Hover(pictures, rangeOf(document, states[i].span));
  const game = gameOf({ ...episode, states: states.map(({ state }) => state) });
  const board = readBoard(states[i].state, game);
  if (!board) return undefined;
  const before = i > 0 ? readBoard(states[i - 1].state, game) : null;
  const image = Buffer.from(boardSvg(boardDrawing(board, before, boardColours()))).toString('base64');
  const content = new vscode.MarkdownString();
  content.appendMarkdown(`![${describeBoard(board)}](data:image/svg+xml;base64,${image})`);
  return new vscode.Hover(content, rangeOf(document, states[i].span));
}

/**
 * Returns the colours of a board for the current kind of theme. The extension host cannot query the colours of the
 * theme. Lines are therefore mid-grey, except in high contrast themes.
 */
function boardColours() {
  const kinds: Record<vscode.ColorThemeKind, ThemeKind> = {
    [vscode.ColorThemeKind.Light]: 'light',
    [vscode.ColorThemeKind.Dark]: 'dark',
    [vscode.ColorThemeKind.HighContrast]: 'high-contrast',
    [vscode.ColorThemeKind.HighContrastLight]: 'high-contrast-light',
  };
  const kind = kinds[vscode.window.activeColorTheme.kind];
  const bright = kind === 'light' || kind === 'high-contrast-light';
  const contrast = kind.startsWith('high-contrast');
  return {
    palette: paletteOf(kind),
    background: bright ? '#ffffff' : '#1f1f1f',
    foreground: bright ? '#1f1f1f' : '#e0e0e0',
    border: contrast ? (bright ? '#000000' : '#ffffff') : '#80808080',
  };
}
