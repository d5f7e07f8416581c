// What happened to the run, newest first: the texts behind the marks at the charts' feet.
import type { RunEvent } from '../../extension/protocol/run-folder';
import { h } from '../shared/dom';
import { glyphs, markOf } from './marks';

/** Rows shown; events.jsonl has them all. */
const shownEvents = 500;

/** A table of the events. `opened` is shown with its data and marked. */
export function eventList(events: readonly RunEvent[], opened: RunEvent | null): HTMLElement {
  const rows = events
    .slice(-shownEvents)
    .reverse()
    .map(event => {
      const kind = markOf(event);
      const isOpen =
        opened !== null && event.time === opened.time && event.kind === opened.kind && event.message === opened.message;
      const data = isOpen && event.data ? h('pre', {}, JSON.stringify(event.data, null, 2)) : null;
      return h(
        'tr',
        { class: isOpen ? 'opened' : null, tabindex: isOpen ? -1 : null },
        h('td', { class: `glyph glyph-${kind ?? 'none'}`, 'aria-hidden': 'true' }, kind ? glyphs[kind] : ''),
        h('th', { scope: 'row' }, `step ${event.step}`),
        h('td', {}, event.kind.replaceAll('_', ' ')),
        h('td', { class: 'message' }, event.message, data),
        h('td', { class: 'muted' }, clock(event.time)),
      );
    });
  return h(
    'table',
    { class: 'event-table' },
    h('caption', { class: 'visually-hidden' }, 'Events of the run'),
    h('tbody', {}, ...rows),
  );
}

/** The day and time of an ISO stamp, as the run wrote them. */
const clock = (time: string) => time.slice(0, 16).replace('T', ' ');
