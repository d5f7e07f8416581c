// A small chart of lines over steps. A line may have an interval band, a dashed line may show a bound, and a cursor
// marks the selected step. The chart needs no layout measurement: lines are SVG paths in a stretched unit square with
// strokes of constant width, and texts are HTML. The lines are redrawn when the version of the series changes. A change
// of the step only moves the cursor. Dragging on the chart selects a step.
import { html, LitElement, nothing, svg, type PropertyValues, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { meaningOf } from '../../../extension/run-data/metric-meanings';
import { ticksOf, valueRange, type Range } from '../../../extension/run-data/charts/axis';
import { formatTick, formatValue } from '../../shared/format';
import type { LineChartSpec } from './trend-charts';
import type { RunSeries } from '../../../extension/run-data/interpretation/run-series';
import { bandPath, extentOf, lastFinite, linePath, percent, withBounds } from '../plane/unit-square';

export class LineChart extends LitElement {
  static override properties = {
    spec: { attribute: false },
    series: { attribute: false },
    version: { attribute: false },
    meanings: { attribute: false },
    step: { attribute: false },
  };

  declare spec: LineChartSpec;
  declare series: RunSeries;
  /** Version of the series; a new version redraws the lines. */
  declare version: number;
  /** Descriptions of metrics, by key. */
  declare meanings: Readonly<Record<string, string>>;
  /** The selected step. */
  declare step: number;
  declare onStep: (step: number) => void;

  private columns: ArrayLike<number>[] = [];
  private notesAt: (row: number) => string[] = () => [];
  /** The y range of the last drawing, reused while the values fit; null before the first drawing. */
  private range: Range | null = null;
  private last = 1;
  /** Tooltip of the title: key and description of each line. */
  private hint = '';
  /** The drawn lines, bands and ticks; null if no line has a value. */
  private picture: TemplateResult | null = null;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(changed: PropertyValues<LineChart>): void {
    if (changed.has('spec')) this.range = null;
    if (changed.has('spec') || changed.has('version')) this.drawLines();
    if (changed.has('spec') || changed.has('meanings')) this.hint = hintOf(this.spec, this.meanings);
  }

  protected override render(): TemplateResult {
    const { spec, picture } = this;
    const row = this.series.rowAt(this.step);
    const notes = picture ? this.notesAt(row).map(text => html`<p>${text}</p>`) : nothing;
    return html`<figure class="small-chart" data-chart=${spec.id} ?data-empty=${!picture}>
      <figcaption>
        <h3 title=${this.hint}>${spec.title}</h3>
        <dl class="small-values">${picture ? this.values(row) : nothing}</dl>
        <div class="small-notes muted">${notes}</div>
      </figcaption>
      <div
        class="small-plot"
        @pointerdown=${(event: PointerEvent) => this.startDrag(event)}
        @pointermove=${(event: PointerEvent) => this.drag(event)}
      >
        ${picture ? this.plot(picture) : html`<p class="muted">${spec.empty}</p>`}
      </div>
    </figure>`;
  }

  private plot(picture: TemplateResult): TemplateResult {
    return html`${guard([picture], () => picture)}
      <div class="cursor" aria-hidden="true" style="left:${percent(this.shareOf(this.step))}"></div>
      <span class="tick-x">${this.last}</span>`;
  }

  /**
   * Renders the latest value of each line at or before a row. If there are several lines, each value has the colour and
   * the name of its line.
   */
  private values(row: number): TemplateResult[] {
    const { lines, unit } = this.spec;
    return lines.map(({ label, colour, bound }, i) => {
      const swatch = html`<span class=${bound ? 'swatch dashed' : 'swatch'} style="--swatch:${colour}"></span>${label}`;
      const value = formatValue(lastFinite(this.columns[i], row), unit);
      return html`<div><dt>${lines.length > 1 ? swatch : nothing}</dt><dd>${value}</dd></div>`;
    });
  }

  private drawLines(): void {
    const { spec, series } = this;
    const { steps } = series;
    this.columns = spec.lines.map(({ key, values }) => values?.(series) ?? series.column(key));
    this.notesAt = spec.notes?.(this.columns) ?? (() => []);
    const bands = spec.lines.map(
      ({ band }) => band && { low: series.column(band.low), high: series.column(band.high) },
    );
    const own = this.columns.filter((_, i) => !spec.lines[i].bound);
    const ends = bands.flatMap(band => (band ? [band.low, band.high] : []));
    const extent = withBounds(extentOf([...own, ...ends]), extentOf(this.columns));
    this.picture = null;
    if (!extent) return;
    this.last = Math.max(1, steps.at(-1) ?? 1);
    const range = valueRange(extent.low, extent.high, this.range);
    this.range = range;
    const { min, max } = range;
    const across = (step: number): number => this.shareOf(step);
    const down = (value: number): number => 1 - (value - min) / (max - min);
    const areas = bands.map((band, i) => {
      const style = `fill:${spec.lines[i].colour}`;
      return band && svg`<path class="band" d=${bandPath(steps, band, across, down)} style=${style}></path>`;
    });
    const lines = spec.lines.map(({ colour, bound }, i) => {
      const d = linePath(steps, this.columns[i], across, down);
      return svg`<path class=${bound ? 'bound' : `line line-${i}`} d=${d} style="stroke:${colour}"></path>`;
    });
    const ticks = ticksOf(range, false).map(
      tick => html`<span class="tick" style="top:${percent(down(tick))}">${formatTick(tick, spec.unit)}</span>`,
    );
    this.picture = html`${ticks}<svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
        ${areas}${lines}
      </svg>`;
  }

  private shareOf(step: number): number {
    return Math.max(0, Math.min(1, step / this.last));
  }

  private startDrag(event: PointerEvent): void {
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    this.drag(event, true);
  }

  private drag(event: PointerEvent, pressed = event.buttons > 0): void {
    const { left, width } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    if (pressed && width > 0) this.onStep(Math.round(((event.clientX - left) / width) * this.last));
  }
}

customElements.define('line-chart', LineChart);

function hintOf({ lines, hint }: LineChartSpec, meanings: Readonly<Record<string, string>>): string {
  const sentences = lines.map(({ key, label }) => `${label}: ${key}\n${meaningOf(meanings, key) ?? ''}`.trim());
  return [...sentences, ...(hint === undefined ? [] : [hint])].join('\n\n');
}
