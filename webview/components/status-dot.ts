// A run's status as a dot with a label. Each render updates the same elements, so that the pulse animation of a live
// run is not restarted.
import { html, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';
import { isUnended } from '../../extension/run-data/run-progress';
import { formatDuration } from '../shared/format';
import { displayStatus } from '../shared/run-status';

export function statusDot(run: RunSummary): TemplateResult {
  return html`<span class="status" role="status" data-standing=${isSilent(run) ? 'silent' : displayStatus(run)}
    ><span class="dot" aria-hidden="true"></span><span class="status-word">${statusLabel(run)}</span></span
  >`;
}

/** Whether the trainer of an active run does not respond. */
const isSilent = ({ status, silent_s }: RunSummary): boolean => silent_s !== undefined && isUnended(status.state);

/**
 * Returns the status of a run. While the run is running, phase and activity are added, as in `running · update`. If the
 * trainer does not respond, the status says for how long.
 */
export function statusLabel(run: RunSummary): string {
  const { status, live, silent_s } = run;
  if (isSilent(run)) return `not responding for ${formatDuration(silent_s!)}`;
  const displayed = run.trainer && status.state === 'stopped' ? 'not followed' : displayStatus({ status, live });
  const phase = displayed === 'running' && !['', 'idle'].includes(status.phase) ? status.phase : null;
  const activity = phase && status.activity ? ` · ${status.activity}` : '';
  const halted = displayed === 'running' && status.debugging ? ' · debugger attached' : '';
  return (phase ? `${displayed} · ${phase}${activity}` : displayed) + halted;
}
