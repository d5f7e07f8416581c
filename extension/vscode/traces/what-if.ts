// What-if command: asks what to change in a turn of an episode and who plays the remaining turns, and shows the result
// beside the original. The inspection process plays. By hand, the episode so far is shown in a document and each turn
// is asked for, until the episode ends or a checkpoint continues.
import { randomInt } from 'node:crypto';
import { basename, join } from 'node:path';
import * as vscode from 'vscode';
import { formatSigned } from '../../common/numbers';
import { initialWeights, type EpisodeRef, type GivenAnswer, type WhatIfState } from '../../protocol/inspection';
import { episodeFile } from '../../run-data/run-files';
import type { Episode, EpisodeTurn } from '../../run-data/episode';
import { UserError } from '../../common/user-error';
import type { Asking, Inspections } from '../processes/inspection-process';
import { notifyInformation, withProgress } from '../notices';
import { plain } from '../plain-text';
import type { RunStore } from '../runs/run-store';
import type { RunTrust } from '../runs/run-trust';
import { EpisodeHeads } from './episode-heads';
import { shortId } from './trace';
import { traceLocationOf, parseTraceUri, traceUri } from './trace-uri';

/** URI scheme of the document that shows an episode waiting for the user. */
const scheme = 'ragen-what-if';
/** Exclusive upper bound of seeds. */
const seeds = 2 ** 31;
/** Number of characters of the sampled text shown in the progress. */
const shownText = 60;

type Asked = EpisodeRef & { turn: number; accepted: string[] };

