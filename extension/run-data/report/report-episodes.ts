// The chosen episodes of a report: states as boards or texts, complete answers, actions and rewards.
import { gameOf, readBoard, type Game } from '../../common/board';
import { counted, formatNumber, formatSigned } from '../../common/numbers';
import { callLine } from '../tool-call';
import { actionOutcomes } from '../action-outcomes';
import { successLabel, type Episode, type EpisodeTurn } from '../episode';
import type { ReportEpisode, ReportState, ReportTurn } from './report-blocks';
import type { ChosenEpisode } from './reported-run';

/** Longest text of a state or an answer, in characters; the rest is cut off. */
export const longestText = 6000;
/** Most turns of an episode; later turns are left out, except the last. */
export const mostTurns = 40;

const titles: Record<ChosenEpisode['kind'], string> = {
  best: 'Best episode',
  worst: 'Worst episode',
  changed: 'Most changed episode',
  chosen: 'Chosen episode',
};

/** Returns an episode of a report. `id` must be unique in the report. */
export function reportEpisode({ kind, change, episode }: ChosenEpisode, id: string): ReportEpisode {
  const { turns, final_state, final_pictures, error, context_reason } = episode;
  const game = gameOf({ ...episode, states: [...turns.map(({ state }) => state), final_state] });
  const stateAfter = (turn: number): string | null => turns[turn - 1]?.state ?? null;
  const shown = turns.length <= mostTurns ? turns : [...turns.slice(0, mostTurns - 1), turns[turns.length - 1]];
  return {
    kind: 'episode',
    id,
    title: `${titles[kind]}: ${episode.id}`,
    summary: summaryOf(episode, change),
    turns: shown.map((turn): ReportTurn => ({
      title: `Turn ${turn.turn} of ${turns.length}${turn.role === undefined ? '' : `, ${turn.role}`}`,
      state: { ...stateOf(turn.state, stateAfter(turn.turn - 1), game), pictures: picturesOf(turn.pictures) },
      answer: cut(turn.raw),
      outcome: outcomeOf(turn, turn === turns[turns.length - 1] && episode.terminated),
    })),
    end:
      final_state === '' && !final_pictures?.length
        ? null
        : { ...stateOf(final_state, stateAfter(turns.length), game), pictures: picturesOf(final_pictures) },
    problem: error ?? context_reason ?? null,
  };
}

function summaryOf({ tag, seed, step, mode, score, success, turns }: Episode, change: ChosenEpisode['change']): string {
  const changed = change
    ? [
        `mean score of the prompt ${formatNumber(change.from)} at step ${change.firstStep}, ${formatNumber(change.to)} here`,
      ]
    : [];
  return [
    `${mode === 'val' ? 'validation' : 'training'} at step ${step}`,
    `environment ${tag}, seed ${seed}`,
    successLabel(success),
    `score ${formatNumber(score)}`,
    counted(turns.length, 'turn'),
    ...changed,
  ].join(' · ');
}

function stateOf(text: string, previous: string | null, game: Game | null): Omit<ReportState, 'pictures'> {
  const board = readBoard(text, game);
  if (!board) return { text: cut(text), board: null };
  return { text: cut(text), board: { board, previous: previous === null ? null : readBoard(previous, game) } };
}

function outcomeOf(turn: EpisodeTurn, isLast: boolean): string {
  const actions =
    turn.calls?.map(callLine) ??
    actionOutcomes(turn, isLast).map(({ name, reason }) =>
      reason === null ? name : `${name} (not executed: ${reason})`,
    );
  const penalty = turn.penalty === 0 ? [] : [`penalty ${formatSigned(turn.penalty)}`];
  const components = turn.component_reward === undefined ? [] : [`components ${formatSigned(turn.component_reward)}`];
  return [actions.join(', ') || 'no action', `reward ${formatSigned(turn.reward)}`, ...penalty, ...components].join(
    ' · ',
  );
}

/** Returns the pictures that are data URLs; the name of a file that could not be read counts as missing. */
const picturesOf = (pictures: EpisodeTurn['pictures'] = []): (string | null)[] =>
  pictures.map(url => (url !== null && /^data:image\/(png|jpeg);base64,[\w+/]+=*$/.test(url) ? url : null));

const cut = (text: string): string =>
  text.length <= longestText
    ? text
    : `${text.slice(0, longestText)}\n[${counted(text.length - longestText, 'further character')} left out]`;
