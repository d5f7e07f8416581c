// A grid of episodes with one column per episode and one row per turn. Differences from the reference episode are
// marked: words of the reasoning, actions, and the first turn whose actions differ.
import { html, nothing, type TemplateResult } from 'lit';
import { maximum } from '../../../extension/common/lists';
import { successLabel, type Episode } from '../../../extension/run-data/episode';
import type { TurnHeat } from '../../../extension/protocol/heat-maps';
import { runningReturns } from '../../../extension/run-data/running-returns';
import { rolesOutcome, scoreText } from '../../components/role-returns';
import { formatSigned } from '../../shared/format';
import { scoreParts } from './episode-head';
import { markChanges } from './text-diff';
import { markedText } from './marked-text';
import { stateView } from './state-view';
import { successMark } from '../list/success-mark';
import { actionsView, rewardView } from './turn-view';
import { type TurnOptions } from './turn-options';

export interface GridColumn {
  episode: Episode;
  /** Title above the column. */
  title: string;
  /** Whether this is the open episode. Its column is framed, and the keys j and k navigate from it. */
  current: boolean;
}

/** Data shared by all cells of a grid. */
interface Grid {
  columns: readonly GridColumn[];
  /** The episode with which the other episodes are compared. */
  reference: Episode;
  /** Number of turns of the longest episode; the row after the last turn shows the final states. */
  turns: number;
  /** Largest absolute reward of any turn; the reward bars are scaled to it. */
  largest: number;
  options: TurnOptions;
}

/**
 * Renders the grid. `reference` is the index of the column with which the other columns are compared. `choose` opens an
 * episode by its id.
 */
export function compareGrid(
  columns: readonly GridColumn[],
  reference: number,
  options: TurnOptions,
  choose: (id: string) => void,
): TemplateResult {
  const episodes = columns.map(({ episode }) => episode);
  const lengths = episodes.map(episode => episode.turns.length);
  const rewards = episodes.flatMap(episode => episode.turns.map(turn => Math.abs(turn.reward)));
  const turns = maximum(lengths, 0);
  const grid: Grid = { columns, reference: episodes[reference], turns, largest: maximum(rewards, 0), options };
  const heads = columns.map((column, i) => head(column, i === reference, choose));
  const parted = episodes.map((episode, i) => (i === reference ? -1 : partingTurn(episode, grid.reference)));
  const rows = Array.from({ length: turns + 1 }, (_, at) => rowView(grid, at, parted));
  return html`<div class="grid"><div class="grid-corner"></div>${heads}${rows}</div>`;
}

function head(
  { episode, title, current }: GridColumn,
  isReference: boolean,
  choose: (id: string) => void,
): TemplateResult {
  const { id, success, advantage } = episode;
  const outcome = successLabel(success);
  const mean = (value: number): TemplateResult =>
    html`<span class="muted" title="Mean advantage over the trained tokens">adv. ${formatSigned(value)}</span>`;
  return html`<button
    class=${current ? 'plain grid-head current' : 'plain grid-head'}
    type="button"
    title="${id}: ${outcome}"
    aria-current=${current ? 'true' : nothing}
    @click=${() => choose(id)}
    >${successMark(success)}<span class="grid-title">${title}</span
    ><span title=${episode.roles ? rolesOutcome(episode.roles) : scoreParts(episode)}>${scoreText(episode)}</span
    >${advantage === null ? nothing : mean(advantage)}${
      isReference ? html`<span class="muted">reference</span>` : nothing
    }</button
  >`;
}

/** The heat maps of the turn in a row, if there are any. */
const heatOf = ({ id, turns }: Episode, at: number, { heat }: TurnOptions): TurnHeat | undefined =>
  at < turns.length ? heat?.of(id, turns[at].turn) : undefined;

/**
 * Renders the row of a turn. A state that is the same in all episodes is shown once, above the cells, unless it has heat
 * maps: each answer has its own.
 */
