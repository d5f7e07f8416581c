// Commands of reasoning traces. A command's episode is named by a page, a document's URI or a tree node, or is the one
// in the active editor. Navigation between episodes keeps the current turn.
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { formatSigned } from '../../../common/numbers';
import type { Transcript } from '../../../protocol/environment-tools';
import { appendAll } from '../../../common/lists';
import { UserError } from '../../../common/user-error';
import { trusted } from '../../runs/commands/commands';
import { askCli, type CliInvocation } from '../../processes/environment-cli';
import { notifyBriefly, notifyInformation, notifyWarning, withProgress } from '../../notifications';
import { plain } from '../../plain-text';
import type { RunArgument, RunPicker } from '../../runs/run-picker';
import type { RunTrust } from '../../runs/run-trust-dialog';
import { byScore, groupOf, samePrompt, stepsTowards, type EpisodeHead } from '../../run-files/episodes/episode-heads';
import { firstDifference, replayCase } from './replay';
import { fileOf, type OpenTrace, type TraceDocuments } from '../trace-documents';
import type { TraceOverlay } from '../trace-overlay';
import type { TraceScores } from '../trace-scores';
import { rangeOf } from '../trace-structure';
import { traceLocationOf, parseTraceUri, traceUri, type TraceLocation } from '../trace-uri';
import { shortId } from '../trace';

/** Everything that the commands use. */
export interface TraceServices {
  documents: TraceDocuments;
  overlay: TraceOverlay;
  scores: TraceScores;
  picker: RunPicker;
  trust: RunTrust;
  /** Returns the CLI for a workspace folder. */
  terminal(cwd: string): Promise<CliInvocation>;
}

type Command = (services: TraceServices, argument: unknown, other?: unknown) => Promise<void>;

/** Number of newest training steps whose episodes are listed. */
const offeredSteps = 4;
/** Number of best and worst episodes of a step that are listed before the others. */
const offeredFirst = 5;

export const traceCommands: Record<string, Command> = {
  'ragen.openTrace': async (services, argument) => {
    const location = traceLocationOf(argument) ?? (await chosenEpisode(services, argument as RunArgument));
    if (location) await show(services, location);
  },
  'ragen.traceOverlay': ({ overlay }) => overlay.choose(),
  'ragen.nextTraceOverlay': async ({ overlay }) => overlay.step(1),
  'ragen.previousTraceOverlay': async ({ overlay }) => overlay.step(-1),
  'ragen.traceCheckpoint': async (services, argument) => {
    const { location } = await current(services, argument);
    await services.scores.choose(location);
    services.scores.want(location, 'asked for');
  },
  'ragen.scoreTrace': async (services, argument) => {
    const { location } = await current(services, argument);
    services.scores.want(location, 'asked for');
  },
  'ragen.nextTrace': (services, argument) => neighbour(services, argument, 1),
  'ragen.previousTrace': (services, argument) => neighbour(services, argument, -1),
  'ragen.nextTraceTurn': services => goToTurn(services, 1),
  'ragen.previousTraceTurn': services => goToTurn(services, -1),
  'ragen.bestTrace': (services, argument) => extreme(services, argument, 0),
  'ragen.worstTrace': (services, argument) => extreme(services, argument, -1),
  'ragen.traceGroup': async (services, argument) => {
    const open = await current(services, argument);
    const heads = await services.documents.heads.ofFile(fileOf(open.location));
    const items = byScore(groupOf(heads, open.trace.episode)).map(head => headItem(head, head.id === open.location.id));
    const title = vscode.l10n.t('Episodes of group {0} in step {1}', open.trace.episode.group_id, open.location.step);
    const choice = await vscode.window.showQuickPick(items, { title, matchOnDescription: true });
    if (choice) await show(services, { ...open.location, id: choice.head.id }, open);
  },
  'ragen.earlierTrace': (services, argument) => samePromptElsewhere(services, argument, -1),
  'ragen.laterTrace': (services, argument) => samePromptElsewhere(services, argument, 1),
  'ragen.compareEpisodes': async (services, argument, other) => {
    const open = await current(services, argument);
    const named = traceLocationOf(other);
    const against = named ?? (await chosenOther(services, open));
    if (!against) return;
    const label = ({ step, id }: TraceLocation) => `${shortId(id)} (${vscode.l10n.t('step {0}', step)})`;
    const title = `${label(open.location)} ↔ ${label(against)}`;
    // A preview tab would replace the trace from which the command was called.
    const options: vscode.TextDocumentShowOptions = { preview: false };
    await vscode.commands.executeCommand('vscode.diff', traceUri(open.location), traceUri(against), title, options);
  },
  'ragen.replayEpisode': async (services, argument) => {
    if (!trusted(vscode.l10n.t('Environments run code from this workspace, which is not trusted: trust it first.')))
      return;
    await replay(services, await current(services, argument));
  },
};

