// The chart of two columns of a query's result: lines if x is numeric, one line per value of the series column; bars if x
// is a text.
import { html, nothing, type TemplateResult } from 'lit';
import type { QueryResult, QueryValue } from '../../extension/protocol/query-result';
import { valueRange, zoomRange } from '../../extension/run-data/charts/axis';
import type { Point } from '../../extension/run-data/charts/curve';
import { lineStyle, type PlotData } from '../../extension/run-data/charts/plot-data';
import type { Plotter } from '../charts/plot';
import { dropdown } from '../components/controls';
import '../components/plot-canvas';
import { formatNumber } from '../shared/format';
import type { Theme } from '../shared/theme';
import type { QueryActions } from './actions';
import { chartColumns, numericColumns, type ChartChoice } from './state';

/** Bars and lines in the chart; more cannot be told apart. */
const mostBars = 30;
const mostLines = 8;

export function resultChart(
  result: QueryResult,
  choice: ChartChoice,
  theme: Theme,
  actions: QueryActions,
  plotter: Plotter,
): TemplateResult | typeof nothing {
  const shown = chartColumns(result, choice);
  if (!shown || result.rows.length === 0) return nothing;
  const numeric = numericColumns(result);
  const isLine = numeric.includes(shown.x);
  const names = result.columns.map(({ name }): [string, string] => [name, name]);
  const nameOf = (i: number | null): string => (i === null ? '' : result.columns[i].name);
  return html`<section class="query-chart" aria-label="Chart">
    <div class="query-bar">
      <span>Chart</span>
      ${dropdown({
        label: 'y',
        choices: numeric.map(i => names[i]),
        value: nameOf(shown.y),
        onChange: y => actions.chart({ y }),
      })}
      <span class="muted">by</span>
      ${dropdown({ label: 'x', choices: names, value: nameOf(shown.x), onChange: x => actions.chart({ x }) })}
      ${
        isLine
          ? html`<span class="muted">a line for each</span>${dropdown({
                label: 'A line for each value of',
                choices: [['-', 'none'], ...names.filter((_, i) => i !== shown.x && i !== shown.y)],
                value: nameOf(shown.series) || '-',
                onChange: series => actions.chart({ series }),
              })}`
          : nothing
      }
    </div>
    ${isLine ? lines(result, shown, theme, plotter) : bars(result, shown)}
  </section>`;
}

interface Shown {
  x: number;
  y: number;
  series: number | null;
}

const labelOf = (value: QueryValue): string =>
  value === null ? 'null' : typeof value === 'string' ? value : JSON.stringify(value);

function bars({ columns, rows }: QueryResult, { x, y }: Shown): TemplateResult {
  const values = rows.flatMap(row => (typeof row[y] === 'number' ? [{ label: labelOf(row[x]), value: row[y] }] : []));
  const most = values.reduce((found, { value }) => Math.max(found, Math.abs(value)), 0) || 1;
  return html`<ol class="query-bars" aria-label=${`${columns[y].name} by ${columns[x].name}`}>
      ${values.slice(0, mostBars).map(
        ({ label, value }) =>
          html`<li>
            <span class="bar-label" title=${label}>${label}</span>
            <span class="bar-track"><span class="bar" style="width: ${(100 * Math.abs(value)) / most}%"></span></span>
            <span class="number">${formatNumber(value)}</span>
          </li>`,
      )}
    </ol>
    ${values.length > mostBars ? html`<p class="muted">The first ${mostBars} of ${values.length} bars.</p>` : nothing}`;
}

function lines(result: QueryResult, shown: Shown, theme: Theme, plotter: Plotter): TemplateResult {
  const groups = seriesOf(result, shown);
  const data = dataOf(groups.slice(0, mostLines), result.columns[shown.y].name, theme);
  const names = groups.slice(0, mostLines).map(({ label }) => label);
  return html`<div class="chart-plot"
      ><plot-canvas
        .plotter=${plotter}
        .data=${data}
        .label=${`Chart of ${result.columns[shown.y].name} by ${result.columns[shown.x].name}${shown.series === null ? '' : `: ${names.join(', ')}`}`}
      ></plot-canvas
    ></div>
    ${
      shown.series === null
        ? nothing
        : html`<ul class="query-legend">
            ${names.map(
              (name, i) =>
                html`<li
                  ><span class="swatch" style="background: ${lineStyle(theme, i, 0).colour}" aria-hidden="true"></span
                  >${name}</li
                >`,
            )}
            ${groups.length > mostLines ? html`<li class="muted">and ${groups.length - mostLines} more</li>` : nothing}
          </ul>`
    }`;
}

/** Returns the points of each line, in order of x; lines in the order of their first rows. */
export function seriesOf({ rows }: QueryResult, { x, y, series }: Shown): { label: string; points: Point[] }[] {
  const groups = new Map<string, Point[]>();
  for (const row of rows) {
    const [at, value] = [row[x], row[y]];
    if (typeof at !== 'number' || typeof value !== 'number') continue;
    const label = series === null ? '' : labelOf(row[series]);
    if (!groups.has(label)) groups.set(label, []);
    groups.get(label)!.push({ x: at, y: value });
  }
  return [...groups].map(([label, points]) => ({ label, points: points.sort((a, b) => a.x - b.x) }));
}

function dataOf(groups: readonly { label: string; points: Point[] }[], title: string, theme: Theme): PlotData | null {
  const points = groups.flatMap(group => group.points);
  if (points.length === 0) return null;
  const [left, right] = [
    points.reduce((a, { x }) => Math.min(a, x), Infinity),
    points.reduce((a, { x }) => Math.max(a, x), -Infinity),
  ];
  const [low, high] = [
    points.reduce((a, { y }) => Math.min(a, y), Infinity),
    points.reduce((a, { y }) => Math.max(a, y), -Infinity),
  ];
  return {
    title,
    lines: groups.map(({ label, points: own }, i) => ({ ...lineStyle(theme, i, 0), label, points: own })),
    x: left < right ? zoomRange(left, right) : zoomRange(left - 1, left + 1),
    y: valueRange(low, high, null),
    log: false,
    unit: 'number',
    axis: 'step',
    marks: [],
    theme,
    large: true,
  };
}
