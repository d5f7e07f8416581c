// Renders the items of the log as rows, and the details of the selected entry with its line as JSON.
import { html, nothing, type TemplateResult } from 'lit';
import { isRecord, jsonOrNothing } from '../../extension/common/json';
import type { LogEntry, LogLevel } from '../../extension/run-data/log-entries';
import type { ListRow } from '../components/virtual-list';
import { button } from '../components/controls';
import type { LogActions } from './actions';
import type { LogItem, ViewSettings } from './state';

/** Marks of the levels; the letters differ, so that users can distinguish them without colour. */
const marks: Record<LogLevel, string> = { error: 'E', warning: 'W', info: '', debug: '·' };

const fileOf = { event: 'events.jsonl', trainer: 'trainer.log', step: 'metrics.jsonl' } as const;

export function renderItem(item: LogItem, order: ViewSettings['order']): ListRow {
  if (item.kind === 'step') {
    const label = item.step === null ? 'before the first step' : `step ${item.step}`;
    return { content: html`<span>${label}</span>`, label, class: 'step-row', selectable: false };
  }
  const { level, kind, text, time, markedAt } = item.entry;
  const step = stepOf(item.entry);
  const at =
    order === 'severity' || markedAt !== null
      ? html`<span class="muted at-step">${step === null ? '' : `step ${step}`}</span>`
      : nothing;
  return {
    content: html`<span class="level" title=${level}>${marks[level]}</span
      ><span class="muted time">${clock(time)}</span>${at}<span class="muted kind">${kind.replaceAll('_', ' ')}</span
      ><span class="text" title=${text}>${text}</span>`,
    label: [level, step === null ? '' : `step ${step}`, kind, text].filter(Boolean).join(', '),
    class: `entry level-${level}`,
    selectable: true,
  };
}

export function details(entry: LogEntry, actions: LogActions): TemplateResult {
  const { level, kind, text, time, raw, source } = entry;
  const step = stepOf(entry);
  const value = jsonOrNothing(raw);
  const json = isRecord(value) ? JSON.stringify(value, null, 2) : raw;
  const where = [level, kind.replaceAll('_', ' '), step !== null && `step ${step}`, time !== null && dateOf(time)];
  return html`<section class="details" aria-label="Details of the entry">
    <div class="details-head">
      <span class="muted">${where.filter(Boolean).join(' · ')}</span>
      <span class="buttons">
        ${button({ label: 'Copy line', onClick: () => actions.command({ command: 'copy', text: raw }) })}
        ${button({
          label: `Open ${fileOf[source]}`,
          onClick: () => actions.command({ command: 'file', name: fileOf[source] }),
        })}
        ${button({ label: 'Close', title: 'Close ( Escape )', onClick: () => actions.select(null) })}
      </span>
    </div>
    <p class="details-text">${text}</p>
    <pre tabindex="0" aria-label="The line in ${fileOf[source]}">${json}</pre>
  </section>`;
}

/** Returns the step that the page names for an entry: the step at which charts mark it. */
const stepOf = ({ step, markedAt }: LogEntry): number | null => markedAt ?? step;

/** Formats a time as hh:mm:ss in the user's time zone; empty without a time. */
const clock = (time: number | null): string => (time === null ? '' : dateOf(time).slice(11));

/** Formats a time as `2026-11-22 01:09:19` in the user's time zone. */
function dateOf(time: number): string {
  const shift = new Date(time).getTimezoneOffset() * 60_000;
  return new Date(time - shift).toISOString().slice(0, 19).replace('T', ' ');
}
