// The sortable column headers of the list. The first click on a header sorts by the column. The second click reverses
// the order, and the third click removes the sorting.
import { html, type TemplateResult } from 'lit';
import type { EpisodesActions } from '../actions';
import { extraColumn, widthClass } from './list-rows';
import type { Sort, SortColumn } from './listing';

interface Head {
  text: string;
  /** What the button sorts by, in words; contains `text`, which speech input uses. */
  label?: string;
  by: SortColumn;
  title: string;
  class?: string;
}

export function listHead(sort: Sort | null, actions: EpisodesActions): TemplateResult {
  const added = extraColumn(sort);
  const number = (text: string, by: SortColumn, title: string, label = text): Head => ({
    ...{ text, by, title, label, class: `number ${widthClass(by, sort)}` },
  });
  const heads: Head[] = [
    { text: '✓', by: 'success', title: 'Success' },
    {
      ...(sort
        ? { text: 'step', title: 'Step, group and member' }
        : { text: '#', title: 'Member of the group, or seed of a group with one member' }),
      by: 'step',
      class: 'place',
    },
    ...(added && sort ? [number(added.label, sort.by, 'Current sort column')] : []),
    number('return', 'reward', 'Sum of turn rewards, without penalties; with roles, one sum per role'),
    number(
      'score',
      'score',
      'Return plus format penalties: the training reward, before normalisation; with roles, one score per role',
    ),
    number('turns', 'turns', 'Turns played'),
    number('tokens', 'tokens', 'Tokens sampled'),
    number(
      'inv.',
      'invalid',
      'Invalid actions: unknown actions, and answers without an action',
      'inv. (invalid actions)',
    ),
    { text: '', by: 'kept', title: 'Kept (●) by all filters, or dropped (○) by one', class: 'filter-mark' },
  ];
  const names = ['list-head', 'muted', sort && 'flat', added && 'extended'].filter(Boolean).join(' ');
  return html`<div class=${names} role="group" aria-label="Sort the list">
    ${heads.map(head => headView(head, sort, actions))}
  </div>`;
}

function headView(
  { text, by, title, label = by, class: name = '' }: Head,
  sort: Sort | null,
  actions: EpisodesActions,
): TemplateResult {
  const now = sort?.by === by ? sort : null;
  const next = !now ? { by, down: by !== 'step' } : now.down === (by !== 'step') ? { by, down: !now.down } : null;
  const effect = next ? `sort, ${next.down ? 'largest' : 'smallest'} first` : 'back to steps and groups';
  return html`<button
    class="plain ${name}"
    type="button"
    title="${title}: ${effect}"
    aria-label="Sort by ${label}"
    aria-pressed=${String(now !== null)}
    @click=${() => actions.sort(next)}
    >${text || '●'}${now ? html`<span aria-hidden="true">${now.down ? ' ↓' : ' ↑'}</span>` : ''}</button
  >`;
}