function rowView(grid: Grid, at: number, parted: readonly number[]): TemplateResult {
  const { columns, reference, turns, options } = grid;
  const isEnd = at === turns;
  const states = columns.map(({ episode }) => (isEnd ? episode.final_state : episode.turns[at]?.state));
  const pictures = columns.map(({ episode }) => episode.turns[at]?.pictures ?? []);
  const isSame = (i: number): boolean =>
    states[i] === states[0] &&
    pictures[i].length === pictures[0].length &&
    !pictures[i].some((each, j) => each !== pictures[0][j]);
  const isMapped = columns.some(({ episode }) => heatOf(episode, at, options));
  const isShared = !isEnd && !isMapped && columns.length > 1 && columns.every((_, i) => isSame(i));
  const before = reference.turns[at - 1]?.state ?? null;
  const shared = (): TemplateResult =>
    html`<div class="grid-shared" data-turn=${at + 1}
        ><span class="muted">same state in all episodes</span
        >${stateView(states[0], before, reference, options, pictures[0])}</div
      ><div class="grid-turn"></div>`;
  const cells = columns.map((column, i) => cellView(grid, column, at, parted[i] === at, isShared));
  return html`<div class="grid-turn muted" title=${isEnd ? 'Final state' : `Turn ${at + 1}`}
      >${isEnd ? 'end' : at + 1}</div
    >${isShared ? shared() : nothing}${cells}`;
}

function cellView(grid: Grid, column: GridColumn, at: number, parts: boolean, isShared: boolean): TemplateResult {
  const { episode, title, current } = column;
  const { turns, final_state, final_pictures } = episode;
  const names = ['grid-cell', current && 'current', parts && 'parts'].filter(Boolean).join(' ');
  // The final state of an episode is shown in the row after its last turn, and again in the last row of the grid.
  const isOver = at >= turns.length && (at === turns.length || at === grid.turns);
  const end = (): TemplateResult =>
    html`${at < grid.turns ? html`<span class="muted">over</span>` : nothing}${stateView(
      final_state,
      turns.at(-1)?.state ?? null,
      episode,
      grid.options,
      final_pictures,
    )}`;
  return html`<div class=${names} role="group" data-turn=${at + 1} aria-label="${title}, turn ${at + 1}"
    >${parts ? html`<span class="parting">actions diverge here</span>` : nothing}${
      at < turns.length ? turnCell(grid, episode, at, isShared) : isOver ? end() : nothing
    }</div
  >`;
}

/** Renders the content of a turn's cell; the state is omitted if it is the same in all episodes (`isShared`). */
function turnCell(
  { reference, largest, options }: Grid,
  episode: Episode,
  at: number,
  isShared: boolean,
): TemplateResult {
  const turn = episode.turns[at];
  const { thought, raw } = turn;
  const other = episode === reference ? null : (reference.turns[at] ?? null);
  const running = runningReturns(episode.turns)[at];
  const words = markChanges(thought ?? raw, other === null ? null : (other.thought ?? other.raw));
  const isDifferent = other !== null && !sameActions(turn.executed, other.executed);
  const before = episode.turns[at - 1]?.state ?? null;
  return html`${isShared ? nothing : stateView(turn.state, before, episode, options, turn.pictures, heatOf(episode, at, options))}${
      options.raw
        ? html`<pre class="raw">${raw}</pre>`
        : html`<p class=${thought === null ? 'thought unparsed-text' : 'thought'}
            >${markedText(words, 'not in the reference episode')}</p
          >`
    }${thought === null ? html`<p class="warning">could not be parsed</p>` : nothing}<div
      class=${isDifferent ? 'actions different' : 'actions'}
      >${actionsView(turn, at === episode.turns.length - 1 && episode.terminated)}</div
    >${rewardView(turn, running, largest, options.theme)}`;
}

/**
 * Returns the index of the first turn whose actions differ from the actions in the reference episode; -1 if all are
 * equal.
 */
export function partingTurn({ turns }: Pick<Episode, 'turns'>, reference: Pick<Episode, 'turns'>): number {
  return turns.findIndex((turn, i) => !sameActions(turn.executed, reference.turns[i]?.executed ?? []));
}

const sameActions = (a: readonly string[], b: readonly string[]): boolean => a.join('\n') === b.join('\n');
