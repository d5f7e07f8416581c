// The list of alarms with their evidence; a click on an alarm selects its step. Alarms after the current step are
// dimmed.
import { html, nothing, type TemplateResult } from 'lit';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { link } from '../../components/controls';

/** Maximum number of alarms in the list, which starts with the newest alarm. */
const shown = 100;

/** Renders the list, or the reason why it is empty. `watching` is true if alarms were enabled in the run. */
export function alarmList(
  events: readonly RunEvent[],
  step: number,
  watching: boolean,
  go: (step: number) => void,
): TemplateResult {
  const alarms = events.filter(({ kind }) => kind !== 'setting');
  if (alarms.length === 0)
    return html`<p class="muted">
      ${watching ? 'No alarm was raised.' : 'Alarms are off in this run (workbench.watch.enabled is false).'}
    </p>`;
  const items = alarms.slice(-shown).reverse();
  return html`<ul class="alarm-list">
    ${items.map(event => alarmItem(event, step, go))}
  </ul>`;
}

function alarmItem(event: RunEvent, step: number, go: (step: number) => void): TemplateResult {
  // `event.step` is the step during which the event was written; `data.step` is the step whose metrics raised the
  // alarm.
  const at = typeof event.data?.step === 'number' ? event.data.step : event.step;
  return html`<li class=${at > step ? 'later' : nothing}
    ><span class="alarm-sign" aria-hidden="true">▲</span
    >${link(`step ${at}`, () => go(at))}<span>${event.message}</span>${event.kind === 'early_stop' ? html`<span class="muted">ended the run</span>` : nothing}</li
  >`;
}
