// Code lenses of a trace: navigation (next and previous episode, the prompt's group, the same prompt in other steps),
// comparison, replay, and a what-if at each turn.
import * as vscode from 'vscode';
import { formatSigned } from '../../common/numbers';
import { byScore, groupOf } from '../run-files/episodes/episode-heads';
import type { PromptTimes } from '../run-files/episodes/prompt-times';
import { fileOf, type TraceDocuments } from './trace-documents';
import { rangeOf } from './trace-structure';
import { traceScheme } from './trace-uri';

/**
 * Milliseconds between the activation of a trace and a change event that makes VS Code request the lenses again. VS
 * Code sometimes drops its first request if the user scrolls while a document opens.
 */
const askAgainMs = 500;

export class TraceLenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly subscription: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly documents: TraceDocuments,
    private readonly prompts: PromptTimes,
  ) {
    this.subscription = vscode.window.onDidChangeActiveTextEditor(editor => {
      clearTimeout(this.timer);
      if (editor?.document.uri.scheme === traceScheme) this.timer = setTimeout(() => this.changed.fire(), askAgainMs);
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscription.dispose();
    this.changed.dispose();
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const open = await this.documents.of(document);
    if (!open) return [];
    const { trace, location } = open;
    const heads = await this.documents.heads.ofFile(fileOf(location));
    const unknown = { earlier: true, later: true };
    const { earlier, later } = await this.prompts.around(location.folder, trace.episode).catch(() => unknown);
    const group = groupOf(heads, trace.episode);
    const ranked = byScore(group);
    const [best, worst] = [ranked[0], ranked.at(-1)];
    const rank = ranked.findIndex(({ id }) => id === location.id) + 1;
    const i = heads.findIndex(({ id }) => id === location.id);
    const top = rangeOf(document, { from: 0, to: 0 });
    const { uri } = document;
    const lens = (title: string, command: string, tooltip: string) =>
      new vscode.CodeLens(top, { title, command, tooltip, arguments: [uri] });
    const toWhatIf = trace.turns.map(
      ({ heading, turn }) =>
        new vscode.CodeLens(rangeOf(document, heading), {
          title: vscode.l10n.t('what if…'),
          tooltip: vscode.l10n.t('Change the thought or action of this turn and see the result'),
          command: 'ragen.whatIf',
          arguments: [{ ...location, turn: turn.turn }],
        }),
    );
    return [
      ...(i > 0 ? [lens(vscode.l10n.t('◂ previous'), 'ragen.previousTrace', heads[i - 1].id)] : []),
      ...(i >= 0 && i < heads.length - 1 ? [lens(vscode.l10n.t('next ▸'), 'ragen.nextTrace', heads[i + 1].id)] : []),
      ...(group.length > 1 && best && worst
        ? [
            lens(
              vscode.l10n.t('group of {0}: rank {1}', group.length, rank),
              'ragen.traceGroup',
              vscode.l10n.t('The episodes of the same prompt, with their scores'),
            ),
            lens(vscode.l10n.t('best {0}', formatSigned(best.score)), 'ragen.bestTrace', best.id),
            lens(vscode.l10n.t('worst {0}', formatSigned(worst.score)), 'ragen.worstTrace', worst.id),
          ]
        : []),
      ...(earlier
        ? [
            lens(
              vscode.l10n.t('same prompt earlier'),
              'ragen.earlierTrace',
              vscode.l10n.t('Open the episode of the same prompt in the nearest earlier step'),
            ),
          ]
        : []),
      ...(later
        ? [
            lens(
              earlier ? vscode.l10n.t('later') : vscode.l10n.t('same prompt later'),
              'ragen.laterTrace',
              vscode.l10n.t('Open the episode of the same prompt in the nearest later step'),
            ),
          ]
        : []),
      lens(
        vscode.l10n.t('compare…'),
        'ragen.compareEpisodes',
        vscode.l10n.t('Compare with another episode in the diff editor'),
      ),
      lens(
        vscode.l10n.t('replay'),
        'ragen.replayEpisode',
        vscode.l10n.t('Replay the episode with the same seed and actions, and check that the result is the same'),
      ),
      ...toWhatIf,
    ];
  }
}
