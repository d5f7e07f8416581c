// Dialogs of the what-if command. The user chooses a turn, the change in this turn, and the player of the remaining
// turns. A user who plays also enters the answer of each turn.
import * as vscode from 'vscode';
import { formatSigned } from '../../../common/numbers';
import {
  initialWeights,
  type CheckpointChoice,
  type EpisodeRef,
  type GivenAnswer,
  type WhatIfState,
} from '../../../protocol/inspection';
import type { Episode, EpisodeTurn } from '../../../run-data/episode';
import { plain } from '../../plain-text';
import { createQuickPick, showInputBox, showQuickPick } from '../../questions';
import { shortId } from '../trace-text';

/** Lets the user choose a turn of an episode. Returns undefined if the user cancels. */
export async function askForTurn({ turns }: Episode): Promise<number | undefined> {
  const items = turns.map(({ turn, answer, raw, reward }) => ({
    label: vscode.l10n.t('Turn {0}', turn),
    description: formatSigned(reward),
    detail: plain(brief(answer ?? raw)),
    turn,
  }));
  return (await showQuickPick(items, { placeHolder: vscode.l10n.t('Which turn?') }))?.turn;
}

/**
 * Lets the user choose what to change in the turn. Returns undefined if the user cancels. `actionsOf` returns the legal
 * actions.
 */
export async function askForChange(
  target: Pick<EpisodeRef, 'id'> & { turn: number },
  turn: EpisodeTurn,
  actionsOf: () => Promise<string[] | undefined>,
): Promise<GivenAnswer | undefined> {
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
      label: vscode.l10n.t('$(sync) Nothing; sample this turn again'),
      detail: vscode.l10n.t('play the turn again with another sample, with another checkpoint, or by hand'),
    },
  ];
  const title = vscode.l10n.t('What if… turn {0} of {1}', target.turn, shortId(target.id));
  const item = await showQuickPick(items, {
    title,
    placeHolder: vscode.l10n.t('What do you want to change?'),
  });
  switch (item?.change) {
    case undefined:
      return undefined;
    case 'nothing':
      return {};
    case 'thought': {
      const thought = await showInputBox({
        title,
        value: turn.thought ?? '',
        prompt: vscode.l10n.t('Write the new thought. The policy writes the answer.'),
      });
      return thought === undefined ? undefined : { thought };
    }
    case 'action': {
      const actions = await actionsOf();
      if (!actions) return undefined;
      if (actions.length > 0) {
        const items = actions.map(answer => ({ label: plain(answer), answer }));
        const placeHolder = vscode.l10n.t('Which action?');
        const chosen = await showQuickPick(items, { title, placeHolder });
        return chosen && { answer: chosen.answer };
      }
      break; // the environment does not list its actions, so the user types one
    }
    case 'answer':
  }
  const answer = await showInputBox({
    title,
    value: turn.answer ?? '',
    prompt: vscode.l10n.t('The new answer, as the model would write it'),
  });
  return answer === undefined ? undefined : { answer };
}

/**
 * Lets the user choose who plays the remaining turns. Returns the name of a checkpoint, null for the user, or undefined
 * if the user cancels. `step` is the step of the original episode.
 */
export async function askForPlayer(
  all: readonly CheckpointChoice[],
  step: number,
  title: string,
): Promise<string | null | undefined> {
  const original = all.find(each => each.step === step - 1);
  const ordered = original ? [original, ...all.filter(each => each !== original)] : all;
  const remarksOn = (name: string) =>
    [
      name === original?.name && vscode.l10n.t('played the original episode'),
      name === initialWeights && vscode.l10n.t('before training'),
    ].filter(Boolean);
  const items = ordered.map(({ name }) => ({
    label: `$(hubot) ${plain(name)}`,
    description: remarksOn(name).join(' · '),
    name,
  }));
  const hand = { label: vscode.l10n.t('$(person) By hand, turn by turn'), description: '', name: null };
  const item = await showQuickPick([...items, hand], { title });
  return item && item.name;
}

/**
 * Lets the user choose the next move. Returns an answer, `policy` if a checkpoint should continue, `keep` to end and
 * save the episode, or undefined to discard the episode.
 */
export function askForMove({ episode, actions }: WhatIfState): Promise<GivenAnswer | 'policy' | 'keep' | undefined> {
  type Item = vscode.QuickPickItem & { move?: GivenAnswer | 'policy' | 'keep' };
  const pick = createQuickPick<Item>();
  const turn = episode.turns.length + 1;
  pick.title = vscode.l10n.t('Turn {0} · return {1}', turn, formatSigned(episode.reward));
  pick.placeholder =
    actions.length > 0 ? vscode.l10n.t('Choose an action, or type an answer') : vscode.l10n.t('Type an answer');
  const rest: Item[] = [
    { label: vscode.l10n.t('$(hubot) Continue with a checkpoint…'), move: 'policy', alwaysShow: true },
    ...(episode.turns.length > 0
      ? [{ label: vscode.l10n.t('$(save) End here and keep the what-if'), move: 'keep' as const, alwaysShow: true }]
      : []),
  ];
  const chosen = actions.map((action): Item => ({ label: plain(action), move: { answer: action } }));
  const offer = () => {
    const typed = pick.value.trim();
    // This item is always in the list. VS Code identifies the accepted item by its index, so the indices of the other
    // items must not change while the user types.
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

/** Returns a text on one line, truncated. */
const brief = (text: string): string => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 90 ? `${line.slice(0, 89)}…` : line;
};
