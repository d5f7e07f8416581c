// The token overlay of all visible traces. A status bar item shows the overlay's name and range. The user changes the
// overlay with this item, commands or keys. The choice is stored in the workspace state.
import * as vscode from 'vscode';
import { hasTokens } from '../../run-data/episode';
import { showQuickPick } from '../questions';
import { overlayKinds, overlays, formatRange, type OverlayKind, type Painted } from './tokens/token-overlays';
import { tokenFacts } from './tokens/token-facts';
import { TraceDecorations } from './trace-decorations';
import type { OpenTrace, TraceDocuments } from './trace-documents';
import type { TraceScores } from './trace-scores';
import { traceScheme } from './trace-uri';

const stored = 'ragen.trace.overlay';

const overlayNames = (): Record<OverlayKind, string> => ({
  none: vscode.l10n.t('none'),
  logprob: vscode.l10n.t('log-prob'),
  entropy: vscode.l10n.t('entropy'),
  advantage: vscode.l10n.t('advantage'),
  ratio: vscode.l10n.t('ratio'),
  kl: vscode.l10n.t('KL to reference'),
  teacher: vscode.l10n.t('divergence from teacher'),
  mask: vscode.l10n.t('loss mask'),
  value: vscode.l10n.t('value'),
});

const meanings = (): Record<OverlayKind, string> => ({
  none: vscode.l10n.t('plain text'),
  logprob: vscode.l10n.t(
    'log-prob of the token under the policy that sampled it; a stronger shade means a less likely token',
  ),
  entropy: vscode.l10n.t('entropy of the policy’s distribution at this token, in nats'),
  advantage: vscode.l10n.t('advantage of the token, as used in training; orange below zero, blue above zero'),
  ratio: vscode.l10n.t(
    'probability under the checkpoint divided by the probability at sampling; orange below one, blue above one',
  ),
  kl: vscode.l10n.t('log-prob minus the reference policy’s log-prob'),
  teacher: vscode.l10n.t(
    'log-prob at sampling minus the teacher’s log-prob; orange: the teacher prefers this token, blue: the teacher avoids it',
  ),
  mask: vscode.l10n.t('tokens with mask 1, which are trained on, are shaded'),
  value: vscode.l10n.t('the critic’s value before the token'),
});

export class TraceOverlay implements vscode.Disposable {
  private kind: OverlayKind;
  private readonly decorations = new TraceDecorations();
  private readonly item = vscode.window.createStatusBarItem('ragen.trace', vscode.StatusBarAlignment.Right, 110);
  private readonly subscriptions: vscode.Disposable[];
  private drawing: NodeJS.Timeout | undefined;
  /**
   * Whether the user chose the overlay from the list. If so, a request for scores that has failed before is repeated,
   * and the user sees the error if it fails again.
   */
  private chosen = false;

  constructor(
    private readonly documents: TraceDocuments,
    private readonly scores: TraceScores,
    private readonly state: vscode.Memento,
  ) {
    const kept = state.get<string>(stored);
    this.kind = overlayKinds.find(kind => kind === kept) ?? 'logprob';
    this.item.name = vscode.l10n.t('RAGEN Token Overlay');
    this.item.command = 'ragen.traceOverlay';
    const soon = () => this.soon();
    this.subscriptions = [
      this.item,
      vscode.window.onDidChangeVisibleTextEditors(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => isTrace(textEditor) && soon()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => document.uri.scheme === traceScheme && soon()),
      vscode.window.onDidChangeActiveColorTheme(theme => this.decorations.follow(theme) && soon()),
      scores.onDidChange(soon),
    ];
    soon();
  }

  /** Lets the user choose an overlay, or the checkpoint that scores the tokens. */
  async choose(): Promise<void> {
    type Item = vscode.QuickPickItem & { overlay?: OverlayKind };
    const [names, means] = [overlayNames(), meanings()];
    const items = overlayKinds.map((overlay): Item => ({
      label: `${overlay === this.kind ? '$(check) ' : ''}${names[overlay]}`,
      description: means[overlay],
      overlay,
    }));
    const checkpoint: Item = { label: vscode.l10n.t('$(history) Score with another checkpoint…') };
    const choice = await showQuickPick([...items, checkpoint], {
      placeHolder: vscode.l10n.t('Select token overlay'),
      matchOnDescription: true,
    });
    if (choice?.overlay) {
      this.chosen = true;
      this.use(choice.overlay);
    } else if (choice) await vscode.commands.executeCommand('ragen.traceCheckpoint');
  }

  /** Switches to the overlay that is `by` positions after the current overlay. The list of overlays is cyclic. */
  step(by: number): void {
    const { length } = overlayKinds;
    this.use(overlayKinds[(overlayKinds.indexOf(this.kind) + by + length) % length]);
  }

