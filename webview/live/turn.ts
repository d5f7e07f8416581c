// One turn of the watched episode: its state, the tokens as they arrive, split at the end of the reasoning, and the
// outcome of the answer. Existing elements stay in place while content is added. All text of model and environment is
// inserted as text.
import { gameOf, readBoard } from '../../extension/common/board';
import type { WatchedEpisode, WatchedTurn } from '../../extension/protocol/trainer-link';
import { boardPicture } from '../episodes/board-picture';
import { h, replaceChildren, setText } from '../shared/dom';
import { counted, formatNumber, formatSigned } from '../shared/format';
import { hue, withAlpha } from '../shared/palette';
import type { Theme } from '../shared/theme';

/** Tokens with this log-prob or less are shaded fully; opacity of the full shade. */
const surprise = -4;
const fullest = 0.35;

const thoughtEnd = '</think>';
/** Markup meant for the parser, not for readers. */
const tag = /^\s*<\/?(?:think|answer)>\s*$|^<\|[\w]+\|>$/;

export class TurnView {
  readonly element: HTMLElement;
  private readonly count = h('span', { class: 'muted' });
  private readonly thought = h('p', { class: 'stream thought' });
  private readonly answer = h('p', { class: 'stream answer' });
  private readonly outcome = h('div', { class: 'outcome' });
  private readonly caret = h('span', { class: 'caret', 'aria-hidden': 'true' });
  private drawn = 0;
  private text = '';

  constructor(
    episode: WatchedEpisode,
    turn: WatchedTurn,
    private readonly theme: Theme,
  ) {
    const left = `${counted(turn.actions_left, 'action')} left`;
    const thinks = turn.prefix === '<think>';
    const block = (label: string, content: HTMLElement) =>
      h('div', { class: 'block' }, h('h4', { class: 'muted' }, label), content);
    (thinks ? this.thought : this.answer).append(h('span', { class: 'tag' }, turn.prefix));
    this.element = h(
      'section',
      { class: 'live-turn', 'aria-label': `Turn ${turn.turn}` },
      h('header', {}, h('h3', {}, `Turn ${turn.turn}`), h('span', { class: 'muted' }, left), this.count),
      h(
        'div',
        { class: 'live-body' },
        stateView(episode, turn.turn - 1, theme),
        h(
          'div',
          { class: 'said' },
          thinks && block('Thought', this.thought),
          block('Answer', this.answer),
          this.outcome,
        ),
      ),
    );
  }

  /**
   * Adds new tokens, and the outcome when the turn is over. `running` is the return including this turn (without
   * penalties).
   */
  update({ tokens, outcome, prefix }: WatchedTurn, running: number): void {
    if (this.text === '') this.text = prefix;
    for (; this.drawn < tokens.length; this.drawn++) this.add(tokens[this.drawn]);
    setText(this.count, counted(tokens.length, 'token'));
    if (outcome) {
      this.caret.remove();
      replaceChildren(this.outcome, ...outcomeView(outcome, running));
    } else this.slot().append(this.caret);
  }

  private add({ text, logprob }: WatchedTurn['tokens'][number]): void {
    const share = Math.min(1, Math.max(0, logprob / surprise));
    const shade = withAlpha(this.theme.palette[hue.orange], Number((share * fullest).toFixed(3)));
    const style = share > 0.02 ? `background:${shade}` : null;
    const title = `p ${formatNumber(Math.exp(logprob))} · log-prob ${formatNumber(logprob)}`;
    const token = h('span', { class: tag.test(text) ? 'token tag' : 'token', style, title }, text);
    const slot = this.slot();
    if (this.caret.parentElement === slot) slot.insertBefore(token, this.caret);
    else slot.append(token);
    this.text += text;
  }

  /** The element for the next token. */
  private slot(): HTMLElement {
    const thinking = this.text.startsWith('<think>') && !this.text.includes(thoughtEnd);
    return thinking ? this.thought : this.answer;
  }
}

/**
 * The state before turn `index`, or the final state for an index after the last turn; drawn as a board if it is one.
 */
export function stateView(episode: WatchedEpisode, index: number, theme: Theme): HTMLElement {
  const stateAt = (i: number): string => episode.turns[i]?.state ?? episode.state;
  const game = gameOf({ ...episode, states: [...episode.turns.map(({ state }) => state), episode.state] });
  const board = readBoard(stateAt(index), game);
  if (!board) return h('pre', { class: 'live-state' }, stateAt(index));
  const before = index > 0 ? readBoard(stateAt(index - 1), game) : null;
  return h(
    'figure',
    { class: 'live-state', title: stateAt(index) },
    board.before !== '' && h('pre', {}, board.before),
    boardPicture(board, before, theme),
    board.after !== '' && h('pre', {}, board.after),
  );
}

function outcomeView(
  { answer, executed, reward, penalty }: NonNullable<WatchedTurn['outcome']>,
  running: number,
): (HTMLElement | false)[] {
  const parsed = answer !== null;
  const chips = executed.map(action => h('li', { class: 'chip' }, action));
  return [
    !parsed && h('p', { class: 'warning' }, 'The answer could not be parsed; no action was executed.'),
    parsed && executed.length === 0 && h('p', { class: 'warning' }, 'The answer contains no valid action.'),
    executed.length > 0 && h('ul', { class: 'chips', 'aria-label': 'Actions' }, ...chips),
    h(
      'p',
      { class: 'earned' },
      h('span', {}, 'reward ', h('strong', {}, formatSigned(reward))),
      penalty !== 0 && h('span', { class: 'warning' }, `penalty ${formatSigned(penalty)}`),
      h('span', { class: 'muted' }, `return ${formatSigned(running)}`),
    ),
  ];
}