/** Returns the episode of a command. Throws a UserError if there is none. */
async function current({ documents }: TraceServices, argument: unknown): Promise<OpenTrace> {
  const location = traceLocationOf(argument);
  const uri = location ? traceUri(location) : vscode.window.activeTextEditor?.document.uri;
  if (!uri || !parseTraceUri(uri))
    throw new UserError(vscode.l10n.t('No reasoning trace is open: open one with RAGEN: Open Reasoning Trace.'));
  return documents.open(uri);
}

/** Opens an episode at the current turn of `from`, else at its top. */
async function show(services: TraceServices, location: TraceLocation, from?: OpenTrace): Promise<void> {
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

/** Returns the 1-based turn at the cursor; 0 above the first. */
function turnAt({ trace, location }: OpenTrace): number {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.uri.toString() !== traceUri(location).toString()) return 0;
  const at = editor.document.offsetAt(editor.selection.active);
  return trace.turns.filter(({ extent }) => extent.from <= at).length;
}

async function neighbour(services: TraceServices, argument: unknown, by: 1 | -1): Promise<void> {
  const open = await current(services, argument);
  const heads = await services.documents.heads.ofFile(fileOf(open.location));
  const head = heads[heads.findIndex(({ id }) => id === open.location.id) + by];
  if (head) await show(services, { ...open.location, id: head.id }, open);
  else
    say(
      by > 0
        ? vscode.l10n.t('This is the last episode of the step')
        : vscode.l10n.t('This is the first episode of the step'),
    );
}

async function goToTurn(services: TraceServices, by: 1 | -1): Promise<void> {
  const open = await current(services, undefined);
  const editor = vscode.window.activeTextEditor!;
  const here = turnAt(open);
  const heading = here > 0 ? rangeOf(editor.document, open.trace.turns[here - 1].heading).start : undefined;
  // From inside a turn, going back first moves to the turn's own heading.
  const inside = by < 0 && heading !== undefined && editor.selection.active.line > heading.line;
  const to = inside ? here : here + by;
  if (to <= 0) return reveal(editor, new vscode.Position(0, 0));
  if (to > open.trace.turns.length) return neighbour(services, undefined, 1);
  reveal(editor, rangeOf(editor.document, open.trace.turns[to - 1].heading).start);
}

async function extreme(services: TraceServices, argument: unknown, at: 0 | -1): Promise<void> {
  const open = await current(services, argument);
  const heads = await services.documents.heads.ofFile(fileOf(open.location));
  const head = byScore(groupOf(heads, open.trace.episode)).at(at);
  if (head?.id === open.location.id) say(vscode.l10n.t('This episode is already open'));
  else if (head) await show(services, { ...open.location, id: head.id }, open);
}

