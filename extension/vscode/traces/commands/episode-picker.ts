// Dialogs that let the user choose an episode: one lists the episodes of a run's newest steps, the other lists episodes
// to compare with the current one.
import * as vscode from 'vscode';
import { appendAll } from '../../../common/lists';
import { formatSigned } from '../../../common/numbers';
import { UserError } from '../../../common/user-error';
import { plain } from '../../plain-text';
import { showQuickPick } from '../../questions';
import { byScore, groupOf, type EpisodeHead } from '../../run-files/episodes/episode-heads';
import type { RunArgument } from '../../runs/run-picker';
import type { TraceServices } from './trace-services';
import { shortId } from '../trace-text';
import { fileOf, type OpenTrace } from '../trace-documents';
import { parseTraceUri, traceUri, type TraceLocation } from '../trace-uri';

/** Number of newest training steps whose episodes are listed. */
const offeredSteps = 4;
/** Number of best episodes, and also number of worst episodes, that are listed before the other episodes of a step. */
const offeredFirst = 5;

/** A list item of an episode. */
export type HeadItem = vscode.QuickPickItem & { head: EpisodeHead };

/** Formats the step of an episode for lists. */
const stepName = ({ step, mode }: Pick<EpisodeHead, 'step' | 'mode'>): string =>
  mode === 'train' ? vscode.l10n.t('step {0}', step) : vscode.l10n.t('validation {0}', step);

/** Returns the list item of an episode. */
export function headItem(head: EpisodeHead, isCurrent = false): HeadItem {
  const mark = head.success === null ? '$(question)' : head.success ? '$(pass)' : '$(circle-slash)';
  const parts = [
    head.tag,
    stepName(head),
    vscode.l10n.t('seed {0}', head.seed),
    ...(isCurrent ? [vscode.l10n.t('open')] : []),
  ];
  return {
    label: `${mark} ${formatSigned(head.score)}  ${plain(shortId(head.id))}`,
    description: plain(parts.join(' · ')),
    head,
  };
}

/** Lets the user choose an episode of a run's newest steps; the best and worst episodes are listed first. */
export async function chosenEpisode(
  services: TraceServices,
  argument: RunArgument,
): Promise<TraceLocation | undefined> {
  const none = vscode.l10n.t('There is no run in this workspace yet: start one with RAGEN: Start Run.');
  const run = await services.picker.pick(argument, () => true, none);
  if (!run) return undefined;
  const steps = (await run.reader.episodeSteps()).reverse();
  if (steps.length === 0)
    throw new UserError(
      vscode.l10n.t('Run {0} has no episodes yet: they are saved at the end of each step.', run.summary.name),
    );
  const validation = steps.find(({ mode }) => mode === 'val');
  const newest = steps.filter(({ mode }) => mode === 'train').slice(0, offeredSteps);
  type Item = vscode.QuickPickItem & { head?: EpisodeHead };
  const items = async (): Promise<Item[]> => {
    const listed: Item[] = [];
    for (const step of [...newest, ...(validation ? [validation] : [])]) {
      const ranked = byScore(await services.documents.heads.of(run.folder, step));
      const name = stepName(step);
      const part = (rank: string, heads: EpisodeHead[]) => {
        if (heads.length === 0) return;
        listed.push({ label: `${name}: ${rank}`, kind: vscode.QuickPickItemKind.Separator });
        appendAll(
          listed,
          heads.map(head => headItem(head)),
        );
      };
      const worst = ranked.slice(Math.max(offeredFirst, ranked.length - offeredFirst)).reverse();
      part(vscode.l10n.t('best'), ranked.slice(0, offeredFirst));
      part(vscode.l10n.t('worst'), worst);
      part(vscode.l10n.t('the others'), ranked.slice(offeredFirst, ranked.length - worst.length));
    }
    return listed;
  };
  const choice = await showQuickPick(items(), {
    title: vscode.l10n.t('Open Reasoning Trace'),
    placeHolder: vscode.l10n.t('Which episode of {0}?', run.summary.name),
    matchOnDescription: true,
  });
  if (!choice?.head) return undefined;
  const { mode, step, id } = choice.head;
  return { folder: run.folder, mode, step, id };
}

/**
 * Lets the user choose an episode to compare with the open one. Episodes of the same group are listed first, then the
 * other episodes of the step.
 */
export async function chosenOther(
  { documents }: TraceServices,
  { location, trace }: OpenTrace,
): Promise<TraceLocation | undefined> {
  type Item = vscode.QuickPickItem & { head?: EpisodeHead; uri?: vscode.Uri };
  const heads = (await documents.heads.ofFile(fileOf(location))).filter(({ id }) => id !== location.id);
  const group = byScore(groupOf(heads, trace.episode));
  const others = byScore(heads.filter(head => !group.includes(head)));
  const openTabs = vscode.window.tabGroups.all
    .flatMap(({ tabs }) => tabs.map(({ input }) => (input instanceof vscode.TabInputText ? input.uri : undefined)))
    .filter(uri => uri !== undefined)
    .filter(uri => parseTraceUri(uri) && uri.toString() !== traceUri(location).toString());
  const part = (label: string, items: Item[]): Item[] =>
    items.length === 0 ? [] : [{ label, kind: vscode.QuickPickItemKind.Separator }, ...items];
  const openItems = openTabs.map((uri): Item => {
    const { id, step } = parseTraceUri(uri)!;
    return { label: plain(shortId(id)), description: vscode.l10n.t('step {0}', step), uri };
  });
  const choice = await showQuickPick(
    [
      ...part(
        vscode.l10n.t('the same prompt'),
        group.map(head => headItem(head)),
      ),
      ...part(vscode.l10n.t('open'), openItems),
      ...part(
        vscode.l10n.t('the same step'),
        others.map(head => headItem(head)),
      ),
    ],
    { placeHolder: vscode.l10n.t('Compare {0} with which episode?', location.id), matchOnDescription: true },
  );
  if (choice?.uri) return parseTraceUri(choice.uri);
  return choice?.head && { ...location, id: choice.head.id };
}
