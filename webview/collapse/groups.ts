// The prompt groups of a step: the deviation of scores within each, what the filter kept and why, and each episode's
// score as a cell. A table, for screen readers. One score cell has the tab stop; arrow keys move it and Enter opens its
// episode.
import type { FilterSettings, PromptGroup } from '../../extension/protocol/collapse-page';
import { maximum, minimum } from '../../extension/common/lists';
import { h, replaceChildren } from '../shared/dom';
import { formatNumber, formatTick } from '../shared/format';
import { formatFilter, judgedGroups, type JudgedGroup } from './format-filter';

export interface GroupsView {
  element: HTMLElement;
  draw(groups: readonly PromptGroup[], filter: FilterSettings | null): void;
}

/** Maximum number of rows, those with the largest deviation. */
const shownGroups = 200;
/** In larger groups, cells have no room for their number. */
const numbersUpTo = 16;

export function groupsView(open: (episode: string) => void): GroupsView {
  const caption = h('p', { class: 'filter-words' });
  const body = h('div', { class: 'table-scroll groups-scroll', tabindex: -1 });
  const element = h('div', { class: 'groups' }, caption, body);

  body.addEventListener('keydown', event => {
    const cell = (event.target as HTMLElement).closest<HTMLElement>('[data-row]');
    if (!cell) return;
    const [row, member] = [Number(cell.dataset.row), Number(cell.dataset.member)];
    const moves: Record<string, [number, number]> = {
      ArrowUp: [row - 1, member],
      ArrowDown: [row + 1, member],
      ArrowLeft: [row, member - 1],
      ArrowRight: [row, member + 1],
    };
    const to = moves[event.key] as [number, number] | undefined;
    if (!to) return;
    event.preventDefault();
    const next = body.querySelector<HTMLElement>(`[data-row="${to[0]}"][data-member="${to[1]}"]`);
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  body.addEventListener('click', event => {
    const cell = (event.target as HTMLElement).closest<HTMLElement>('[data-episode]');
    if (cell?.dataset.episode) open(cell.dataset.episode);
  });

  return {
    element,
    draw(groups, filter) {
      const judged = judgedGroups(filter, groups);
      const most = maximum(
        judged.map(({ std }) => std),
        0,
      );
      const scores = judged.flatMap(({ episodes }) => episodes.map(({ score }) => score));
      const range: [number, number] = [minimum(scores), maximum(scores)];
      const width = maximum(
        judged.map(({ episodes }) => episodes.length),
        0,
      );
      const left = judged.length - shownGroups;
      replaceChildren(
        caption,
        formatFilter(filter, groups),
        left > 0 && ` · the ${shownGroups} groups that differ most are shown`,
      );
      const head = h(
        'tr',
        {},
        h('th', { scope: 'col' }, 'Prompt'),
        h('th', { scope: 'col', title: 'Unbiased deviation of the scores of the group’s episodes' }, 'Deviation'),
        h('th', { scope: 'col' }, 'Filter'),
        h(
          'th',
          { scope: 'colgroup', colspan: Math.max(1, width) },
          `Scores of its episodes, ${formatNumber(range[0])} to ${formatNumber(range[1])}`,
        ),
      );
      const rows = judged.slice(0, shownGroups).map((group, row) => groupRow(group, row, { most, range, width }));
      replaceChildren(
        body,
        h(
          'table',
          { class: width <= numbersUpTo ? 'group-table' : 'group-table wide' },
          h('caption', { class: 'visually-hidden' }, 'Prompt groups of the step'),
          h('thead', {}, head),
          h('tbody', {}, ...rows),
        ),
      );
    },
  };
}

function groupRow(
  { group_id, tag, std, kept, why, episodes }: JudgedGroup,
  row: number,
  { most, range, width }: { most: number; range: [number, number]; width: number },
): HTMLElement {
  const cells = episodes.map(({ id, member, score, success }, i) => {
    const description = `group ${group_id}, member ${member}: score ${formatNumber(score)}${success === null ? '' : success ? ', solved' : ', not solved'}`;
    const content = h(
      'button',
      {
        class: 'plain',
        type: 'button',
        tabindex: row === 0 && i === 0 ? 0 : -1,
        title: id ? `${description}; open ${id}` : description,
        'aria-label': description,
        disabled: id === null,
        'data-row': row,
        'data-member': i,
        'data-episode': id,
      },
      width <= numbersUpTo ? formatTick(score, 'number') : '',
    );
    return h('td', { class: 'score', style: `--share:${shareOf(score, range)}%` }, content);
  });
  const label = kept === null ? '–' : kept ? 'kept' : 'dropped';
  return h(
    'tr',
    { class: kept === null ? null : kept ? 'kept' : 'dropped' },
    h('th', { scope: 'row', title: tag }, `${group_id}`, h('span', { class: 'muted' }, ` ${tag}`)),
    h(
      'td',
      { class: 'deviation' },
      h('span', { class: 'bar', style: `--share:${most > 0 ? Math.round((100 * std) / most) : 0}%` }),
      h('span', { class: 'number' }, formatNumber(std)),
    ),
    h('td', { class: 'verdict' }, h('strong', {}, label), why && h('span', { class: 'muted' }, ` ${why}`)),
    ...cells,
  );
}

/** Colour intensity of a score in percent; 30 if all scores are equal. */
const shareOf = (score: number, [low, high]: [number, number]): number =>
  high > low ? Math.round((60 * (score - low)) / (high - low)) : 30;
