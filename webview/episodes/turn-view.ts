// One turn: the state shown to the model, its reasoning and actions, and the reward. Everything from the model and the
// environment is inserted as text.
import type { Episode, EpisodeTurn } from '../../extension/run-data/episode';
import { h, type Child } from '../shared/dom';
import { counted, formatSigned } from '../shared/format';
import { hue } from '../shared/palette';
import type { Theme } from '../shared/theme';
import { actionOutcomes } from '../../extension/run-data/action-outcomes';
import { gameOf, readBoard, type Game } from '../../extension/common/board';
import { boardPicture } from './board-picture';
import { markedLines } from './changes';
import { sampledTokens, tokenStrip, tokenSummary } from './tokens';

export interface TurnOptions {
  theme: Theme;
  /** Shows the model's complete text and the state's text unchanged. */
  raw: boolean;
  /** Shows the sampled ids, shaded by log-prob. */
  tokens: boolean;
}

/**
 * The section of a turn. `running` is the return up to and including this turn (without penalties); `largest` scales
 * the reward's bar.
 */
export function turnView(
  episode: Episode,
  index: number,
  running: number,
  largest: number,
  options: TurnOptions,
): HTMLElement {
  const turn = episode.turns[index];
  const last = index === episode.turns.length - 1;
  const sampled = sampledTokens(episode, turn);
  const facts = [`${counted(turn.actions_left, 'action')} left`, tokenSummary(sampled)].join(' · ');
  const cut =
    turn.finish === 'length' &&
    h('span', { class: 'warning', title: 'Generation reached the token limit' }, 'truncated at the length limit');
  return h(
    'section',
    { class: 'turn', 'data-turn': turn.turn, 'aria-label': `Turn ${turn.turn}` },
    h('header', { class: 'turn-head' }, h('h3', {}, `Turn ${turn.turn}`), h('span', { class: 'muted' }, facts), cut),
    h(
      'div',
      { class: 'turn-body' },
      h(
        'div',
        { class: 'turn-state' },
        stateView(turn.state, episode.turns[index - 1]?.state ?? null, episode, options),
      ),
      h(
        'div',
        { class: 'turn-answer' },
        options.raw
          ? h('pre', { class: 'raw' }, turn.raw)
          : h('div', { class: 'answer' }, thoughtView(turn), actionsView(turn, last && episode.terminated)),
        options.tokens && tokenStrip(sampled, options.theme),
        rewardView(turn, running, largest, options.theme),
      ),
    ),
  );
}

/** Cache of the games of the shown episodes, each detected from all states of the episode. */
const games = new WeakMap<Episode, Game | null>();

function gameOfEpisode(episode: Episode): Game | null {
  const known = games.get(episode);
  if (known !== undefined) return known;
  const states = [...episode.turns.map(({ state }) => state), episode.final_state];
  const game = gameOf({ ...episode, states });
  games.set(episode, game);
  return game;
}

/** A state: as a board if it is one, else as text; changes since `previous` are marked. */
export function stateView(
  state: string,
  previous: string | null,
  episode: Episode,
  { theme, raw }: TurnOptions,
): HTMLElement {
  const game = raw ? null : gameOfEpisode(episode);
  const board = readBoard(state, game);
  if (!board) return textState(state, previous);
  const before = previous === null ? null : readBoard(previous, game);
  return h(
    'figure',
    { class: 'state-board', title: state },
    board.before !== '' && textState(board.before, before?.before ?? null),
    boardPicture(board, before, theme) as Child,
    board.after !== '' && textState(board.after, before?.after ?? null),
  );
}

function textState(state: string, previous: string | null): HTMLElement {
  const lines = markedLines(state, previous).flatMap(({ text, changed }, i) => [
    i > 0 ? '\n' : '',
    changed ? h('mark', { title: 'changed since the last turn' }, text) : text,
  ]);
  return h('pre', { class: 'state-text' }, ...lines);
}

function thoughtView({ thought, raw }: EpisodeTurn): HTMLElement {
  if (thought !== null)
    return h('p', { class: 'thought' }, thought === '' ? h('span', { class: 'muted' }, 'no thought') : thought);
  return h(
    'div',
    { class: 'unparsed' },
    h('p', { class: 'warning' }, 'The answer could not be parsed; no action was executed.'),
    h('pre', { class: 'raw' }, raw),
  );
}

export function actionsView(turn: EpisodeTurn, endsEpisode: boolean): HTMLElement | null {
  const outcomes = actionOutcomes(turn, endsEpisode);
  if (outcomes.length === 0 && turn.answer === null) return null;
  if (outcomes.length === 0)
    return h(
      'p',
      { class: 'muted' },
      turn.answer === '' ? 'empty answer' : `answer “${turn.answer}” contains no valid action`,
    );
  const chips = outcomes.map(({ name, reason }) =>
    h(
      'li',
      { class: reason === null ? 'chip' : 'chip refused' },
      reason === null ? name : h('s', {}, name),
      reason !== null && h('span', { class: 'reason' }, reason),
    ),
  );
  return h('ul', { class: 'chips', 'aria-label': 'Actions' }, ...chips);
}

/** `reward −0.10 · penalty −0.1 · return 10.8`, with a bar to the left or right of zero. */
export function rewardView(
  { reward, penalty }: EpisodeTurn,
  running: number,
  largest: number,
  theme: Theme,
): HTMLElement {
  const width = largest > 0 ? Math.min(50, (Math.abs(reward) / largest) * 50) : 0;
  const side = reward < 0 ? 'right:50%' : 'left:50%';
  const colour = theme.palette[reward < 0 ? hue.orange : hue.blue];
  const bar = h(
    'span',
    { class: 'bar', 'aria-hidden': 'true' },
    reward !== 0 && h('span', { style: `${side};width:max(2px, ${width.toFixed(1)}%);background:${colour}` }),
  );
  return h(
    'div',
    { class: 'reward' },
    bar,
    h('span', {}, 'reward ', h('strong', {}, formatSigned(reward))),
    penalty !== 0 &&
      h(
        'span',
        { class: 'warning', title: 'Format penalty, not shown to the model' },
        `penalty ${formatSigned(penalty)}`,
      ),
    h('span', { class: 'muted' }, `return ${formatSigned(running)}`),
  );
}
