// Decorations of a trace. The current overlay determines the shade of each token. Unsampled text has a less prominent
// colour, and rejected actions are struck through. Rewards are shown in the overview ruler and after the headings. The
// colours are the theme colours `ragen.trace.*`. In high contrast themes, tokens are underlined as well: a stronger
// shade has a wider line, and the line is dashed for values below zero. Long episodes are decorated only around the
// visible range. tokens/token-overlays.ts chooses the shade of a token; `contributes.colors` in package.json defines
// each shade's colour and opacity. The number of shades must be the same in this file, in tokens/token-overlays.ts and
// in package.json.
import * as vscode from 'vscode';
import { unlinked } from '../plain-text';
import { paint, type OverlayKind, type Painted } from './tokens/token-overlays';
import type { Span } from './tokens/spelling';
import type { TokenFacts } from './tokens/token-facts';
import type { Trace } from './trace-text';
import { rangeOf } from './trace-structure';

/** Number of tokens above which only the visible part is decorated. */
const paintedWhole = 3000;
/** Number of lines decorated above the visible lines of a long episode, and number of lines decorated below them. */
const beyond = 60;

const shadeNames = [-3, -2, -1, 1, 2, 3].map(String);
const sequentialNames = [1, 2, 3, 4, 5].map(shade => `s${shade}`);

/** An episode with the overlay to draw. */
export interface DrawnTrace {
  trace: Trace;
  /** Values of the tokens, in the order of `trace.tokens`. */
  facts: readonly TokenFacts[];
  overlay: OverlayKind;
  /** Whether the overlay's scale is signed. */
  signed: boolean;
  /** Whether to draw the overlay's shades. */
  shaded: boolean;
}

export class TraceDecorations implements vscode.Disposable {
  private types = new Map<string, vscode.TextEditorDecorationType>();
  private kind = vscode.window.activeColorTheme.kind;

  constructor() {
    this.make();
  }

  /**
   * Recreates the decoration types if the theme changed to or from high contrast. Returns whether they were recreated.
   */
  follow(theme: vscode.ColorTheme): boolean {
    if (isHighContrast(theme.kind) === isHighContrast(this.kind)) return false;
    this.kind = theme.kind;
    this.dispose();
    this.make();
    return true;
  }

  /** Draws the decorations of a trace in an editor; returns the shades. */
  draw(editor: vscode.TextEditor, { trace, facts, overlay, signed, shaded }: DrawnTrace): Painted {
    const { document } = editor;
    const painted = paint(overlay, facts);
    const seen = shaded ? visibleSpans(editor, trace) : [];
    const shades = new Map<string, vscode.Range[]>();
    trace.tokens.forEach((token, i) => {
      const shade = painted.shades[i];
      if (shade === 0 || token.from === token.to || !seen.some(({ from, to }) => token.to > from && token.from < to))
        return;
      const name = signed ? String(shade) : `s${shade}`;
      shades.set(name, [...(shades.get(name) ?? []), rangeOf(document, token)]);
    });
    for (const name of [...shadeNames, ...sequentialNames])
      editor.setDecorations(this.type(name), shades.get(name) ?? []);

    const untrained = trace.tokens.filter((_, i) => !facts[i].trained);
    const read = trace.turns.flatMap(({ state, prefix }) => [state, prefix]);
    const quiet = [...(trace.system ? [trace.system] : []), ...read, ...untrained].filter(({ from, to }) => to > from);
    editor.setDecorations(
      this.type('masked'),
      quiet.map(span => rangeOf(document, span)),
    );
    const refused = trace.turns.flatMap(({ refused: actions }) => actions);
    editor.setDecorations(
      this.type('refused'),
      refused.map(action => ({
        range: rangeOf(document, action),
        hoverMessage: new vscode.MarkdownString().appendText(
          vscode.l10n.t('Not executed: {0}', unlinked(action.reason)),
        ),
      })),
    );
    for (const sign of ['positive', 'negative'] as const) {
      const turns = trace.turns.filter(({ turn }) => (sign === 'positive' ? turn.reward > 0 : turn.reward < 0));
      editor.setDecorations(
        this.type(sign),
        turns.map(({ extent }) => rangeOf(document, extent)),
      );
    }
    editor.setDecorations(
      this.type('behind'),
      trace.turns.map(({ heading, reward }) => ({
        range: rangeOf(document, heading),
        renderOptions: { after: { contentText: reward.replace(/^reward [^·]*· /, '') } },
      })),
    );
    return painted;
  }

  dispose(): void {
    vscode.Disposable.from(...this.types.values()).dispose();
  }

  private type(name: string): vscode.TextEditorDecorationType {
    return this.types.get(name)!;
  }

  private make(): void {
    const colour = (name: string) => new vscode.ThemeColor(`ragen.trace.${name}`);
    const contrast = isHighContrast(this.kind);
    const underlined = (opaque: string, style: string, width: number): vscode.DecorationRenderOptions =>
      contrast
        ? { textDecoration: `underline ${style} ${width}px var(--vscode-${opaque}); text-underline-offset: 2px` }
        : {};
    const make = (name: string, options: vscode.DecorationRenderOptions) =>
      this.types.set(
        name,
        vscode.window.createTextEditorDecorationType({
          rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
          ...options,
        }),
      );
    this.types = new Map();
    for (const [i, name] of sequentialNames.entries())
      make(name, {
        backgroundColor: colour(`sequential${i + 1}`),
        ...underlined('editor-foreground', 'solid', i + 1),
      });
    for (const size of [1, 2, 3]) {
      make(String(size), {
        backgroundColor: colour(`positive${size}`),
        ...underlined('ragen-trace-rewardPositive', 'solid', size + 1),
      });
      make(String(-size), {
        backgroundColor: colour(`negative${size}`),
        ...underlined('ragen-trace-rewardNegative', 'dashed', size + 1),
      });
    }
    make('masked', { color: colour('masked') });
    make('refused', { textDecoration: 'line-through' });
    const { Left } = vscode.OverviewRulerLane;
    make('positive', { overviewRulerColor: colour('rewardPositive'), overviewRulerLane: Left });
    make('negative', { overviewRulerColor: colour('rewardNegative'), overviewRulerLane: Left });
    make('behind', { after: { color: colour('masked'), margin: '0 0 0 2em' } });
  }
}

const isHighContrast = (kind: vscode.ColorThemeKind): boolean =>
  kind === vscode.ColorThemeKind.HighContrast || kind === vscode.ColorThemeKind.HighContrastLight;

/** Returns the parts of the text to decorate. */
function visibleSpans({ document, visibleRanges }: vscode.TextEditor, { tokens, text }: Trace): Span[] {
  if (tokens.length <= paintedWhole) return [{ from: 0, to: text.length }];
  return visibleRanges.map(({ start, end }) => ({
    from: document.offsetAt(new vscode.Position(Math.max(0, start.line - beyond), 0)),
    to: document.offsetAt(new vscode.Position(end.line + beyond, 0)),
  }));
}
