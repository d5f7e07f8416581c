// The timeline of a prompt: a drawing of the returns that its episodes had at each step, and below the drawing a slider
// over these steps.
import { html, svg, type TemplateResult } from 'lit';
import type { EpisodeTable } from '../../../extension/run-data/episode-table';
import { returnName } from '../../../extension/run-data/running-returns';
import { formatSigned } from '../../shared/format';
import type { EpisodesActions } from '../actions';
import { occurrenceName, type Occurrence } from './over-training';
import type { PromptHistory } from './reader-subject';

export function timelineView(history: PromptHistory, { goOccurrence }: EpisodesActions): TemplateResult {
  const { table, all, at } = history;
  const [success, judged] = [table.column('success'), table.column('judged')];
  const { rows } = all[at];
  const role = table.rolesOf(rows[0])[0]?.role;
  const solved = rows.reduce((total, row) => total + success[row], 0);
  const mean = rows.reduce((total, row) => total + returnOf(table, row), 0) / rows.length;
  const where = [
    occurrenceName(all[at]),
    `${at + 1} of ${all.length}`,
    ...(rows.some(row => judged[row] === 1) ? [`${solved}/${rows.length} solved`] : []),
    `mean ${returnName({ role })} ${formatSigned(mean)}`,
  ];
  const onInput = ({ target }: Event): void => goOccurrence(Number((target as HTMLInputElement).value));
  // `value` must be bound after `max`, because `max` limits it.
  return html`<div class="timeline">
    <div class="strip">${returnStrip(history)}</div>
    <input
      type="range"
      min="0"
      max=${all.length - 1}
      step="1"
      .value=${String(at)}
      aria-label="Step at which the prompt occurred"
      aria-valuetext=${occurrenceName(all[at])}
      @input=${onInput}
    />
    <output class="where">${where.join(' · ')}</output>
  </div>`;
}

/** Returns the return of a row: that of the first role in an environment with roles. */
const returnOf = (table: EpisodeTable, row: number): number =>
  table.rolesOf(row)[0]?.reward ?? table.column('reward')[row];

const size = { width: 1000, height: 56, edge: 6 };
/** Maximum number of dots; for more episodes, only the mean and the range of each step are drawn. */
const mostDots = 4000;

/**
 * Draws the return of each episode as a dot (larger if the episode succeeded), the mean as a line, and the selected
 * step as a bar.
 */
function returnStrip({ table, all, at }: PromptHistory): TemplateResult {
  const success = table.column('success');
  const { width, height, edge } = size;
  const values = all.flatMap(({ rows }) => rows.map(row => returnOf(table, row)));
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const x = (i: number): number => (all.length === 1 ? width / 2 : edge + (i / (all.length - 1)) * (width - 2 * edge));
  const y = (value: number): number =>
    high === low ? height / 2 : height - edge - ((value - low) / (high - low)) * (height - 2 * edge);
  const mean = ({ rows }: Occurrence): number =>
    rows.reduce((total, row) => total + returnOf(table, row), 0) / rows.length;
  const path = all.map((each, i) => `${i === 0 ? 'M' : 'L'}${x(i).toFixed(1)} ${y(mean(each)).toFixed(1)}`).join('');
  const dot = (row: number, i: number): TemplateResult<2> =>
    svg`<path
      class=${success[row] ? 'solved' : 'unsolved'}
      d=${`M${x(i).toFixed(1)} ${y(returnOf(table, row)).toFixed(1)}h0`}
    ></path>`;
  const dots = values.length > mostDots ? [] : all.flatMap(({ rows }, i) => rows.map(row => dot(row, i)));
  return html`<svg
    viewBox="0 0 ${width} ${height}"
    preserveAspectRatio="none"
    role="img"
    aria-label="Returns of this prompt’s episodes over training, from ${formatSigned(low)} to ${formatSigned(high)}"
  >
    <rect class="here" x=${(x(at) - 4).toFixed(1)} y="0" width="8" height=${height}></rect>
    <path class="mean" d=${path}></path>
    ${dots}
  </svg>`;
}
