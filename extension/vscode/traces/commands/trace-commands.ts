// Commands on reasoning traces, by their ids in package.json.
import * as vscode from 'vscode';
import { showQuickPick } from '../../questions';
import { byScore, groupOf } from '../../run-files/episodes/episode-heads';
import type { RunArgument } from '../../runs/run-picker';
import { chosenEpisode, chosenOther, headItem } from './episode-picker';
import { replayEpisode } from './replay-episode';
import { extreme, goToTurn, neighbour, samePromptElsewhere, show } from './trace-navigation';
import { currentTrace, type TraceCommand } from './trace-services';
import { shortId } from '../trace-text';
import { fileOf } from '../trace-documents';
import { traceLocationOf, traceUri, type TraceLocation } from '../trace-uri';
import { trusted } from '../../workspace-trust';

export const traceCommands: Record<string, TraceCommand> = {
  'ragen.openTrace': async (services, argument) => {
    const location = traceLocationOf(argument) ?? (await chosenEpisode(services, argument as RunArgument));
    if (location) await show(services, location);
  },
  'ragen.traceOverlay': ({ overlay }) => overlay.choose(),
  'ragen.nextTraceOverlay': async ({ overlay }) => overlay.step(1),
  'ragen.previousTraceOverlay': async ({ overlay }) => overlay.step(-1),
  'ragen.traceCheckpoint': async (services, argument) => {
    const { location } = await currentTrace(services, argument);
    await services.scores.choose(location);
    services.scores.request(location, 'requested');
  },
  'ragen.scoreTrace': async (services, argument) => {
    const { location } = await currentTrace(services, argument);
    services.scores.request(location, 'requested');
  },
  'ragen.nextTrace': (services, argument) => neighbour(services, argument, 1),
  'ragen.previousTrace': (services, argument) => neighbour(services, argument, -1),
  'ragen.nextTraceTurn': services => goToTurn(services, 1),
  'ragen.previousTraceTurn': services => goToTurn(services, -1),
  'ragen.bestTrace': (services, argument) => extreme(services, argument, 0),
  'ragen.worstTrace': (services, argument) => extreme(services, argument, -1),
  'ragen.traceGroup': async (services, argument) => {
    const open = await currentTrace(services, argument);
    const heads = await services.documents.heads.ofFile(fileOf(open.location));
    const items = byScore(groupOf(heads, open.trace.episode)).map(head => headItem(head, head.id === open.location.id));
    const title = vscode.l10n.t('Episodes of group {0} in step {1}', open.trace.episode.group_id, open.location.step);
    const choice = await showQuickPick(items, { title, matchOnDescription: true });
    if (choice) await show(services, { ...open.location, id: choice.head.id }, open);
  },
  'ragen.earlierTrace': (services, argument) => samePromptElsewhere(services, argument, -1),
  'ragen.laterTrace': (services, argument) => samePromptElsewhere(services, argument, 1),
  'ragen.compareEpisodes': async (services, argument, other) => {
    const open = await currentTrace(services, argument);
    const named = traceLocationOf(other);
    const against = named ?? (await chosenOther(services, open));
    if (!against) return;
    const label = ({ step, id }: TraceLocation) => `${shortId(id)} (${vscode.l10n.t('step {0}', step)})`;
    const title = `${label(open.location)} ↔ ${label(against)}`;
    // The document is not opened as a preview, because a preview would replace the trace from which the command was
    // called.
    const options: vscode.TextDocumentShowOptions = { preview: false };
    await vscode.commands.executeCommand('vscode.diff', traceUri(open.location), traceUri(against), title, options);
  },
  'ragen.replayEpisode': async (services, argument) => {
    if (
      !trusted(
        vscode.l10n.t('The workspace is not trusted, so its environments cannot run: trust the workspace first.'),
      )
    )
      return;
    await replayEpisode(services, await currentTrace(services, argument));
  },
};
