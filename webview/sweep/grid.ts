// The table of a sweep: a row per arm with its result, and a cell per seed with the state and the value of the run. A
// click on a cell opens the run's dashboard.
import { html, nothing, type TemplateResult } from 'lit';
import type { SweepCell } from '../../extension/protocol/sweep-page';
import { progressOf } from '../../extension/run-data/run-progress';
import type { ComparedMetric } from '../compare/compared-metrics';
import { statusLabel } from '../components/status-dot';
import { formatValue, type Unit } from '../shared/format';
import { displayStatus } from '../shared/run-status';
import type { SweepPageActions } from './actions';
import { domainOf, type Arm } from './arms';
import { intervalPicture } from './interval-picture';
import type { SweepSettings } from './state';

/** Renders the table. `seeds` are the columns of the arms' cells. */
export function sweepGrid(
  arms: readonly Arm[],
  seeds: readonly number[],
  metric: ComparedMetric | undefined,
  at: SweepSettings['at'],
  actions: SweepPageActions,
): TemplateResult {
  const unit = metric?.unit ?? 'number';
  const domain = domainOf(arms, unit === 'share');
  const scale = domain && `${formatValue(domain.low, unit)} … ${formatValue(domain.high, unit)}`;
  return html`<table class="sweep-grid">
    <caption class="visually-hidden">Runs of the sweep by arm and seed</caption>
    <thead>
      <tr>
        <th scope="col">arm</th>
        <th scope="col" title=${metric?.hint ?? nothing}>${metric ? `${metric.title}, ${at}` : 'result'}</th>
        <th scope="col">${scale ?? nothing}</th>
        ${seeds.map(seed => html`<th scope="col" class="seed">seed ${seed}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${arms.map(
        arm =>
          html`<tr class=${arm.stopped ? 'stopped-arm' : nothing}>
            <th scope="row">${arm.label}${stopNote(arm, unit)}</th>
            <td class="number">${resultText(arm, unit)}</td>
            <td>${domain ? intervalPicture(arm, domain, unit) : nothing}</td>
            ${arm.cells.map(cell => html`<td>${cell ? cellView(arm, cell, unit, at, actions) : nothing}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function stopNote({ stopped }: Arm, unit: Unit): TemplateResult | typeof nothing {
  if (!stopped) return nothing;
  const value = stopped.value === null ? '' : ` with ${formatValue(stopped.value, unit)}`;
  return html`<span class="muted stop-note"
    >stopped early at step ${stopped.step}: rank ${stopped.rank} of ${stopped.of}${value}</span
  >`;
}

/** Formats the result as mean and interval, or as the single values below three seeds. */
function resultText({ estimate, values }: Arm, unit: Unit): string {
  if (!estimate) return '–';
  if (estimate.interval === null) return [...values.values()].map(value => formatValue(value, unit)).join(', ');
  return `${formatValue(estimate.mean, unit)} ± ${formatValue(estimate.interval, unit)}`;
}

function cellView(
  arm: Arm,
  cell: SweepCell,
  unit: Unit,
  at: SweepSettings['at'],
  actions: SweepPageActions,
): TemplateResult {
  const { run, seed, problem } = cell;
  const standing = standingOf(arm, cell);
  const value = cell[at] === null ? '' : formatValue(cell[at], unit);
  const progress = run ? progressOf(run.status) : null;
  const isTraining = run?.live === true && progress !== null && progress.of > 0;
  const state = run ? statusLabel(run) : standing;
  const steps = progress && progress.of > 0 ? `, ${progress.unit} ${progress.done} of ${progress.of}` : '';
  const details = [
    `${arm.label}, seed ${seed}: ${state}${steps}${value ? `, ${value}` : ''}`,
    ...(cell.attempts > 1 ? [`started ${cell.attempts} times`] : []),
    ...(problem === undefined ? [] : [problem]),
  ].join('\n');
  const content = html`<span class="status" data-standing=${standing}
      ><span class="dot" aria-hidden="true"></span
      ><span class="status-word">${value === '' || standing === 'failed' ? standing : value}</span></span
    >${
      isTraining
        ? html`<span class="cell-progress" aria-hidden="true"
            ><span style="width:${((progress.done / progress.of) * 100).toFixed(1)}%"></span
          ></span>`
        : nothing
    }`;
  return run
    ? html`<button
        class="plain cell"
        type="button"
        title=${details}
        aria-label=${details}
        @click=${() => actions.openDashboard(run.folder)}
        >${content}</button
      >`
    : html`<span class="cell" title=${details}>${content}</span>`;
}

/** Returns the state of a cell in one or two words. */
export function standingOf({ stopped }: Pick<Arm, 'stopped'>, { run, problem }: SweepCell): string {
  if (run && (!stopped || run.live || run.status.state === 'finished')) return displayStatus(run);
  if (stopped) return 'stopped early';
  return problem === undefined ? 'waiting' : 'failed';
}