/** Opens the nearest step that played the same prompt, at the same group member if it exists. */
async function samePromptElsewhere(services: TraceServices, argument: unknown, direction: 1 | -1): Promise<void> {
  const open = await current(services, argument);
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
  say(
    direction < 0
      ? vscode.l10n.t('No earlier step played this prompt')
      : vscode.l10n.t('No later step played this prompt'),
  );
}

type HeadItem = vscode.QuickPickItem & { head: EpisodeHead };

/** Step of an episode as shown in lists. */
const stepName = ({ step, mode }: Pick<EpisodeHead, 'step' | 'mode'>): string =>
  mode === 'train' ? vscode.l10n.t('step {0}', step) : vscode.l10n.t('validation {0}', step);

function headItem(head: EpisodeHead, isCurrent = false): HeadItem {
  const mark = head.success ? '$(pass)' : '$(circle-slash)';
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

/** Asks for an episode of a run's newest steps, best and worst first. */
async function chosenEpisode(services: TraceServices, argument: RunArgument): Promise<TraceLocation | undefined> {
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
      const part = (words: string, heads: EpisodeHead[]) => {
        if (heads.length === 0) return;
        listed.push({ label: `${name}: ${words}`, kind: vscode.QuickPickItemKind.Separator });
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
  const choice = await vscode.window.showQuickPick(items(), {
    title: vscode.l10n.t('Open Reasoning Trace'),
    placeHolder: vscode.l10n.t('Which episode of {0}?', run.summary.name),
    matchOnDescription: true,
  });
  if (!choice?.head) return undefined;
  const { mode, step, id } = choice.head;
  return { folder: run.folder, mode, step, id };
}

/** Asks for another episode to compare with: first of its group, then of its step. */
async function chosenOther(
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
  const choice = await vscode.window.showQuickPick(
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

/** Replays an episode and reports whether the result is the same. */
async function replay({ trust, terminal }: TraceServices, { location, trace }: OpenTrace): Promise<void> {
  const trusted = await trust.ask(location.folder); // its manifest determines which file is executed with which settings
  if (!trusted) return;
  const played = replayCase(trace.episode, trusted.manifest);
  if (!played)
    throw new UserError(
      vscode.l10n.t('The run’s configuration has no tag {0}, so the episode cannot be replayed.', trace.episode.tag),
    );
  const workspace = join(location.folder, '..', '..', '..');
  const input = join(tmpdir(), `ragen-replay-${randomUUID()}.json`);
  const title = vscode.l10n.t('Replaying {0}', location.id);
  const [transcript] = await withProgress({ location: vscode.ProgressLocation.Window, title }, async () => {
    await writeFile(input, JSON.stringify([played]));
    try {
      return await askCli<Transcript[]>(await terminal(workspace), ['play', '--input', input]);
    } finally {
      await rm(input, { force: true });
    }
  });
  if ('error' in transcript)
    throw new UserError(vscode.l10n.t('{0} cannot be replayed: {1}', location.id, transcript.error));
  const difference = firstDifference(trace.episode, transcript);
  const { name, version } = trace.episode.environment;
  if (!difference) {
    void notifyInformation(
      vscode.l10n.t(
        '{0} replayed: every turn gave the same state and reward (return {1}).',
        location.id,
        formatSigned(trace.episode.reward),
      ),
    );
    return;
  }
  const what = { reward: vscode.l10n.t('reward'), state: vscode.l10n.t('state'), end: vscode.l10n.t('end') };
  const { turn, recorded, now } = difference;
  const detail = difference.what === 'state' ? '' : `: ${vscode.l10n.t('recorded {0}, now {1}', recorded, now)}`;
  const message = vscode.l10n.t(
    '{0} replayed: it differs from turn {1} on ({2}{3}). It was recorded with version {4} of {5}.',
    location.id,
    turn,
    what[difference.what],
    detail,
    version.slice(0, 8),
    name,
  );
  void notifyWarning(message);
}

/** Shows a message that needs no notification. */
function say(message: string): void {
  notifyBriefly(message, 4000);
}
