// Renders the list's items: headings of steps and groups, and episode rows; and the sortable column headers.
import { h, type Child } from '../shared/dom';
import { counted, formatNumber, formatSigned } from '../shared/format';
import type { ListItem, Sort, SortColumn } from './listing';
import type { EpisodeRow } from '../../extension/protocol/episode-table';

/** Columns that are shown only when the list is sorted by them. */
const extra: Partial<Record<SortColumn, { label: string; value(row: EpisodeRow): number | null | undefined }>> = {
  advantage: { label: 'adv.', value: row => row.advantage },
};

/** Content, accessible label and class of an item in a list with this sort order. */
export function renderItem(item: ListItem, sort: Sort | null): { content: Node[]; label: string; class: string } {
  switch (item.kind) {
    case 'step': {
      const text = `${item.mode === 'val' ? 'validation after step' : 'step'} ${item.step}`;
      return {
        content: [h('span', {}, text), h('span', { class: 'muted' }, `${item.count} episodes`)],
        label: text,
        class: 'step-row',
      };
    }
    case 'group': {
      const { tag, group_id, count, size, solved, std, kept } = item;
      const facts = [
        count < size && `${count} of ${size} shown`,
        `${solved}/${size} solved`,
        `std ${formatNumber(std)}`,
        kept === false && 'dropped',
      ]
        .filter(Boolean)
        .join(' · ');
      const content = [
        h('span', { class: 'group-name' }, `group ${group_id} `, h('span', { class: 'muted' }, tag)),
        h('span', { class: 'muted', title: facts }, facts),
      ];
      return {
        content,
        label: `group ${group_id} ${tag}, ${facts}`,
        class: kept === false ? 'group-row dropped' : 'group-row',
      };
    }
    case 'episode':
      return episodeRow(item, sort);
  }
}

function episodeRow({ row, unit: named }: ListItem & { kind: 'episode' }, sort: Sort | null) {
  const flat = named === 'step';
  const added = flat && sort ? extra[sort.by] : undefined;
  const addedValue = added?.value(row);
  const step = row.mode === 'val' ? `val ${row.step}` : String(row.step);
  const title = `${row.id} · ${row.tag}`;
  const renderers: Record<typeof named, () => HTMLElement> = {
    member: () => h('span', { class: 'member' }, String(row.member)),
    group: () => h('span', { class: 'place', title }, `group ${row.group_id} `, h('span', { class: 'muted' }, row.tag)),
    step: () =>
      h(
        'span',
        { class: 'place', title },
        h('span', { class: 'place-step' }, step),
        h('span', { class: 'muted' }, ` ${row.group_id}·${row.member} ${row.tag}`),
      ),
  };
  const number = (text: string, name = 'number muted') => h('span', { class: name }, text);
  const content = [
    mark(row.success),
    renderers[named](),
    ...(added ? [number(typeof addedValue === 'number' ? formatSigned(addedValue) : '–')] : []),
    number(formatSigned(row.reward ?? row.score), 'number muted'),
    number(formatSigned(row.score), 'number'),
    number(String(row.turns)),
    number(formatNumber(row.tokens)),
    row.invalid ? h('span', { class: 'number warning' }, String(row.invalid)) : number('·'),
    filterMark(row.kept),
  ];
  const kept = row.kept === null ? '' : row.kept ? ', kept' : ', dropped by the rollout filter';
  const invalid = row.invalid ? `, ${counted(row.invalid, 'invalid action')}` : '';
  const where = [
    ...(flat ? [`step ${row.step}`] : []),
    ...(named === 'member' ? [] : [`group ${row.group_id}, ${row.tag}`]),
  ];
  const label = `${[...where, `member ${row.member}`].join(', ')}, ${row.success ? 'success' : 'no success'}, return ${formatSigned(row.reward ?? row.score)}, score ${formatSigned(row.score)}, ${counted(row.turns, 'turn')}, ${counted(row.tokens, 'token')}${invalid}${kept}`;
  const names = ['episode-row', flat && 'flat', added && 'extended', row.kept === false && 'dropped'];
  return { content, label, class: names.filter(Boolean).join(' ') };
}

/**
 * Column headers: the first click sorts by the column, the second reverses the order, the third removes the sorting.
 */
export function listHead(sort: Sort | null, change: (sort: Sort | null) => void): HTMLElement {
  const added = sort ? extra[sort.by] : undefined;
  const heads: [text: string, by: SortColumn, title: string, name?: string][] = [
    ['✓', 'success', 'Success'],
    sort ? ['step', 'step', 'Step, group and member', 'place'] : ['#', 'step', 'Member of the group', 'place'],
    ...(added && sort
      ? [[added.label, sort.by, `Current sort column`, 'number'] as [string, SortColumn, string, string]]
      : []),
    ['return', 'reward', 'Sum of turn rewards, without penalties', 'number'],
    ['score', 'score', 'Return plus format penalties: the training reward, before normalisation', 'number'],
    ['turns', 'turns', 'Turns played', 'number'],
    ['tokens', 'tokens', 'Tokens sampled', 'number'],
    ['inv.', 'invalid', 'Invalid actions: unknown actions, and answers without an action', 'number'],
    ['', 'kept', 'Kept (●) or dropped (○) by the rollout filter', 'filter-mark'],
  ];
  const cells = heads.map(([text, by, title, name]) => {
    const now = sort?.by === by ? sort : null;
    const next = !now ? { by, down: by !== 'step' } : now.down === (by !== 'step') ? { by, down: !now.down } : null;
    const cell = h(
      'button',
      {
        class: `plain ${name ?? ''}`,
        type: 'button',
        title: `${title}: ${next ? `sort, ${next.down ? 'largest' : 'smallest'} first` : 'back to steps and groups'}`,
        'aria-label': `Sort by ${by}`,
        'aria-pressed': String(now !== null),
      },
      (text || '●') + (now ? (now.down ? ' ↓' : ' ↑') : ''),
    );
    cell.addEventListener('click', () => change(next));
    return cell;
  });
  const names = ['list-head', 'muted', sort && 'flat', added && 'extended'].filter(Boolean).join(' ');
  return h('div', { class: names, role: 'group', 'aria-label': 'Sort the list' }, ...cells);
}

/** ✓ or ✗, which differ in shape as well as colour. */
export function mark(success: boolean): HTMLElement {
  return h(
    'span',
    { class: success ? 'mark success' : 'mark failure', title: success ? 'success' : 'no success' },
    success ? '✓' : '✗',
  );
}

function filterMark(kept: boolean | null): HTMLElement {
  const says: Child = kept === null ? '' : kept ? '●' : '○';
  const title = kept === null ? null : kept ? 'kept by the rollout filter' : 'dropped by the rollout filter';
  return h('span', { class: 'filter-mark muted', title }, says);
}
