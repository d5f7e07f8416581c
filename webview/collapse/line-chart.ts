// A small chart: lines over steps, an interval band, a bound, and the cursor of the current step, shared by all charts.
// An SVG without layout measurement: lines are drawn in a unit square that stretches, with strokes that do not; texts
// are HTML. Dragging on it changes the step.
import { appendAll } from '../../extension/common/lists';
import { ticksOf, valueRange, type Range } from '../dashboard/axis';
import { h, replaceChildren, setAttribute, svg } from '../shared/dom';
import { formatTick, formatValue, type Unit } from '../shared/format';
import type { RunSeries } from './run-series';

export interface ChartLine {
  key: string;
  label: string;
  /** A CSS colour. */
  colour: string;
  /** Keys of the ends of the interval around the line. */
  band?: { low: string; high: string };
  /** A reference for other lines, drawn dashed. */
  bound?: boolean;
  /** Computes the values instead of reading them by key. */
  values?(series: RunSeries): ArrayLike<number>;
}

export interface LineChartSpec {
  id: string;
  title: string;
  unit: Unit;
  lines: readonly ChartLine[];
  /** Text under the title if the chart is empty. */
  empty: string;
  /** Returns a function from a row to notes about the lines' values there, one sentence each. */
  notes?(columns: readonly ArrayLike<number>[]): (row: number) => string[];
}

export interface LineChart {
  element: HTMLElement;
  /** Redraws the series; `meaning` returns the description of a metric. */
  draw(series: RunSeries, meaning: (key: string) => string | undefined): void;
  /** Moves the cursor to a step and shows the values there. */
  look(step: number): void;
}

/** Maximum number of buckets per line; a line with more points is drawn as the extremes of each bucket. */
const resolution = 400;

