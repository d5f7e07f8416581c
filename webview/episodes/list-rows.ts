// How the list's items look: a step's and a group's heading, an episode's row.
import { h } from '../shared/dom';
import { formatNumber, formatSigned } from '../shared/format';
import type { ListItem } from './items';

/** Content, accessible label and class of an item. */
export function renderItem(item: ListItem): { content: Node[]; label: string; class: string } {
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
      const { tag, group_id, count, solved, std, kept } = item;
      const facts = [`${solved}/${count} solved`, `std ${formatNumber(std)}`, kept === false && 'dropped']
        .filter(Boolean)
        .join(' · ');
      const content = [
        h('span', { class: 'group-name' }, `group ${group_id} `, h('span', { class: 'muted' }, tag)),
        h('span', { class: 'muted' }, facts),
      ];
      return {
        content,
        label: `group ${group_id} ${tag}, ${facts}`,
        class: kept === false ? 'group-row dropped' : 'group-row',
      };
    }
    case 'episode': {
      const { row } = item;
      const value = row.reward ?? row.score;
      const content = [
        mark(row.success),
        h('span', { class: 'member' }, String(row.member)),
        h('span', { class: 'number' }, formatSigned(value)),
        h('span', { class: 'number muted' }, String(row.turns)),
        h('span', { class: 'number muted' }, formatNumber(row.tokens)),
      ];
      const kept = row.kept === null ? '' : row.kept ? ', kept' : ', dropped by the filter';
      const label = `member ${row.member}, ${row.success ? 'success' : 'no success'}, return ${formatSigned(value)}, ${row.turns} turns, ${row.tokens} tokens${kept}`;
      return { content, label, class: row.kept === false ? 'episode-row dropped' : 'episode-row' };
    }
  }
}

/** The heads of an episode row's columns. */
export function listHead(): HTMLElement {
  const names: [string, string, string][] = [
    ['', '', ''],
    ['#', 'member', 'Place in the prompt group'],
    ['return', 'number', 'Sum of turn rewards, without penalties'],
    ['turns', 'number', 'Turns played'],
    ['tokens', 'number', 'Tokens sampled'],
  ];
  const cells = names.map(([text, name, title]) => h('span', { class: name, title }, text));
  return h('div', { class: 'list-head muted', 'aria-hidden': 'true' }, ...cells);
}

/** ✓ or ✗, in shape as well as colour. */
export function mark(success: boolean): HTMLElement {
  return h(
    'span',
    { class: success ? 'mark success' : 'mark failure', title: success ? 'success' : 'no success' },
    success ? '✓' : '✗',
  );
}
