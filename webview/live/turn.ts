// A turn of the watched episode: its state, its tokens, and the outcome of the answer. Tokens are displayed as they
// arrive and are split at the end of the reasoning. The texts of the model and of the environment are inserted as plain
// text, never as markup.
import { html, nothing, type TemplateResult } from 'lit';
import { gameOf, readBoard } from '../../extension/common/board';
import type { WatchedEpisode, WatchedTurn } from '../../extension/protocol/trainer-link';
import { returnName } from '../../extension/run-data/running-returns';
import { boardPicture } from '../components/board-picture';
import { statePictures, withoutShown } from '../components/state-pictures';
import { componentSum, componentValues } from '../components/reward-components';
import { counted, formatNumber, formatSigned } from '../shared/format';
import { hue, withAlpha } from '../shared/run-colours';
import type { Theme } from '../shared/theme';

/** Tokens with this log-prob or a lower log-prob have the full shade. `fullest` is the opacity of this shade. */
const surprise = -4;
const fullest = 0.35;

const thoughtStart = '<think>';
const thoughtEnd = '</think>';
/** Matches the text of tokens that are only markup for the answer parser. Such tokens are drawn in a muted colour. */
const tag = /^\s*<\/?(?:think|answer)>\s*$|^<\|[\w]+\|>$/;

/** Renders a turn. `running` is the return of its role up to and including this turn, without penalties. */
export function turnView(episode: WatchedEpisode, turn: WatchedTurn, running: number, theme: Theme): TemplateResult {
  const { tokens, outcome, prefix } = turn;
  const thinks = prefix === thoughtStart;
  const { length, ended } = thinks ? splitThought(tokens) : { length: 0, ended: true };
  const start = html`<span class="tag">${prefix}</span>`;
  const caret = outcome ? nothing : html`<span class="caret" aria-hidden="true"></span>`;
  const said = (from: number, to: number): TemplateResult[] =>
    tokens.slice(from, to).map(token => tokenView(token, theme));
  const thought = html`${start}${said(0, length)}${ended ? nothing : caret}`;
  const answer = html`${thinks ? nothing : start}${said(length, tokens.length)}${ended ? caret : nothing}`;
  return html`<section class="live-turn" aria-label="Turn ${turn.turn}">
    <header>
      <h3>Turn ${turn.turn}${turn.role === undefined ? '' : `, ${turn.role}`}</h3>
      <span class="muted">${counted(turn.actions_left, 'action')} left</span>
      <span class="muted">${counted(tokens.length, 'token')}</span>
    </header>
    <div class="live-body">
      ${environmentState(episode, turn.turn - 1, theme)}
      <div class="said">
        ${thinks ? block('Thought', 'thought', thought) : nothing} ${block('Answer', 'answer', answer)}
        <div class="outcome">${outcome ? outcomeView(outcome, turn, running) : nothing}</div>
      </div>
    </div>
  </section>`;
}

const block = (label: string, name: string, content: TemplateResult): TemplateResult =>
  html`<div class="block">
    <h4 class="muted">${label}</h4>
    <p class="stream ${name}">${content}</p>
  </div>`;

/**
 * Returns the number of tokens that belong to the thought, and whether the thought has ended. The end tag may be spread
 * over several tokens.
 */
export function splitThought(tokens: WatchedTurn['tokens']): { length: number; ended: boolean } {
  let tail = '';
  for (const [i, { text }] of tokens.entries()) {
    tail += text;
    if (tail.includes(thoughtEnd)) return { length: i + 1, ended: true };
    tail = tail.slice(1 - thoughtEnd.length);
  }
  return { length: tokens.length, ended: false };
}

function tokenView({ text, logprob }: WatchedTurn['tokens'][number], theme: Theme): TemplateResult {
  const share = Math.min(1, Math.max(0, logprob / surprise));
  const shade = withAlpha(theme.palette[hue.orange], Number((share * fullest).toFixed(3)));
  const style = share > 0.02 ? `background:${shade}` : nothing;
  const title = `p ${formatNumber(Math.exp(logprob))} · log-prob ${formatNumber(logprob)}`;
  const name = tag.test(text) ? 'token tag' : 'token';
  return html`<span class=${name} style=${style} title=${title}>${text}</span>`;
}

/**
 * Renders the state before turn `index`, or the final state if there is no turn `index`. The state is drawn as a board
 * if the game is recognised.
 */
export function environmentState(episode: WatchedEpisode, index: number, theme: Theme): TemplateResult {
  const stateAt = (i: number): string => episode.turns[i]?.state ?? episode.state;
  const game = gameOf({ ...episode, states: [...episode.turns.map(({ state }) => state), episode.state] });
  const pictures = (index < episode.turns.length ? episode.turns[index].pictures : episode.pictures) ?? [];
  const board = readBoard(stateAt(index), game);
  if (!board && pictures.some(picture => picture !== null)) {
    const description = withoutShown(stateAt(index), pictures).trim();
    return html`<div class="live-state"
      >${description === '' ? nothing : html`<pre>${description}</pre>`}${statePictures(pictures)}</div
    >`;
  }
  if (!board) return html`<pre class="live-state">${stateAt(index)}</pre>`;
  const before = index > 0 ? readBoard(stateAt(index - 1), game) : null;
  const text = (part: string): TemplateResult | typeof nothing => (part === '' ? nothing : html`<pre>${part}</pre>`);
  return html`<figure class="live-state" title=${stateAt(index)}>
    ${text(board.before)} ${boardPicture(board, before, theme)} ${text(board.after)}
  </figure>`;
}

function outcomeView(
  outcome: NonNullable<WatchedTurn['outcome']>,
  turn: Pick<WatchedTurn, 'role'>,
  running: number,
): TemplateResult {
  const { answer, executed, reward, penalty } = outcome;
  const problem =
    answer === null
      ? 'The answer could not be parsed; no action was executed.'
      : executed.length === 0 && 'The answer contains no valid action.';
  const chips = executed.map(action => html`<li class="chip">${action}</li>`);
  return html`${problem ? html`<p class="warning">${problem}</p>` : nothing}
    ${
      chips.length > 0
        ? html`<ul class="chips" aria-label="Actions">
            ${chips}
          </ul>`
        : nothing
    }
    <p class="earned">
      <span>reward <strong>${formatSigned(reward)}</strong></span>
      ${penalty === 0 ? nothing : html`<span class="warning">penalty ${formatSigned(penalty)}</span>`}
      ${componentSum(outcome)}
      <span class="muted">${returnName(turn)} ${formatSigned(running)}</span>
    </p>
    ${componentValues(outcome)}`;
}
