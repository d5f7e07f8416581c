// Estimated resources of the run, next to the form: memory as a bar against the available memory, and the time per step
// with the source of the figure.
import type { RunEstimate } from '../../extension/protocol/new-run-page';
import { gibibytes } from '../../extension/common/numbers';
import { h } from '../shared/dom';
import { formatDuration, formatNumber } from '../shared/format';

/** The estimate, or a placeholder. */
export function estimateView(estimate: RunEstimate | null, waiting: boolean): HTMLElement {
  if (!estimate) {
    const text = waiting ? 'Planning …' : 'Fix the errors to see an estimate.';
    return h('div', { class: 'estimate muted' }, text);
  }
  const { model, time, remedy, notes } = estimate;
  const how = model.trained === 'all' ? 'all trained' : 'adapters trained';
  return h(
    'div',
    { class: `estimate${waiting ? ' stale' : ''}` },
    row('Model', `${formatNumber(model.parameters)} parameters, ${how}`),
    memory(estimate),
    remedy !== null && h('p', { class: 'problem', role: 'alert' }, remedy.replace(/^plan: /, '')),
    ...notes.map(note => h('p', { class: 'muted' }, note.replace(/^config: /, ''))),
    row('A step', time ? `about ${formatDuration(time.step_s)}` : 'not known for this device'),
    time && row('', `including ${formatDuration(time.generation_s)} rollout`, 'muted'),
    time && row('All steps', formatDuration(time.total_s)),
    time && row('', basis(time), 'muted'),
  );
}

function memory({ peak, available, rows, fits }: RunEstimate): HTMLElement {
  const share = Math.min(1, peak.bytes / available);
  const largest = [...rows].sort((a, b) => b.bytes - a.bytes).slice(0, 4);
  const what = `${gibibytes(peak.bytes)} of ${gibibytes(available)} in the ${peak.phase}`;
  return h(
    'div',
    {},
    row('Memory', what),
    h(
      'div',
      { class: `memory-bar${fits ? '' : ' over'}`, role: 'img', 'aria-label': `Memory: ${what}` },
      h('div', { style: `width:${(100 * share).toFixed(1)}%` }),
    ),
    h(
      'details',
      {},
      h('summary', { class: 'muted' }, 'Memory breakdown'),
      ...largest.map(each => h('p', { class: 'muted' }, `${gibibytes(each.bytes)} ${each.what}: ${each.how}`)),
    ),
  );
}

const row = (label: string, value: string, kind = ''): HTMLElement =>
  h('div', { class: 'estimate-row' }, h('span', { class: 'muted' }, label), h('span', { class: kind }, value));

function basis({ basis: from, run }: NonNullable<RunEstimate['time']>): string {
  if (from === 'measured') return `based on run “${run!.name}”`;
  if (from === 'scaled') return `scaled from run “${run!.name}”`;
  return 'rough estimate (no run measured on this machine yet)';
}
