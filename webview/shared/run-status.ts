// A run's status as a dot with a label. A run whose status is active but whose trainer is not alive was interrupted.
import type { RunSummary } from '../../extension/protocol/pages';
import { isInterrupted } from '../../extension/run-data/run-progress';
import { h, setAttribute, setText } from './dom';

export type DisplayStatus = RunSummary['status']['state'] | 'interrupted';

/** The displayed status of a run. */
export const displayStatus = ({ status, live }: Pick<RunSummary, 'status' | 'live'>): DisplayStatus =>
  isInterrupted({ status, live }) ? 'interrupted' : status.state;

/** Commands available in a status. */
export function commandsFor(displayed: DisplayStatus): readonly ('pause' | 'resume' | 'stop')[] {
  switch (displayed) {
    case 'starting':
    case 'running':
      return ['pause', 'stop'];
    case 'paused':
      return ['resume', 'stop'];
    case 'interrupted':
    case 'stopped':
    case 'failed':
      return ['resume'];
    case 'stopping':
    case 'finished':
      return [];
  }
}

/**
 * The dot and its label; `update` changes both in place, so that the pulse animation of a live run does not restart.
 */
export function statusDot(): { element: HTMLElement; update(run: RunSummary): void } {
  const label = h('span', { class: 'status-word' });
  const element = h(
    'span',
    { class: 'status', role: 'status' },
    h('span', { class: 'dot', 'aria-hidden': 'true' }),
    label,
  );
  return {
    element,
    update(run) {
      const displayed = displayStatus(run);
      const phase = displayed === 'running' && !['', 'idle'].includes(run.status.phase) ? run.status.phase : null;
      const activity = phase && run.status.activity ? ` · ${run.status.activity}` : '';
      const halted = displayed === 'running' && run.status.debugging ? ' · debugger attached' : '';
      setText(label, (phase ? `${displayed} · ${phase}${activity}` : displayed) + halted);
      setAttribute(element, 'data-standing', displayed);
    },
  };
}