export function lineChart(spec: LineChartSpec, scrub: (step: number) => void): LineChart {
  const values = h('dl', { class: 'small-values' });
  const title = h('h3', {}, spec.title);
  const notes = h('div', { class: 'small-notes muted' });
  const cursor = h('div', { class: 'cursor', 'aria-hidden': 'true' });
  const picture = svg('svg', { viewBox: '0 0 1 1', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  const plot = h('div', { class: 'small-plot' });
  const element = h(
    'figure',
    { class: 'small-chart', 'data-chart': spec.id },
    h('figcaption', {}, title, values, notes),
    plot,
  );
  let series: RunSeries | null = null;
  let columns: ArrayLike<number>[] = [];
  let notesAt: (row: number) => string[] = () => [];
  let last = 1;
  let range: Range | null = null;

  const shareOf = (step: number) => (last > 0 ? Math.max(0, Math.min(1, step / last)) : 0);
  const drag = (event: PointerEvent) => {
    const { left, width } = plot.getBoundingClientRect();
    if (width > 0) scrub(Math.round(((event.clientX - left) / width) * last));
  };
  plot.addEventListener('pointerdown', event => {
    plot.setPointerCapture(event.pointerId);
    drag(event);
  });
  plot.addEventListener('pointermove', event => event.buttons > 0 && drag(event));

  return {
    element,
    draw(now, meaning) {
      series = now;
      columns = spec.lines.map(({ key, values: made }) => made?.(now) ?? now.column(key));
      notesAt = spec.notes?.(columns) ?? (() => []);
      const sentences = spec.lines.map(({ key, label }) => `${label}: ${key}\n${meaning(key) ?? ''}`.trim());
      setAttribute(title, 'title', sentences.join('\n\n'));
      const bands = spec.lines.map(({ band }) => band && { low: now.column(band.low), high: now.column(band.high) });
      const drawn = columns.filter((_, i) => !spec.lines[i].bound);
      const extent = withBounds(
        extentOf([...drawn, ...bands.flatMap(band => (band ? [band.low, band.high] : []))]),
        extentOf(columns),
      );
      element.toggleAttribute('data-empty', !extent);
      if (!extent) return replaceChildren(plot, h('p', { class: 'muted' }, spec.empty));
      last = Math.max(1, now.steps.at(-1) ?? 1);
      range = valueRange(extent.low, extent.high, range);
      const { min, max } = range;
      const at = (value: number) => 1 - (value - min) / (max - min);
      const shape = (column: ArrayLike<number>) => pathOf(now.steps, column, shareOf, at);
      replaceChildren(
        picture,
        ...bands.map(
          (band, i) =>
            band &&
            svg('path', {
              class: 'band',
              d: bandOf(now.steps, band, shareOf, at),
              style: `fill:${spec.lines[i].colour}`,
            }),
        ),
        ...spec.lines.map(({ colour, bound }, i) =>
          svg('path', { class: bound ? 'bound' : `line line-${i}`, d: shape(columns[i]), style: `stroke:${colour}` }),
        ),
      );
      const ticks = ticksOf(range, false).map(tick =>
        h('span', { class: 'tick', style: `top:${percent(at(tick))}` }, formatTick(tick, spec.unit)),
      );
      replaceChildren(plot, ...ticks, picture, cursor, h('span', { class: 'tick-x' }, String(last)));
    },
    look(step) {
      if (!series || element.hasAttribute('data-empty')) return [values, notes].forEach(each => replaceChildren(each));
      cursor.style.left = percent(shareOf(step));
      const row = series.rowAt(step);
      const parts = spec.lines.flatMap(({ label, colour, bound }, i) => {
        const value = lastFinite(columns[i], row);
        const sign = h('span', { class: bound ? 'swatch dashed' : 'swatch', style: `--swatch:${colour}` });
        const name = h('dt', {}, spec.lines.length > 1 && sign, spec.lines.length > 1 && label);
        return h('div', {}, name, h('dd', {}, formatValue(value, spec.unit)));
      });
      replaceChildren(values, ...parts);
      replaceChildren(notes, ...notesAt(row).map(text => h('p', {}, text)));
    },
  };
}

const percent = (share: number): string => `${(100 * share).toFixed(3)}%`;

/** The latest finite value at or before a row. */
export function lastFinite(column: ArrayLike<number>, row: number): number {
  for (let i = Math.min(row, column.length - 1); i >= 0; i--) if (Number.isFinite(column[i])) return column[i];
  return NaN;
}

interface Extent {
  low: number;
  high: number;
}

function extentOf(columns: readonly ArrayLike<number>[]): Extent | null {
  let [low, high] = [Infinity, -Infinity];
  for (const column of columns)
    for (let i = 0; i < column.length; i++) {
      if (!Number.isFinite(column[i])) continue;
      low = Math.min(low, column[i]);
      high = Math.max(high, column[i]);
    }
  return low <= high ? { low, high } : null;
}

/** Extends the range to include bounds, unless that more than doubles it: a distant bound would flatten the line. */
function withBounds(own: Extent | null, all: Extent | null): Extent | null {
  if (!own || !all) return own;
  const [low, high] = [Math.min(own.low, all.low), Math.max(own.high, all.high)];
  return high - low <= 2 * (own.high - own.low) ? { low, high } : own;
}

type ToPixel = (value: number) => number;
const spot = (x: number, y: number): string => `${x.toFixed(4)} ${y.toFixed(4)}`;

/** A line through the finite values: gaps between diagnoses are bridged, a single value is a dot. */
function pathOf(steps: readonly number[], column: ArrayLike<number>, x: ToPixel, y: ToPixel): string {
  const rows = thinned(column);
  if (rows.length === 1) return `M${spot(x(steps[rows[0]]), y(column[rows[0]]))}h0`;
  return rows.map((row, i) => `${i === 0 ? 'M' : 'L'}${spot(x(steps[row]), y(column[row]))}`).join('');
}

function bandOf(
  steps: readonly number[],
  { low, high }: { low: ArrayLike<number>; high: ArrayLike<number> },
  x: ToPixel,
  y: ToPixel,
): string {
  const rows = thinned(high).filter(row => Number.isFinite(low[row]));
  if (rows.length < 2) return '';
  const edge = (column: ArrayLike<number>, order: readonly number[]) =>
    order.map(row => spot(x(steps[row]), y(column[row]))).join('L');
  return `M${edge(high, rows)}L${edge(low, rows.toReversed())}Z`;
}

/** Rows with a finite value; of very many, the minimum and the maximum of each of `resolution` buckets. */
export function thinned(column: ArrayLike<number>): number[] {
  const rows: number[] = [];
  for (let i = 0; i < column.length; i++) if (Number.isFinite(column[i])) rows.push(i);
  if (rows.length <= 2 * resolution) return rows;
  const kept: number[] = [];
  const size = rows.length / resolution;
  for (let bucket = 0; bucket < resolution; bucket++) {
    const some = rows.slice(Math.floor(bucket * size), Math.floor((bucket + 1) * size));
    const least = some.reduce((a, b) => (column[b] < column[a] ? b : a));
    const most = some.reduce((a, b) => (column[b] > column[a] ? b : a));
    appendAll(kept, least === most ? [least] : [Math.min(least, most), Math.max(least, most)]);
  }
  return kept;
}
