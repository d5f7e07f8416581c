// Estimated resources of the run, next to the form. A bar compares the estimated memory with the available memory.
// Below the bar are the time per step and the source of this time. The warning that a run does not fit is from
// trainer/plan/run-plan.ts. If the model runs on a server, the bar shows only the memory needed on this machine, and
// the time per step is computed from the speeds of the server, which were measured by the engine's newest test or are
// assumed.
import { html, nothing, type TemplateResult } from 'lit';
import type { PlannedRun, RunEstimate } from '../../extension/protocol/new-run-page';
import { skeleton } from '../components/notice';
import { gibibytes } from '../../extension/common/numbers';
import { formatDuration, formatNumber } from '../shared/format';

type Time = NonNullable<RunEstimate['time']>;

/** Renders the estimate, or a placeholder if there is no estimate. */
export function estimateView(planned: PlannedRun | null, waiting: boolean): TemplateResult {
  const { estimate = null, engine = null } = planned ?? {};
  if (!estimate) {
    if (waiting) return html`<div class="estimate">${skeleton('skeleton-lines', 3, 'Estimating the resources')}</div>`;
    return html`<div class="estimate muted">Fix the errors to see an estimate.</div>`;
  }
  const { model, time, remedy, notes, remote } = estimate;
  const how = model.trained === 'all' ? 'all trained' : 'adapters trained';
  const size = model.parameters === null ? 'size unknown' : `${formatNumber(model.parameters)} parameters`;
  const about = engine
    ? html`${row('Model', engine.model ?? 'the server’s only model')} ${row('Server', engine.url)}`
    : row('Model', `${size}, ${how}`);
  return html`<div class=${waiting ? 'estimate stale' : 'estimate'}>
    ${about} ${memoryView(estimate)}
    ${engine ? row('', 'memory of this machine; the server plans its own memory', 'muted') : nothing}
    ${remedy === null ? nothing : html`<p class="problem" role="alert">${remedy.replace(/^plan: /, '')}</p>`}
    ${notes.map(note => html`<p class="muted">${note.replace(/^config: /, '')}</p>`)}
    ${time ? timeView(time, remote) : row('Time per step', 'not known for this device')}
  </div>`;
}

function timeView(time: Time, remote: RunEstimate['remote']): TemplateResult {
  return html`${row('Time per step', `about ${formatDuration(time.step_s)}`)}
  ${row('', `including ${formatDuration(time.generation_s)} rollout`, 'muted')}
  ${row('Total time', formatDuration(time.total_s))} ${row('', basis(time, remote), 'muted')}`;
}

function memoryView({ peak, available, rows, fits }: RunEstimate): TemplateResult {
  const share = Math.min(1, peak.bytes / available);
  const largest = [...rows].sort((a, b) => b.bytes - a.bytes).slice(0, 4);
  const what = `${gibibytes(peak.bytes)} of ${gibibytes(available)} in the ${peak.phase}`;
  const parts = largest.map(each => html`<p class="muted">${gibibytes(each.bytes)} ${each.what}: ${each.how}</p>`);
  return html`<div>
    ${row('Memory', what)}
    <div class=${fits ? 'memory-bar' : 'memory-bar over'} role="img" aria-label="Memory: ${what}"
      ><div style="width:${(100 * share).toFixed(1)}%"></div
    ></div>
    <details><summary class="muted">Memory breakdown</summary>${parts}</details>
  </div>`;
}

const row = (label: string, value: string, kind = ''): TemplateResult =>
  html`<div class="estimate-row"><span class="muted">${label}</span><span class=${kind}>${value}</span></div>`;

function basis({ basis: from, run }: Time, remote: RunEstimate['remote']): string {
  if (from === 'measured') return `based on run “${run!.name}”`;
  if (from === 'scaled') return `scaled from run “${run!.name}”`;
  if (from === 'rates' && remote?.rates.basis === 'given')
    return 'estimate from the tested round trip and sampling rate of the engine; its training rate is assumed';
  if (from === 'rates') return 'rough estimate (the rates of the server are not measured)';
  return 'rough estimate (no run has been measured on this machine yet)';
}
