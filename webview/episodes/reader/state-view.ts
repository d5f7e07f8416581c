// A state of the environment, with the changes since the previous state marked. It is drawn as a board if the game is
// recognised, else as text. Pictures of the state are below it, in place of their marks:
// `<image>`, or the words `[image]` in a run of another trainer.
import { html, nothing, type TemplateResult } from 'lit';
import { gameOf, readBoard, type Game } from '../../../extension/common/board';
import { plainMark } from '../../../extension/common/picture-mark';
import type { Episode } from '../../../extension/run-data/episode';
import { boardPicture } from '../../components/board-picture';
import { foreignMark, statePictures, withoutShown } from '../../components/state-pictures';
import { textState } from './text-state';
import type { TurnHeat } from '../../../extension/protocol/heat-maps';
import { heatPictures } from '../heat/heat-view';
import type { TurnOptions } from './turn-options';

/** Renders a state. `pictures` are data URLs, null for a missing picture; `heat` is drawn over them. */
export function stateView(
  state: string,
  previous: string | null,
  episode: Episode,
  options: TurnOptions,
  pictures: readonly (string | null)[] = [],
  heat?: TurnHeat,
): TemplateResult {
  if (pictures.every(picture => picture === null)) return describedState(state, previous, episode, options);
  const foreign = episode.turns[0]?.actions_left === null;
  const text = withoutShown(state, pictures, foreign ? foreignMark : plainMark).trim();
  const description = text === '' ? nothing : describedState(text, previous, episode, options);
  return html`${description}${heat ? heatPictures(pictures, heat, options) : statePictures(pictures)}`;
}

function describedState(
  state: string,
  previous: string | null,
  episode: Episode,
  { theme, raw }: TurnOptions,
): TemplateResult {
  const game = raw ? null : gameOfEpisode(episode);
  const board = readBoard(state, game);
  if (!board) return textState(state, previous);
  const before = previous === null ? null : readBoard(previous, game);
  return html`<figure class="state-board" title=${state}
    >${board.before === '' ? nothing : textState(board.before, before?.before ?? null)}${boardPicture(
      board,
      before,
      theme,
    )}${board.after === '' ? nothing : textState(board.after, before?.after ?? null)}</figure
  >`;
}

/**
 * Recognised game of each episode; null if no game was recognised. It is cached, because the detection reads all states
 * of the episode.
 */
const games = new WeakMap<Episode, Game | null>();

/** Returns the game that the states of an episode show; null if no game is recognised. */
export function gameOfEpisode(episode: Episode): Game | null {
  const known = games.get(episode);
  if (known !== undefined) return known;
  const states = [...episode.turns.map(({ state }) => state), episode.final_state];
  const game = gameOf({ ...episode, states });
  games.set(episode, game);
  return game;
}
