// Navigation between episodes and between turns. In a newly opened episode, the cursor is placed at the same turn as in
// the previous episode.
import * as vscode from 'vscode';
import { notifyBriefly, withProgress } from '../../notifications';
import { byScore, groupOf, samePrompt, stepsTowards } from '../../run-files/episodes/episode-heads';
import { currentTrace, type TraceServices } from './trace-services';
import { fileOf, type OpenTrace } from '../trace-documents';
import { rangeOf } from '../trace-structure';
import { traceUri, type TraceLocation } from '../trace-uri';

/**
 * Opens an episode. If `from` is given, goes to the turn that has the same number as the turn at the cursor in `from`;
 * otherwise, goes to the top.
 */
export async function show(services: TraceServices, location: TraceLocation, from?: OpenTrace): Promise<void> {
  const turn = from ? turnAt(from) : 0;
  const uri = traceUri(location);
  const { trace } = await services.documents.open(uri);
  const editor = await vscode.window.showTextDocument(uri, { preview: true });
  const heading = turn > 0 ? trace.turns[Math.min(turn, trace.turns.length) - 1]?.heading : undefined;
  if (heading) reveal(editor, rangeOf(editor.document, heading).start);
}

function reveal(editor: vscode.TextEditor, position: vscode.Position): void {
  editor.selection = new vscode.Selection(position, position);
  editor.revealRange(new vscode.Range(position, position), vscode.TextEditorRevealType.AtTop);
}

/** Returns the 1-based turn at the cursor; 0 above the first turn. */
function turnAt({ trace, location }: OpenTrace): number {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.uri.toString() !== traceUri(location).toString()) return 0;
  const at = editor.document.offsetAt(editor.selection.active);
  return trace.turns.filter(({ extent }) => extent.from <= at).length;
}

/** Opens the next or the previous episode of the step. */
export async function neighbour(services: TraceServices, argument: unknown, by: 1 | -1): Promise<void> {
  const open = await currentTrace(services, argument);
  const heads = await services.documents.heads.ofFile(fileOf(open.location));
  const head = heads[heads.findIndex(({ id }) => id === open.location.id) + by];
  if (head) await show(services, { ...open.location, id: head.id }, open);
  else
    showBriefly(
      by > 0
        ? vscode.l10n.t('This is the last episode of the step')
        : vscode.l10n.t('This is the first episode of the step'),
    );
}

/** Goes to the next or the previous turn. After the last turn, goes to the next episode. */
export async function goToTurn(services: TraceServices, by: 1 | -1): Promise<void> {
  const open = await currentTrace(services, undefined);
  const editor = vscode.window.activeTextEditor!;
  const here = turnAt(open);
  const heading = here > 0 ? rangeOf(editor.document, open.trace.turns[here - 1].heading).start : undefined;
  // If the cursor is inside a turn, `previous` first moves it to the turn's heading.
  const inside = by < 0 && heading !== undefined && editor.selection.active.line > heading.line;
  const to = inside ? here : here + by;
  if (to <= 0) return reveal(editor, new vscode.Position(0, 0));
  if (to > open.trace.turns.length) return neighbour(services, undefined, 1);
  reveal(editor, rangeOf(editor.document, open.trace.turns[to - 1].heading).start);
}

/** Opens the best (0) or the worst (-1) episode in the group of the current episode. */
export async function extreme(services: TraceServices, argument: unknown, at: 0 | -1): Promise<void> {
  const open = await currentTrace(services, argument);
  const heads = await services.documents.heads.ofFile(fileOf(open.location));
  const head = byScore(groupOf(heads, open.trace.episode)).at(at);
  if (head?.id === open.location.id) showBriefly(vscode.l10n.t('This episode is already open'));
  else if (head) await show(services, { ...open.location, id: head.id }, open);
}

/**
 * Goes to the nearest step that has episodes of the same prompt; `direction` chooses between earlier and later steps.
 * Opens one of these episodes, if possible the episode with the same index within its group.
 */
export async function samePromptElsewhere(
  services: TraceServices,
  argument: unknown,
  direction: 1 | -1,
): Promise<void> {
  const open = await currentTrace(services, argument);
  const { documents } = services;
  const { location, trace } = open;
  const own = (await documents.heads.ofFile(fileOf(location))).find(({ id }) => id === location.id);
  const files = stepsTowards(await (await documents.run(location)).reader.episodeSteps(), location, direction);
  const title = vscode.l10n.t('Looking for the same prompt');
  const found = await withProgress({ location: vscode.ProgressLocation.Window, title }, async () => {
    for (const file of files) {
      const heads = own ? (await documents.heads.of(location.folder, file)).filter(head => samePrompt(own, head)) : [];
      if (heads.length > 0) return heads.find(({ member }) => member === trace.episode.member) ?? heads[0];
    }
    return undefined;
  });
  if (found) return show(services, { folder: location.folder, mode: found.mode, step: found.step, id: found.id }, open);
  showBriefly(
    direction < 0
      ? vscode.l10n.t('No earlier step played this prompt')
      : vscode.l10n.t('No later step played this prompt'),
  );
}

/** Shows a message in the status bar for a short time. */
function showBriefly(message: string): void {
  notifyBriefly(message, 4000);
}
