// The run's events, newest first: the texts of the marks below the charts.
import type { RunEvent } from '../../extension/run-data/run-events';
import { h } from '../shared/dom';
import { glyphs, markOf } from './marks';

/** Maximum number of rows; events.jsonl has all events. */
const shownEvents = 500;

/** A table of the events. `opened` is highlighted and shown with its data. */
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

/** Date and time of an ISO timestamp, in the timezone that the run wrote. */
const clock = (time: string) => time.slice(0, 16).replace('T', ' ');
