// The prompt groups of a step as a table, which screen readers can read. Each row shows the deviation of the group's
// scores, the filter's decision, the reason for this decision, and one cell with a score for each episode. One score
// cell has the tab stop; arrow keys move the tab stop, and Enter opens the cell's episode.
import type { GroupCell } from './group-cell';
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { FilterSettings } from '../../../extension/run-data/collapse-settings';
import type { PromptGroup } from '../../../extension/protocol/collapse-page';
import { maximum, minimum } from '../../../extension/common/lists';
import { formatNumber, formatTick } from '../../shared/format';
import { entryOfKey } from '../../shared/keyboard';
import type { CollapseActions } from '../actions';
import { formatFilter, judgedGroups, type JudgedGroup } from './format-filter';

/** Maximum number of rows; groups with the largest deviation come first. */
const shownGroups = 200;
/**
 * If no group has more episodes than this, the score cells show numbers. Otherwise, they are narrower and show only
 * colours.
 */
const numbersUpTo = 16;

/** The displayed groups of a step. */
export interface JudgedStep {
  readonly caption: string;
  readonly groups: readonly JudgedGroup[];
  /** Largest score deviation of any group. `low` and `high` are the lowest and the highest score of all groups. */
  readonly most: number;
  readonly low: number;
  readonly high: number;
  /** Number of episodes in the largest group. */
  readonly width: number;
}

/**
 * Computes the statistics of a step's groups and the reasons for the filter's decisions. `filter` must contain the
 * settings that were in effect at this step.
 */
export function judgedStep(groups: readonly PromptGroup[], filter: FilterSettings | null): JudgedStep {
  const judged = judgedGroups(filter, groups);
  const scores = judged.flatMap(({ episodes }) => episodes.map(({ score }) => score));
  const more = judged.length > shownGroups ? ` · the ${shownGroups} groups with the largest deviation are shown` : '';
  return {
    caption: formatFilter(filter, groups) + more,
    groups: judged.slice(0, shownGroups),
    most: maximum(
      judged.map(({ std }) => std),
      0,
    ),
    low: minimum(scores),
    high: maximum(scores),
    width: maximum(
      judged.map(({ episodes }) => episodes.length),
      0,
    ),
  };
}

/** Renders the table. `stop` is the cell with the tab stop. */
export function groupsView(step: JudgedStep, stop: GroupCell, actions: CollapseActions): TemplateResult {
  const { caption, groups, low, high, width } = step;
  const rows = groups.map((group, row) => {
    const member = row === stop.row ? stop.member : -1;
    return guard([step, group, member], () => groupRow(group, row, member, step));
  });
  const scores = `Scores of the episodes, ${formatNumber(low)} to ${formatNumber(high)}`;
  return html`<div class="groups">
    <p class="filter-words">${caption}</p>
    <div
      class="table-scroll groups-scroll"
      tabindex="-1"
      @keydown=${(event: KeyboardEvent) => moveStop(event, actions)}
      @click=${(event: Event) => openClicked(event, actions)}
    >
      <table class=${width <= numbersUpTo ? 'group-table' : 'group-table wide'}>
        <caption class="visually-hidden"> Prompt groups of the step </caption>
        <thead>
          <tr>
            <th scope="col">Prompt</th>
            <th scope="col" title="Unbiased standard deviation of the scores within the group">Deviation</th>
            <th scope="col">Filter</th>
            <th scope="colgroup" colspan=${Math.max(1, width)}>${scores}</th>
          </tr>
        </thead>
        <tbody> ${rows} </tbody>
      </table>
    </div>
  </div>`;
}

const moved = (rows: number, members: number) => ({
  does: 'Move to another episode',
  from: ({ row, member }: GroupCell): GroupCell => ({ row: row + rows, member: member + members }),
});

/** The keys of the prompt groups with the focus: the cell to which they move from a cell. */
export const groupKeys: Readonly<Record<string, { does: string; from(cell: GroupCell): GroupCell }>> = {
  ...{ ArrowUp: moved(-1, 0), ArrowDown: moved(1, 0), ArrowLeft: moved(0, -1), ArrowRight: moved(0, 1) },
};

function moveStop(event: KeyboardEvent, { stopAt }: CollapseActions): void {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('[data-row]');
  if (!cell) return;
  const [row, member] = [Number(cell.dataset.row), Number(cell.dataset.member)];
  const to = entryOfKey(groupKeys, event)?.from({ row, member });
  if (!to) return;
  event.preventDefault();
  const table = event.currentTarget as HTMLElement;
  const next = table.querySelector<HTMLElement>(`[data-row="${to.row}"][data-member="${to.member}"]`);
  if (!next) return;
  stopAt(to);
  next.focus();
}

function openClicked(event: Event, { openEpisode }: CollapseActions): void {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('[data-episode]');
  if (cell?.dataset.episode) openEpisode(cell.dataset.episode);
}

function groupRow(group: JudgedGroup, row: number, stop: number, step: JudgedStep): TemplateResult {
  const { group_id, tag, std, kept, why, episodes } = group;
  const share = step.most > 0 ? Math.round((100 * std) / step.most) : 0;
  const verdict = kept === null ? '–' : kept ? 'kept' : 'dropped';
  return html`<tr class=${kept === null ? nothing : verdict}>
    <th scope="row" title=${tag}>${group_id}<span class="muted">${` ${tag}`}</span></th>
    <td class="deviation"
      ><span class="bar" style="--share:${share}%"></span><span class="number">${formatNumber(std)}</span></td
    >
    <td class="verdict"
      ><strong>${verdict}</strong>${why === '' ? nothing : html`<span class="muted">${` ${why}`}</span>`}</td
    >
    ${episodes.map((episode, member) => scoreCell(group_id, episode, { row, member }, member === stop, step))}
  </tr>`;
}

function scoreCell(
  group: number,
  { id, member, score, success }: PromptGroup['episodes'][number],
  at: GroupCell,
  hasStop: boolean,
  { low, high, width }: JudgedStep,
): TemplateResult {
  const outcome = success === null ? '' : success ? ', solved' : ', not solved';
  const described = (value: string): string => `group ${group}, member ${member}: score ${value}${outcome}`;
  const description = described(formatNumber(score));
  const isNumbered = width <= numbersUpTo;
  const shown = formatTick(score, 'number');
  // Colour intensity in percent, 0 to 48, on which text stays readable; 24 if all scores are equal.
  const share = high > low ? Math.round((48 * (score - low)) / (high - low)) : 24;
  return html`<td class="score" style="--share:${share}%"
    ><button
      class="plain"
      type="button"
      tabindex=${hasStop ? 0 : -1}
      title=${id === null ? description : `${description}; open ${id}`}
      aria-label=${isNumbered ? described(shown) : description}
      ?disabled=${id === null}
      data-row=${at.row}
      data-member=${at.member}
      data-episode=${id ?? nothing}
      >${isNumbered ? shown : ''}</button
    ></td
  >`;
}
