// Folding ranges and outline of a trace.
import * as vscode from 'vscode';
import { formatSigned } from '../../common/numbers';
import type { Span } from './tokens/spelling';
import type { TraceDocuments } from './trace-documents';

/** Converts a span to a range of the document. */
export const rangeOf = (document: vscode.TextDocument, { from, to }: Span): vscode.Range =>
  new vscode.Range(document.positionAt(from), document.positionAt(to));

export class TraceStructure implements vscode.FoldingRangeProvider, vscode.DocumentSymbolProvider {
  constructor(private readonly documents: TraceDocuments) {}

  async provideFoldingRanges(document: vscode.TextDocument): Promise<vscode.FoldingRange[]> {
    const open = await this.documents.of(document);
    if (!open) return [];
    const { header, prompt, turns, end } = open.trace;
    const sections = turns.flatMap(({ extent, stateSection, answerSection, outcomeSection }) => [
      extent,
      stateSection,
      answerSection,
      outcomeSection,
    ]);
    const spans = [header, ...(prompt ? [afterBlank(prompt)] : []), ...sections, afterBlank(end)];
    return spans.flatMap(span => {
      const { start, end: last } = rangeOf(document, span);
      return last.line > start.line ? [new vscode.FoldingRange(start.line, last.line)] : [];
    });
  }

  async provideDocumentSymbols(document: vscode.TextDocument): Promise<vscode.DocumentSymbol[]> {
    const open = await this.documents.of(document);
    if (!open) return [];
    const { trace } = open;
    const symbol = (name: string, detail: string, kind: vscode.SymbolKind, extent: Span, at: Span = extent) =>
      new vscode.DocumentSymbol(name, detail, kind, rangeOf(document, extent), rangeOf(document, at));
    const { Namespace, Event, Object: State, String: Text, Method, Number: Reward } = vscode.SymbolKind;
    const turns = trace.turns.map(traced => {
      const { turn, extent, heading, stateSection, answerSection, outcomeSection, thought, actions, rewardLine } =
        traced;
      const one = symbol(vscode.l10n.t('Turn {0}', turn.turn), formatSigned(turn.reward), Event, extent, heading);
      const answer = symbol(vscode.l10n.t('Answer'), '', Method, answerSection);
      if (thought) answer.children.push(symbol(vscode.l10n.t('Thought'), shortened(turn.thought ?? ''), Text, thought));
      if (actions) answer.children.push(symbol(vscode.l10n.t('Actions'), shortened(turn.answer ?? ''), Text, actions));
      one.children.push(
        symbol(vscode.l10n.t('State'), '', State, stateSection),
        answer,
        symbol(vscode.l10n.t('Outcome'), traced.reward, Reward, outcomeSection, rewardLine),
      );
      return one;
    });
    return [
      symbol(trace.episode.id, '', Namespace, trace.header),
      ...(trace.prompt ? [symbol(vscode.l10n.t('Prompt'), '', Namespace, afterBlank(trace.prompt))] : []),
      ...turns,
      symbol(vscode.l10n.t('End'), '', Namespace, afterBlank(trace.end)),
    ];
  }
}

/** Returns the span of a section (the prompt or the end) without the blank line at the section's start. */
const afterBlank = ({ from, to }: Span): Span => ({ from: from + 1, to });

const shortened = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
