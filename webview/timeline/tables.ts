// The tables that can replace the drawings. One table lists the steps with their seconds per lane; the other table
// lists the spans of one step.
import { html, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { laneLabels } from '../../extension/run-data/chrome-trace';
import type { StepSummary } from '../../extension/run-data/timeline';
import { link } from '../components/controls';
import { formatDuration } from '../shared/format';
import { spanLabel } from './labels';
import { barLanes } from './overview-bars';
import type { OpenStep, Range } from './state';
import { formatUs } from './time-axis';

/** Maximum number of rows of a table. */
const mostRows = 400;

export function overviewTable(
  steps: readonly StepSummary[],
  { from, to }: Range,
  kept: ReadonlySet<number>,
  open: (step: number) => void,
): TemplateResult {
  const shown = steps.slice(Math.floor(from), Math.ceil(to)).slice(-mostRows).reverse();
  const lanes = barLanes.filter(lane => shown.some(({ exposed }) => (exposed[lane] ?? 0) > 0));
  return html`<div class="table-scroll" tabindex="0">
    <table>
      <caption class="visually-hidden">Seconds per lane of each step, the newest first</caption>
      <thead>
        <tr>
          <th class="number" scope="col">Step</th>
          <th class="number" scope="col">Time</th>
          ${lanes.map(lane => html`<th class="number" scope="col">${laneLabels[lane]}</th>`)}
          <th class="number" scope="col">In flight</th>
          <th class="number" scope="col">Staleness</th>
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          ({ step, seconds, exposed, in_flight: [peak], staleness }) =>
            html`<tr>
              <th class="number" scope="row">${kept.has(step) ? link(String(step), () => open(step)) : step}</th>
              <td class="number">${formatDuration(seconds)}</td>
              ${lanes.map(lane => html`<td class="number">${exposed[lane] ? formatDuration(exposed[lane]) : ''}</td>`)}
              <td class="number">${peak}</td>
              <td class="number">${staleness}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/**
 * Renders the table of the spans that lie in the visible range and match the search, if any, in order of their start.
 */
export function stepTable({ timeline, range, matches, selected }: OpenStep, select: (span: number) => void) {
  return guard([timeline, range, matches, selected], () => {
    const { spans, names, episodes } = timeline;
    const inRange = (i: number): boolean => spans.start[i] <= range.to && spans.start[i] + spans.us[i] >= range.from;
    const all = (matches ?? Array.from(spans.start.keys())).filter(inRange);
    return html`<div class="table-scroll spans" tabindex="0">
      ${
        all.length > mostRows
          ? html`<p class="muted">The first ${mostRows} of ${all.length} spans in view: zoom in or search.</p>`
          : ''
      }
      <table>
        <caption class="visually-hidden">Spans of step ${timeline.step}</caption>
        <thead>
          <tr
            ><th class="number" scope="col">Begins</th><th class="number" scope="col">Lasts</th><th scope="col">Span</th
            ><th scope="col">Lane</th><th scope="col">Episode</th><th class="number" scope="col">Turn</th
            ><th class="number" scope="col">Rows</th><th class="number" scope="col">Tokens</th></tr
          >
        </thead>
        <tbody>
          ${all.slice(0, mostRows).map(
            i =>
              html`<tr aria-current=${i === selected ? 'true' : 'false'}>
                <td class="number">${formatUs(spans.start[i])}</td>
                <td class="number">${formatUs(spans.us[i])}</td>
                <th scope="row">${link(spanLabel(names[spans.name[i]]), () => select(i))}</th>
                <td>${laneLabels[names[spans.name[i]].lane]}</td>
                <td>${spans.episode[i] < 0 ? '' : episodes[spans.episode[i]]}</td>
                <td class="number">${spans.turn[i] || ''}</td>
                <td class="number">${spans.rows[i] || ''}</td>
                <td class="number">${spans.tokens[i] || ''}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
  });
}