export class WhatIfs implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly heads = new EpisodeHeads();
  /** Texts of the waiting episodes by document path. */
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly provider: vscode.Disposable;
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly inspections: Inspections,
    private readonly trust: RunTrust,
    private readonly store: RunStore,
  ) {
    this.provider = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  }

  provideTextDocumentContent({ path }: vscode.Uri): string {
    return this.texts.get(path) ?? '';
  }

  dispose(): void {
    this.provider.dispose();
    this.changed.dispose();
  }

  /** The command, for the episode and turn in `argument`, else for the trace in the active editor. */
  async ask(argument: unknown): Promise<void> {
    const location = traceLocationOf(argument) ?? locationInEditor();
    if (!location)
      throw new UserError(vscode.l10n.t('No reasoning trace is open: open one with RAGEN: Open Reasoning Trace.'));
    const origin = await this.heads.episode(join(location.folder, episodeFile(location)), location.id);
    if (!origin) throw new UserError(vscode.l10n.t('Episode {0} is no longer in its run folder.', location.id));
    const turn = turnOf(argument) ?? (await chosenTurn(origin));
    if (turn === undefined) return;
    if (!(await this.store.find(location.folder)))
      throw new UserError(vscode.l10n.t('{0} is not a run in this workspace.', location.folder));
    const trusted = await this.trust.ask(location.folder, { version: origin.environment.version, tag: origin.tag });
    if (!trusted) return;
    const asked = { ...location, turn, accepted: trusted.accepted };
    const given = await this.chosenChange(asked, origin.turns[turn - 1]);
    if (!given) return;
    const checkpoint = await this.chosenPlayer(asked, vscode.l10n.t('Continue from turn {0} with…', turn));
    if (checkpoint === undefined) return;
    const whatIfState = await this.run(asked, asking =>
      this.inspections.whatIf({ ...asked, given, checkpoint, seed: randomInt(seeds) }, asking),
    );
    const over = whatIfState && !whatIfState.written ? await this.byHand(asked, whatIfState) : whatIfState;
    if (over?.written) await report(asked, origin, over);
  }

  /** Asks what to change in the turn; undefined if the user cancels. */
  private async chosenChange(asked: Asked, turn: EpisodeTurn): Promise<GivenAnswer | undefined> {
    type Item = vscode.QuickPickItem & { change: 'action' | 'answer' | 'thought' | 'nothing' };
    const items: Item[] = [
      { change: 'action', label: vscode.l10n.t('$(play) Another action…'), detail: plain(turn.executed.join(' · ')) },
      {
        change: 'answer',
        label: vscode.l10n.t('$(edit) Another answer…'),
        detail: plain(brief(turn.answer ?? turn.raw)),
      },
      ...(turn.raw.startsWith('<think>')
        ? [
            {
              change: 'thought' as const,
              label: vscode.l10n.t('$(comment) Another thought…'),
              detail: plain(brief(turn.thought ?? '')),
            },
          ]
        : []),
      {
        change: 'nothing',
        label: vscode.l10n.t('$(sync) Nothing: resample this turn'),
        detail: vscode.l10n.t('with another sample, checkpoint, or by hand'),
      },
    ];
    const title = vscode.l10n.t('What if… turn {0} of {1}', asked.turn, shortId(asked.id));
    const item = await vscode.window.showQuickPick(items, {
      title,
      placeHolder: vscode.l10n.t('What do you want to change?'),
    });
    switch (item?.change) {
      case undefined:
        return undefined;
      case 'nothing':
        return {};
      case 'thought': {
        const thought = await vscode.window.showInputBox({
          title,
          value: turn.thought ?? '',
          prompt: vscode.l10n.t('The new thought; the policy writes the answer'),
        });
        return thought === undefined ? undefined : { thought };
      }
      case 'action': {
        const actions = await this.actionsOf(asked);
        if (!actions) return undefined;
        if (actions.length > 0) {
          const items = actions.map(answer => ({ label: plain(answer), answer }));
          const placeHolder = vscode.l10n.t('Which action?');
          const chosen = await vscode.window.showQuickPick(items, { title, placeHolder });
          return chosen && { answer: chosen.answer };
        }
        break; // any text is an action
      }
      case 'answer':
    }
    const answer = await vscode.window.showInputBox({
      title,
      value: turn.answer ?? '',
      prompt: vscode.l10n.t('The new answer, as the model would write it'),
    });
    return answer === undefined ? undefined : { answer };
  }

  private actionsOf(asked: Asked): Promise<string[] | undefined> {
    const { folder, mode, step, id, accepted } = asked;
    return this.run(asked, asking => this.inspections.legalActions({ folder, mode, step, id, accepted }, asking));
  }

  /** Asks who plays: a checkpoint's name, null for the user, or undefined if cancelled. */
  private async chosenPlayer({ folder, step }: Asked, title: string): Promise<string | null | undefined> {
    const all = await this.inspections.checkpoints(folder);
    const original = all.find(each => each.step === step - 1);
    const ordered = original ? [original, ...all.filter(each => each !== original)] : all;
    const words = (name: string) =>
      [
        name === original?.name && vscode.l10n.t('played the original'),
        name === initialWeights && vscode.l10n.t('before training'),
      ].filter(Boolean);
    const items = ordered.map(({ name }) => ({
      label: `$(hubot) ${plain(name)}`,
      description: words(name).join(' · '),
      name,
    }));
    const hand = { label: vscode.l10n.t('$(person) By hand, turn by turn'), description: '', name: null };
    const item = await vscode.window.showQuickPick([...items, hand], { title });
    return item && item.name;
  }

  /** Runs work with cancellable progress; undefined if it was cancelled. */
  private async run<T>(asked: Asked, work: (asking: Asking) => Promise<T>): Promise<T | undefined> {
    const controller = new AbortController();
    const title = vscode.l10n.t('What if… turn {0} of {1}', asked.turn, shortId(asked.id));
    try {
      return await withProgress(
        { location: vscode.ProgressLocation.Notification, title, cancellable: true },
        async (progress, token) => {
          token.onCancellationRequested(() => controller.abort());
          let [turn, text] = [0, ''];
          return work({
            signal: controller.signal,
            onPhase: words => progress.report(words),
            onTokens: update => {
              if (update.turn !== turn) [turn, text] = [update.turn, ''];
              text += update.tokens.map(token => token.text).join('');
              const tail = text.replace(/\s+/g, ' ').slice(-shownText);
              progress.report(vscode.l10n.t('turn {0}: {1}', turn, tail));
            },
          });
        },
      );
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      throw error;
    }
  }

  /** Asks for each turn until the episode is over. Undefined if the user left without keeping it. */
  private async byHand(asked: Asked, first: WhatIfState): Promise<WhatIfState | undefined> {
    const uri = vscode.Uri.from({ scheme, path: `/${basename(asked.folder)}/${first.session}/${shortId(asked.id)}` });
    const show = (whatIfState: WhatIfState) => {
      this.texts.set(uri.path, textOf(whatIfState.episode));
      this.changed.fire(uri);
    };
    show(first);
    const editor = await vscode.window.showTextDocument(uri, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
    });
    const { session } = first;
    const { folder } = asked;
    let whatIfState: WhatIfState | undefined = first;
    try {
      while (whatIfState && !whatIfState.written) {
        const bottom = new vscode.Position(editor.document.lineCount, 0);
        editor.revealRange(new vscode.Range(bottom, bottom));
        const move = await askForMove(whatIfState);
        if (move === 'keep' || move === undefined)
          return (await this.inspections.whatIfEnd(folder, { session, keep: move === 'keep' })) ?? undefined;
        const checkpoint = move === 'policy' ? await this.chosenPlayer(asked, vscode.l10n.t('Continue with…')) : null;
        if (checkpoint === undefined) continue;
        const given = move === 'policy' ? {} : move;
        if (checkpoint === null && move === 'policy') continue; // still by hand
        whatIfState = await this.run(asked, asking =>
          this.inspections.whatIfTurn(folder, { session, given, checkpoint }, asking),
        );
        if (whatIfState) show(whatIfState);
      }
      return whatIfState;
    } finally {
      await closeTab(uri);
      this.texts.delete(uri.path);
    }
  }
}

/**
 * Asks for the user's move: an answer, `policy` to let a checkpoint continue, `keep` to end and keep the episode, or
 * undefined to discard it.
 */
