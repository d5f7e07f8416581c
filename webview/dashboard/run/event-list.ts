// The list of the run's events, newest first, with the same texts as the event marks below the charts.
import { html, nothing, type TemplateResult } from 'lit';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { placeEvents, type PlacedEvent } from '../../../extension/run-data/event-marks';
import { glyphs } from '../../../extension/run-data/charts/chart-marks';

/** Maximum number of listed events; the file events.jsonl contains all events. */
const shownEvents = 500;

/** Renders a table of the events. The row of `opened` is highlighted and shows the event's data. */
export function eventList(events: readonly RunEvent[], opened: RunEvent | null): TemplateResult {
  const rows = placeEvents(events)
    .slice(-shownEvents)
    .reverse()
    .map(placed => eventRow(placed, isSame(placed.event, opened)));
  return html`<table class="event-table">
    <caption class="visually-hidden">Events of the run</caption>
    <tbody>${rows}</tbody>
  </table>`;
}

function eventRow({ event, step, mark: kind }: PlacedEvent, isOpen: boolean): TemplateResult {
  const data = isOpen && event.data ? html`<pre>${JSON.stringify(event.data, null, 2)}</pre>` : nothing;
  return html`<tr class=${isOpen ? 'opened' : nothing} tabindex=${isOpen ? -1 : nothing}>
    <td class="glyph glyph-${kind ?? 'none'}" aria-hidden="true">${kind ? glyphs[kind] : ''}</td>
    <th scope="row">${`step ${step}`}</th>
    <td>${event.kind.replaceAll('_', ' ')}</td>
    <td class="message">${event.message}${data}</td>
    <td class="muted">${clock(event.time)}</td>
  </tr>`;
}

/** Whether an event is the opened event. Compares fields, because a new snapshot contains new objects. */
function isSame({ time, kind, message }: RunEvent, opened: RunEvent | null): boolean {
  return opened !== null && time === opened.time && kind === opened.kind && message === opened.message;
}

/** Returns the date and time of an ISO timestamp, in the time zone of the timestamp. */
const clock = (time: string): string => time.slice(0, 16).replace('T', ' ');
