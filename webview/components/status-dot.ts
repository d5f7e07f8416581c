// A run's status as a dot with a label. A render changes both in place, so that the pulse of a live run goes on.
import { html, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/pages';
import { displayStatus } from '../shared/run-status';

export function statusDot(run: RunSummary): TemplateResult {
  return html`<span class="status" role="status" data-standing=${displayStatus(run)}
    ><span class="dot" aria-hidden="true"></span><span class="status-word">${statusLabel(run)}</span></span
  >`;
}

/** The status with phase and activity, as `running · update`. */
export function statusLabel({ status, live }: RunSummary): string {
  const displayed = displayStatus({ status, live });
  const phase = displayed === 'running' && !['', 'idle'].includes(status.phase) ? status.phase : null;
  const activity = phase && status.activity ? ` · ${status.activity}` : '';
  const halted = displayed === 'running' && status.debugging ? ' · debugger attached' : '';
  return (phase ? `${displayed} · ${phase}${activity}` : displayed) + halted;
}