function askForMove({ episode, actions }: WhatIfState): Promise<GivenAnswer | 'policy' | 'keep' | undefined> {
  type Item = vscode.QuickPickItem & { move?: GivenAnswer | 'policy' | 'keep' };
  const pick = vscode.window.createQuickPick<Item>();
  const turn = episode.turns.length + 1;
  pick.title = vscode.l10n.t('Turn {0} · return {1}', turn, formatSigned(episode.reward));
  pick.placeholder =
    actions.length > 0 ? vscode.l10n.t('Choose an action, or type an answer') : vscode.l10n.t('Type an answer');
  pick.ignoreFocusOut = true;
  const rest: Item[] = [
    { label: vscode.l10n.t('$(hubot) Continue with a checkpoint…'), move: 'policy', alwaysShow: true },
    ...(episode.turns.length > 0
      ? [{ label: vscode.l10n.t('$(save) End here and keep'), move: 'keep' as const, alwaysShow: true }]
      : []),
  ];
  const chosen = actions.map((action): Item => ({ label: plain(action), move: { answer: action } }));
  const offer = () => {
    const typed = pick.value.trim();
    // Always present: VS Code returns the accepted item by its index, which must mean the same before and after the
    // list changes.
    const own: Item =
      typed === ''
        ? { label: vscode.l10n.t('$(edit) Type an answer…'), alwaysShow: true }
        : { label: vscode.l10n.t('$(edit) Answer “{0}”', plain(typed)), move: { answer: typed }, alwaysShow: true };
    pick.items = [own, ...chosen, ...rest];
    if (typed === '') pick.activeItems = chosen.slice(0, 1);
  };
  offer();
  return new Promise(resolve => {
    pick.onDidChangeValue(offer);
    pick.onDidAccept(() => {
      const [item] = pick.selectedItems;
      if (!item?.move) return;
      resolve(item.move);
      pick.dispose();
    });
    pick.onDidHide(() => {
      resolve(undefined);
      pick.dispose();
    });
    pick.show();
  });
}

/** Returns the episode so far as text: states, answers, rewards, and the current state. */
function textOf({ turns, final_state, reward }: Episode): string {
  const played = turns.flatMap(({ turn, state, raw, reward: earned }) => [
    vscode.l10n.t('── turn {0} ──', turn),
    state,
    '',
    raw,
    '',
    vscode.l10n.t('reward {0}', formatSigned(earned)),
    '',
  ]);
  const now = vscode.l10n.t('── turn {0} · return {1} ──', turns.length + 1, formatSigned(reward));
  return [...played, now, final_state, ''].join('\n');
}

/** Opens the new trace beside the original and shows both results. */
async function report(asked: Asked, origin: Episode, { written, episode, notes }: WhatIfState): Promise<void> {
  const [before, after] = [traceUri(asked), traceUri(written!)];
  await vscode.window.showTextDocument(before, { preview: false, preserveFocus: true });
  await vscode.window.showTextDocument(after, { viewColumn: vscode.ViewColumn.Beside, preview: false });
  const ends = (each: Episode) => (each.success ? vscode.l10n.t('solved') : vscode.l10n.t('not solved'));
  const turns = ({ turns: { length } }: Episode) =>
    length === 1 ? vscode.l10n.t('1 turn') : vscode.l10n.t('{0} turns', length);
  const message = vscode.l10n.t(
    'What if: return {0}, {1}, in {2}; the original: {3}, {4}, in {5}.',
    ...[formatSigned(episode.reward), ends(episode), turns(episode)],
    ...[formatSigned(origin.reward), ends(origin), turns(origin)],
  );
  const compare = vscode.l10n.t('Compare');
  const choice = await notifyInformation([message, ...notes].join(' '), compare);
  if (choice === compare) await vscode.commands.executeCommand('ragen.compareEpisodes', asked, written);
}

async function closeTab(uri: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap(group => group.tabs);
  const own = tabs.filter(
    ({ input }) => input instanceof vscode.TabInputText && input.uri.toString() === uri.toString(),
  );
  if (own.length > 0) await vscode.window.tabGroups.close(own, true);
}

function locationInEditor(): EpisodeRef | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri && parseTraceUri(uri);
}

function turnOf(argument: unknown): number | undefined {
  const turn = typeof argument === 'object' && argument !== null && 'turn' in argument ? argument.turn : undefined;
  return typeof turn === 'number' ? turn : undefined;
}

async function chosenTurn({ turns }: Episode): Promise<number | undefined> {
  const items = turns.map(({ turn, answer, raw, reward }) => ({
    label: vscode.l10n.t('Turn {0}', turn),
    description: formatSigned(reward),
    detail: plain(brief(answer ?? raw)),
    turn,
  }));
  return (await vscode.window.showQuickPick(items, { placeHolder: vscode.l10n.t('Which turn?') }))?.turn;
}

/** Returns a text on one line, truncated. */
const brief = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 90 ? `${line.slice(0, 89)}…` : line;
};
