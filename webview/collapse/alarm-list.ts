// The list of alarms with their evidence; a click goes to the alarm's step. Alarms after the current step are dimmed.
import type { RunEvent } from '../../extension/run-data/run-events';
import { h } from '../shared/dom';

/** Maximum number of alarms shown, newest first. */
const shown = 100;

/** The list, or the reason why it is empty. `watching` is whether alarms were enabled in the run. */
export function alarmList(
  events: readonly RunEvent[],
  step: number,
  watching: boolean,
  scrub: (step: number) => void,
): HTMLElement {
  const alarms = events.filter(({ kind }) => kind !== 'setting');
  if (alarms.length === 0)
    return h(
      'p',
      { class: 'muted' },
      watching ? 'No alarm was raised.' : 'Alarms are off in this run (workbench.watch.enabled is false).',
    );
  const items = alarms
    .slice(-shown)
    .reverse()
    .map(event => {
      // The event is written after its step ended; its data has the step that raised the alarm.
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
