// Renders the list's items as rows: headings of steps and groups, and episodes. The titles of the columns are in
// list-head.ts, and their widths are in episodes.css.
import { html, nothing, type TemplateResult } from 'lit';
import { successLabel } from '../../../extension/run-data/episode';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import type { ListRow } from '../../components/virtual-list';
import { counted, formatNumber, formatSigned } from '../../shared/format';
import type { ListItem, Sort, SortColumn } from './listing';
import { successMark } from './success-mark';

interface ExtraColumn {
  label: string;
  value(row: EpisodeRow): number | null | undefined;
}

/** Additional columns, each shown only when the list is sorted by it. */
const extra: Partial<Record<SortColumn, ExtraColumn>> = { advantage: { label: 'adv.', value: row => row.advantage } };

/** Returns the additional column of a sort order; undefined if the sort order has none. */
export const extraColumn = (sort: Sort | null): ExtraColumn | undefined => (sort ? extra[sort.by] : undefined);

/** Columns that a narrow list leaves out, and the column that it leaves out instead if the list is sorted by the first. */
const optional: Partial<Record<SortColumn, SortColumn>> = { reward: 'score', invalid: 'tokens' };

/** Returns `optional` if a narrow list leaves out the column, else an empty text. The sorted column is never left out. */
export function widthClass(column: SortColumn, sort: Sort | null): string {
  const leftOut = Object.entries(optional).map(([first, instead]) => (sort?.by === first ? instead : first));
  return leftOut.includes(column) ? 'optional' : '';
}

/** Renders an item of a list; `sort` is the list's order. */
export function renderItem(item: ListItem, sort: Sort | null): ListRow {
  switch (item.kind) {
    case 'step': {
      const text = `${item.mode === 'val' ? 'validation after step' : 'step'} ${item.step}`;
      return {
        content: html`<span>${text}</span><span class="muted">${item.count} episodes</span>`,
        label: text,
        class: 'step-row',
        selectable: false,
      };
    }
    case 'group':
      return groupRow(item);
    case 'episode':
      return episodeRow(item, sort);
  }
}

function groupRow({ tag, group_id, count, size, solved, std, kept }: ListItem & { kind: 'group' }): ListRow {
  const facts = [
    count < size && `${count} of ${size} shown`,
    solved !== null && `${solved}/${size} solved`,
    `std ${formatNumber(std)}`,
    kept === false && 'dropped',
  ]
    .filter(Boolean)
    .join(' · ');
  return {
    content: html`<span class="group-name">${`group ${group_id} `}<span class="muted">${tag}</span></span
      ><span class="muted" title=${facts}>${facts}</span>`,
    label: `group ${group_id} ${tag}, ${facts}`,
    class: kept === false ? 'group-row dropped' : 'group-row',
    selectable: false,
  };
}

function episodeRow({ row, unit, tagged }: ListItem & { kind: 'episode' }, sort: Sort | null): ListRow {
  const flat = unit === 'step';
  const added = flat ? extraColumn(sort) : undefined;
  const addedValue = added?.value(row);
  const number = (text: string, by: SortColumn, name = 'number muted'): TemplateResult =>
    html`<span class="${name} ${widthClass(by, sort)}">${text}</span>`;
  const earned = (of: EpisodeRow, by: 'reward' | 'score', name: string): TemplateResult =>
    html`<span class="${name} ${widthClass(by, sort)}" title=${of.roles ? rolesText(of.roles, by) : nothing}
      >${of.roles ? of.roles.map(role => formatSigned(role[by])).join(' / ') : formatSigned(amountOf(of, by))}</span
    >`;
  const content = html`${successMark(row.success)}${placeView(row, unit, tagged)}${
    added && sort ? number(typeof addedValue === 'number' ? formatSigned(addedValue) : '–', sort.by) : nothing
  }${earned(row, 'reward', 'number muted')}${earned(row, 'score', 'number')}${number(
    String(row.turns),
    'turns',
  )}${number(row.tokens === null ? '–' : formatNumber(row.tokens), 'tokens')}${
    row.invalid ? number(String(row.invalid), 'invalid', 'number warning') : number('·', 'invalid')
  }${filterMark(row.kept)}`;
  const names = ['episode-row', flat && 'flat', added && 'extended', row.kept === false && 'dropped'];
  return { content, label: spokenRow(row, unit), class: names.filter(Boolean).join(' '), selectable: true };
}

const amountOf = (row: EpisodeRow, by: 'reward' | 'score'): number =>
  by === 'reward' ? (row.reward ?? row.score) : row.score;

/** Returns the amounts by role: `first +1, second −1`. */
const rolesText = (roles: NonNullable<EpisodeRow['roles']>, by: 'reward' | 'score'): string =>
  roles.map(role => `${role.role} ${formatSigned(role[by])}`).join(', ');

/** Returns an episode's return or score in words: `score +1`, or by role `score first +1, second −1`. */
export const earnedText = (row: EpisodeRow, by: 'reward' | 'score'): string =>
  `${by === 'reward' ? 'return' : 'score'} ${row.roles ? rolesText(row.roles, by) : formatSigned(amountOf(row, by))}`;

type Unit = (ListItem & { kind: 'episode' })['unit'];

/**
 * Shows what distinguishes an episode from its neighbours, starting with the part that differs between any two rows.
 * Parts before `unit` are omitted, because the headings above the row show them. Episodes that are alone in their group,
 * such as validation episodes, are distinguished by seed and tag; the tag is omitted if the run has only one.
 */
function placeView(row: EpisodeRow, unit: Unit, tagged: boolean): TemplateResult {
  const { id, mode, step, group_id, member, tag, seed } = row;
  const title = [id, tag, seed !== undefined && `seed ${seed}`].filter(Boolean).join(' · ');
  const tagView = tagged ? html` <span class="muted place-tag">${tag}</span>` : nothing;
  switch (unit) {
    case 'member':
      return html`<span class="member">${member}</span>`;
    case 'group': {
      const key = seed === undefined ? `group ${group_id}` : html`<span class="place-word">seed </span>${seed}`;
      return html`<span class="place" title=${title}><span class="place-key">${key}</span>${tagView}</span>`;
    }
    case 'step':
      return html`<span class="place" title=${title}
        ><span class="place-key"
          ><span class="place-step">${mode === 'val' ? `val ${step}` : step}</span
          ><span class="muted">${` ${group_id}·${member}`}</span></span
        >${tagView}</span
      >`;
  }
}

function spokenRow(row: EpisodeRow, unit: Unit): string {
  return [
    ...(unit === 'step' ? [`step ${row.step}`] : []),
    ...(unit === 'member' ? [] : [`group ${row.group_id}`, row.tag]),
    ...(unit === 'group' && row.seed !== undefined ? [`seed ${row.seed}`] : []),
    `member ${row.member}`,
    successLabel(row.success),
    earnedText(row, 'reward'),
    earnedText(row, 'score'),
    counted(row.turns, 'turn'),
    row.tokens === null ? 'tokens not stored' : counted(row.tokens, 'token'),
    ...(row.invalid ? [counted(row.invalid, 'invalid action')] : []),
    ...(row.kept === null ? [] : [row.kept ? 'kept' : 'dropped by a filter']),
  ].join(', ');
}

function filterMark(kept: boolean | null): TemplateResult {
  const title = kept === null ? nothing : kept ? 'kept by all filters' : 'dropped by a filter';
  return html`<span class="filter-mark muted" title=${title}>${kept === null ? '' : kept ? '●' : '○'}</span>`;
}
