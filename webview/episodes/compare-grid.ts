// Episodes side by side: one column per episode and one row per turn. Differences from the reference episode are
// marked: words of the reasoning, actions, and the turn from which the actions diverge.
import { maximum } from '../../extension/common/lists';
import type { Episode } from '../../extension/run-data/episode';
import { h, type Child } from '../shared/dom';
import { formatSigned } from '../shared/format';
import { markChanges } from './changes';
import { mark } from './list-rows';
import { actionsView, rewardView, stateView, type TurnOptions } from './turn-view';

export interface GridColumn {
  episode: Episode;
  /** Title above the column. */
  title: string;
  /** Whether this is the episode from which keys navigate; its column is framed. */
  current: boolean;
}

export interface GridOptions extends TurnOptions {
  /** Index of the column with which the others are compared. */
  reference: number;
  choose(column: number): void;
}

export function compareGrid(columns: readonly GridColumn[], options: GridOptions): HTMLElement {
  const turns = maximum(
    columns.map(({ episode }) => episode.turns.length),
    0,
  );
  const largest = maximum(
    columns.flatMap(({ episode }) => episode.turns.map(turn => Math.abs(turn.reward))),
    0,
  );
  const reference = columns[options.reference].episode;
  const parted = columns.map(({ episode }) => partingTurn(episode, reference));
  const cells: Child[] = [h('div', { class: 'grid-corner' }), ...columns.map((column, i) => head(column, i, options))];
  for (let at = 0; at <= turns; at++) {
    const states = columns.map(({ episode }) => (at < turns ? episode.turns[at]?.state : episode.final_state));
    const shared = at < turns && columns.length > 1 && states.every(state => state === states[0]);
    cells.push(
      h(
        'div',
        { class: 'grid-turn muted', title: at < turns ? `Turn ${at + 1}` : 'Final state' },
        at < turns ? String(at + 1) : 'end',
      ),
    );
    if (shared)
      cells.push(
        h(
          'div',
          { class: 'grid-shared', 'data-turn': at + 1 },
          h('span', { class: 'muted' }, 'same state in all episodes'),
          stateView(states[0], reference.turns[at - 1]?.state ?? null, reference, options),
        ),
        h('div', { class: 'grid-turn' }),
      );
    columns.forEach(({ episode, current }, i) => {
      const parts = parted[i] === at && i !== options.reference;
      const names = ['grid-cell', current && 'current', parts && 'parts'].filter(Boolean).join(' ');
      const before = episode.turns[at - 1]?.state ?? null;
      const content: Child[] =
        at < episode.turns.length ? turnCell(episode, at, reference, shared, largest, options) : [];
      if (at === turns)
        content.push(stateView(episode.final_state, episode.turns.at(-1)?.state ?? null, episode, options));
      else if (at === episode.turns.length)
        content.push(h('span', { class: 'muted' }, 'over'), stateView(episode.final_state, before, episode, options));
      const note = parts && h('span', { class: 'parting' }, 'actions diverge here');
      cells.push(
        h(
          'div',
          { class: names, 'data-turn': at + 1, 'aria-label': `${columns[i].title}, turn ${at + 1}` },
          note,
          ...content,
        ),
      );
    });
  }
  return h('div', { class: 'grid' }, ...cells);
}

function head({ episode, title, current }: GridColumn, i: number, { reference, choose }: GridOptions): HTMLElement {
  const outcome = episode.success ? 'success' : 'no success';
  const button = h(
    'button',
    {
      class: current ? 'plain grid-head current' : 'plain grid-head',
      type: 'button',
      title: `${episode.id}: ${outcome}`,
      'aria-current': current ? 'true' : null,
      'aria-label': `${title}, ${outcome}, score ${formatSigned(episode.score)}`,
    },
    mark(episode.success),
    h('span', { class: 'grid-title' }, title),
    h(
      'span',
      { title: `Return ${formatSigned(episode.reward)}, penalties ${formatSigned(episode.penalty)}` },
      `score ${formatSigned(episode.score)}`,
    ),
    episode.advantage !== null &&
      h(
        'span',
        { class: 'muted', title: 'Mean advantage over the trained tokens' },
        `adv. ${formatSigned(episode.advantage)}`,
      ),
    i === reference && h('span', { class: 'muted' }, 'compared with'),
  );
  button.addEventListener('click', () => choose(i));
  return button;
}

/** The content of a turn's cell; the state is omitted if it is the same in all episodes. */
function turnCell(
  episode: Episode,
  at: number,
  reference: Episode,
  shared: boolean,
  largest: number,
  options: GridOptions,
): Child[] {
  const turn = episode.turns[at];
  const other = episode === reference ? null : (reference.turns[at] ?? null);
  const running = episode.turns.slice(0, at + 1).reduce((total, { reward }) => total + reward, 0);
  const text = turn.thought ?? turn.raw;
  const against = other === null ? null : (other.thought ?? other.raw);
  const markedParts = markChanges(text, against).map(({ text, changed }) =>
    changed ? h('mark', { title: 'not in the episode it is compared with' }, text) : text,
  );
  const different = other !== null && !sameActions(turn.executed, other.executed);
  return [
    !shared && stateView(turn.state, episode.turns[at - 1]?.state ?? null, episode, options),
    options.raw
      ? h('pre', { class: 'raw' }, turn.raw)
      : h('p', { class: turn.thought === null ? 'thought unparsed-text' : 'thought' }, ...markedParts),
    turn.thought === null && h('p', { class: 'warning' }, 'did not parse'),
    h(
      'div',
      { class: different ? 'actions different' : 'actions' },
      actionsView(turn, at === episode.turns.length - 1 && episode.terminated),
    ),
    rewardView(turn, running, largest, options.theme),
  ];
}

/** The first turn whose actions differ from the reference's; -1 if there is none. */
export function partingTurn({ turns }: Pick<Episode, 'turns'>, reference: Pick<Episode, 'turns'>): number {
  return turns.findIndex((turn, i) => !sameActions(turn.executed, reference.turns[i]?.executed ?? []));
}

const sameActions = (a: readonly string[], b: readonly string[]): boolean => a.join('\n') === b.join('\n');
