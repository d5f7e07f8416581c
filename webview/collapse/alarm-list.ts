// The alarms that the watch raised, with their evidence; a click goes to the step. What is still to come after the step is dimmed.
import type { RunEvent } from '../../extension/protocol/run-folder';
import { h } from '../shared/dom';

/** Alarms shown, newest first. */
const shown = 100;

/** A list, or why there is none. `watching` tells whether the run had the watch on. */
export function alarmList(
  events: readonly RunEvent[],
  step: number,
  watching: boolean,
  scrub: (step: number) => void,
): HTMLElement {
  const alarms = events.filter(({ kind }) => kind !== 'setting');
  if (alarms.length === 0)
    return h('p', { class: 'muted' }, watching ? 'No alarm was raised.' : 'This run is not watched (workbench.watch.enabled is false).'); // prettier-ignore
  const items = alarms
    .slice(-shown)
    .reverse()
    .map(event => {
      // The event is written after its step was finished; its data have the step that was judged.
      const at = typeof event.data?.step === 'number' ? event.data.step : event.step;
      const go = h('button', { class: 'plain link', type: 'button' }, `step ${at}`);
      go.addEventListener('click', () => scrub(at));
      return h(
        'li',
        { class: at > step ? 'later' : null },
        h('span', { class: 'alarm-sign', 'aria-hidden': 'true' }, '▲'),
        go,
        h('span', {}, event.message),
        event.kind === 'early_stop' && h('span', { class: 'muted' }, 'ended the run'),
      );
    });
  return h('ul', { class: 'alarm-list' }, ...items);
}