  dispose(): void {
    clearTimeout(this.drawing);
    this.decorations.dispose();
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private use(kind: OverlayKind): void {
    this.kind = kind;
    void this.state.update(stored, kind);
    this.soon();
  }

  /** Batches consecutive events into one redraw. */
  private soon(): void {
    this.drawing ??= setTimeout(() => {
      this.drawing = undefined;
      void this.drawAll();
    }, 30);
  }

  private async drawAll(): Promise<void> {
    const why = this.chosen ? 'requested' : 'shown';
    this.chosen = false;
    const active = vscode.window.activeTextEditor;
    let shown = false;
    for (const editor of vscode.window.visibleTextEditors.filter(isTrace)) {
      const open = await this.documents.of(editor.document);
      if (!open) continue;
      const painted = this.draw(editor, open);
      if (!painted.range) this.requestScores(open, why);
      if (editor !== active) continue;
      this.report(open, painted);
      shown = true;
    }
    if (!shown) this.item.hide();
  }

  private draw(editor: vscode.TextEditor, { trace, location, clip }: OpenTrace): Painted {
    const rescored = this.scores.known(location);
    const facts = trace.tokens.map(({ index }) => tokenFacts(trace.episode, index, rescored, clip));
    const signed = this.kind !== 'none' && overlays[this.kind].scale === 'signed';
    return this.decorations.draw(editor, { trace, facts, overlay: this.kind, signed, shaded: !isCompared(editor) });
  }

  /** Requests values from a checkpoint of the run if the overlay needs values that the episode does not record. */
  private requestScores({ trace, location }: OpenTrace, why: 'requested' | 'shown'): void {
    if (!this.needsModel() || trace.tokens.length === 0) return;
    this.scores.request(location, why);
  }

  private needsModel(): boolean {
    return this.kind !== 'none' && overlays[this.kind].needsModel;
  }

  private report({ trace, location }: OpenTrace, { range }: Painted): void {
    const name = overlayNames()[this.kind];
    const rescored = this.scores.known(location);
    const failure = this.needsModel() && !range ? this.scores.failure(location) : undefined;
    const message =
      trace.tokens.length === 0
        ? hasTokens(trace.episode)
          ? vscode.l10n.t('tokens unknown')
          : vscode.l10n.t('tokens not stored by the trainer')
        : failure !== undefined
          ? vscode.l10n.t('cannot be scored')
          : this.message(range, rescored !== undefined);
    this.item.text = `$(symbol-color) ${[name, ...(message === '' ? [] : [message])].join(' ')}`;
    this.item.accessibilityInformation = {
      label: vscode.l10n.t('Trace overlay: {0} {1}', name, message),
      role: 'button',
    };
    this.item.tooltip = this.legend(name, message, { checkpoint: rescored?.checkpoint.name, failure });
    this.item.show();
  }

  private message(range: Painted['range'], scored: boolean): string {
    if (this.kind === 'none') return '';
    if (range) return formatRange(this.kind, range);
    return this.needsModel() && !scored ? vscode.l10n.t('…') : vscode.l10n.t('none recorded');
  }

  private legend(
    name: string,
    message: string,
    { checkpoint, failure }: { checkpoint: string | undefined; failure: string | undefined },
  ): vscode.MarkdownString {
    const text = new vscode.MarkdownString('', true);
    text.supportHtml = true;
    text.appendMarkdown(`**${name}** ${message}  \n${meanings()[this.kind]}`);
    if (this.kind !== 'none') {
      const signed = overlays[this.kind].scale === 'signed';
      const shades = signed
        ? ['negative3', 'negative2', 'negative1', 'positive1', 'positive2', 'positive3']
        : [1, 2, 3, 4, 5].map(shade => `sequential${shade}`);
      const swatch = (shade: string) =>
        `<span style="background-color:var(--vscode-ragen-trace-${shade});">&nbsp;&nbsp;&nbsp;</span>`;
      if (this.kind !== 'mask') text.appendMarkdown(`\n\n${shades.map(swatch).join('')}`);
    }
    if (failure !== undefined) text.appendMarkdown('\n\n').appendText(failure);
    if (checkpoint !== undefined) text.appendMarkdown('\n\n').appendText(vscode.l10n.t('scored with {0}', checkpoint));
    text.appendMarkdown(`\n\n${vscode.l10n.t('Alt+. and Alt+, switch overlays')}`);
    return text;
  }
}

/** Whether an editor is part of a diff. The colours of a diff would make shades unreadable. */
function isCompared({ document }: vscode.TextEditor): boolean {
  const uri = document.uri.toString();
  return vscode.window.tabGroups.all.some(({ activeTab }) => {
    const input = activeTab?.input;
    return (
      input instanceof vscode.TabInputTextDiff && [input.original, input.modified].some(side => side.toString() === uri)
    );
  });
}

const isTrace = ({ document }: vscode.TextEditor): boolean => document.uri.scheme === traceScheme;
