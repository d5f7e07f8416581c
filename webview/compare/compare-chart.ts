// The chart of one metric as an element without a shadow root. The draw queue calls the function that updates the
// drawing. This function recomputes the drawing only if values or settings have changed. While the chart is off
// screen, it draws nothing and holds no canvas memory.
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { chartCard, chartValue } from '../components/chart-card';
import { button } from '../components/controls';
import type { OnScreen } from '../components/on-screen';
import '../components/plot-canvas';
import type { PlotCanvas } from '../components/plot-canvas';
import { QueuedChart } from '../components/queued-chart';
import { lowerBound, type Point } from '../../extension/run-data/charts/curve';
import type { Range } from '../../extension/run-data/charts/axis';
import type { DrawQueue } from '../charts/draw-queue';
import { axisWidth, type Plotter } from '../charts/plot';
import { listenForZoom, panned, spansOf, zoomed } from '../dashboard/charts/zoom';
import { entryOfKey } from '../shared/keyboard';
import { formatChange, formatValue } from '../shared/format';
import { areSame } from '../shared/memoize-latest';
import type { Theme } from '../shared/theme';
import type { CompareActions } from './actions';
import type { ComparedMetric } from './compared-metrics';
import { comparisonOf, type Comparison } from '../../extension/run-data/charts/comparison';
import type { RunCurve } from '../../extension/run-data/charts/group-curves';
import { formatPosition } from '../../extension/run-data/charts/run-axis';
import type { ComparedLook, CompareSettings } from './state';

/** Services shared by all charts; constant while the page is open. */
export interface ChartTools {
  readonly plotter: Plotter;
  readonly queue: DrawQueue;
  readonly screen: OnScreen;
  readonly actions: CompareActions;
  /** Reports the position under the pointer; null when the pointer leaves the chart. */
  hover(x: number | null): void;
  /** Reports that the chart of a metric has entered or left the screen. */
  appear(key: string, isOnScreen: boolean): void;
}

/** Number of groups whose values fit into the chart's head; with more groups, the head shows the highest values. */
const headGroups = 4;
const headValues = 3;

export class CompareChart extends QueuedChart {
  /** The keys of a chart with the focus. */
  static readonly keys: Readonly<Record<string, { readonly does: string; run(chart: CompareChart): void }>> = {
    '+': { does: 'Zoom in', run: chart => chart.zoomBy(0.5, chart.hovered) },
    '-': { does: 'Zoom out', run: chart => chart.zoomBy(2, chart.hovered) },
    '0': { does: 'Show everything', run: chart => chart.tools.actions.show(null) },
    ArrowLeft: { does: 'Move the visible part', run: chart => chart.panBy(-chart.quarter) },
    ArrowRight: { does: 'Move the visible part', run: chart => chart.panBy(chart.quarter) },
    l: {
      does: 'Logarithmic or linear scale',
      run: ({ tools, metric }) => tools.actions.toggle(metric.key, 'log'),
    },
    Enter: { does: 'Enlarge or shrink', run: ({ tools, metric }) => tools.actions.toggle(metric.key, 'enlarged') },
  };

  static override properties = {
    metric: { attribute: false },
    look: { attribute: false },
    curves: { attribute: false },
    theme: { attribute: false },
    smoothing: { attribute: false },
    zoom: { attribute: false },
    log: { attribute: false },
    large: { attribute: false },
    hovered: { attribute: false },
    isOnScreen: { attribute: false },
  };

  declare tools: ChartTools;
  declare metric: ComparedMetric;
  declare look: ComparedLook;
  /** One curve per run; null until the curves have been received. */
  declare curves: readonly RunCurve[] | null;
  declare theme: Theme;
  declare smoothing: number;
  declare zoom: CompareSettings['zoom'];
  /** Whether the y scale is logarithmic; differences from a baseline are always linear. */
  declare log: boolean;
  declare large: boolean;
  /** Position of the crosshair on the x axis. */
  declare hovered: number | null;
  declare isOnScreen: boolean;

  private comparison: Comparison | null = null;
  /** Inputs from which `comparison` was computed. */
  private inputs: readonly unknown[] = [];
  /** The y range of the last drawing, and the scale to which it belongs. */
  private range: { y: Range; scale: string } | null = null;

  constructor() {
    super();
    this.curves = null;
    this.zoom = null;
    this.log = false;
    this.large = false;
    this.hovered = null;
    this.isOnScreen = false;
  }

  protected override shouldUpdate(changed: PropertyValues): boolean {
    return this.isOnScreen || !this.hasUpdated || changed.has('isOnScreen') || changed.has('metric');
  }

  protected override willUpdate(): void {
    const { isOnScreen, metric, look, curves, theme, smoothing, zoom, log, large } = this;
    const { groups, axis, baseline, events } = look;
    const positions = axis === 'step' ? (curves?.map(({ steps }) => steps) ?? null) : look.positions;
    const inputs = [metric, look, curves, theme, smoothing, zoom, log, large];
    if (!isOnScreen || !curves || !positions || areSame(inputs, this.inputs)) return;
    this.inputs = inputs;
    const scale = `${log} ${baseline}`;
    const previous = this.range?.scale === scale ? this.range.y : null;
    const options = { theme, smoothing, axis, zoom, log, large, baseline, events, previous };
    this.comparison = comparisonOf(metric, groups, curves, positions, options);
    if (this.comparison.data) this.range = { y: this.comparison.data.y, scale };
  }

  protected override render(): TemplateResult {
    const { metric, comparison, isOnScreen, hovered, tools, large, look } = this;
    const { key, title, hint } = metric;
    const data = comparison?.data ?? null;
    return chartCard({
      id: key,
      label: title,
      title: html`<button
        class="plain chart-title"
        type="button"
        title=${hint}
        @click=${() => tools.actions.toggle(key, 'enlarged')}
        >${title}</button
      >`,
      large,
      state: data ? 'drawn' : comparison ? 'empty' : 'waiting',
      values: data ? this.headValues() : nothing,
      tools: data ? this.toolButtons() : undefined,
      content: html`<div
          class="chart-plot"
          tabindex="0"
          role="group"
          aria-label=${`${title}: + and − zoom, arrow keys move, 0 shows all, l is logarithmic, Enter enlarges`}
          @pointermove=${this.onPoint}
          @pointerleave=${() => tools.hover(null)}
          @keydown=${this.onKey}
        >
          <plot-canvas
            .plotter=${tools.plotter}
            .data=${isOnScreen ? data : null}
            .crosshair=${hovered === null ? null : { x: hovered, label: formatPosition(hovered, look.axis) }}
            .label=${data ? `Chart of ${title}. ${this.latest()}` : ''}
          ></plot-canvas>
          <div class="selection" hidden></div>
        </div>
        ${large && data ? html`<div class="compare-legend">${this.legend()}</div>` : nothing}`,
    });
  }

  protected override firstUpdated(): void {
    super.firstUpdated();
    const area = this.querySelector<HTMLElement>('.chart-plot')!;
    const { actions } = this.tools;
    listenForZoom(area, area.querySelector<HTMLElement>('.selection')!, {
      xAt: pixel => this.canvas.plot?.xAt(pixel) ?? Number.NaN,
      edges: () => [axisWidth, area.clientWidth],
      zoomBy: this.zoomBy,
      panBy: this.panBy,
      show: part => actions.show(part),
      reset: () => actions.show(null),
    });
  }

  protected override updated(): void {
    this.canvas.flush(); // draws at once; on screen, the draw queue has called this update
  }

  private get canvas(): PlotCanvas {
    return this.querySelector('plot-canvas')!;
  }

  protected override appear(isOnScreen: boolean): void {
    this.tools.appear(this.metric.key, isOnScreen);
  }

  private readonly onPoint = ({ offsetX, offsetY }: PointerEvent): void => {
    const { plot } = this.canvas;
    if (!plot) return;
    this.canvas.title = plot.markAt(offsetX, offsetY)?.event.message ?? '';
    const x = Math.max(0, plot.xAt(offsetX));
    this.tools.hover(this.look.axis === 'step' ? Math.round(x) : x);
  };

  private readonly zoomBy = (factor: number, about: number | null): void => {
    if (!this.comparison) return;
    const { whole, shown } = spansOf(this.comparison, this.zoom);
    this.tools.actions.show(zoomed(shown, whole, factor, about ?? (shown.from + shown.to) / 2));
  };

  private readonly panBy = (distance: number): void => {
    if (!this.comparison || !this.zoom || !Number.isFinite(distance)) return;
    const { whole, shown } = spansOf(this.comparison, this.zoom);
    this.tools.actions.show(panned(shown, whole, distance));
  };

  private readonly onKey = (event: KeyboardEvent): void => {
    const action = entryOfKey(CompareChart.keys, event);
    if (!action) return;
    event.preventDefault();
    action.run(this);
  };

  /** A quarter of the visible range; 0 without a zoom. */
  private get quarter(): number {
    return this.zoom ? (this.zoom.to - this.zoom.from) / 4 : 0;
  }

  private toolButtons(): TemplateResult {
    const { metric, log, large, tools, look } = this;
    const { key, title } = metric;
    const scale = button({
      label: 'log',
      pressed: log,
      hidden: look.baseline !== null,
      title: `Logarithmic scale of ${title} ( l )`,
      onClick: () => tools.actions.toggle(key, 'log'),
    });
    const size = button({
      label: large ? `Shrink ${title}` : `Enlarge ${title}`,
      icon: large ? 'shrink' : 'grow',
      iconOnly: true,
      onClick: () => tools.actions.toggle(key, 'enlarged'),
    });
    return html`${scale}${size}`;
  }

  /** Renders the groups' values at the crosshair, else the latest values. Of many groups, the highest are shown. */
  private headValues(): TemplateResult {
    const values = this.groupValues();
    const shown =
      values.length <= headGroups
        ? values
        : values
            .filter(({ y }) => Number.isFinite(y))
            .sort((a, b) => b.y - a.y)
            .slice(0, headValues);
    return html`${shown.map(({ text, label, colour }) => chartValue(text, { label, colour, onHover: true }))}`;
  }

  /** Renders all groups with their values, below an enlarged chart. */
  private legend(): TemplateResult[] {
    return this.groupValues().map(({ text, label, colour }) => chartValue(text, { label, colour }));
  }

  private groupValues(): { label: string; colour: string; y: number; text: string }[] {
    const { theme, hovered, comparison, look, metric } = this;
    return look.groups.map(({ label, colour }, i) => {
      const y = lastAt(comparison?.means[i] ?? [], hovered)?.y ?? Number.NaN;
      const text = look.baseline === null ? formatValue(y, metric.unit) : formatChange(y, metric.unit);
      return { label, colour: theme.palette[colour % theme.palette.length], y, text };
    });
  }

  private latest(): string {
    return this.groupValues()
      .map(({ label, text }) => `${label}: ${text}`)
      .join('; ');
  }
}

/** Returns the last point at or before a position; the last point of all if the position is null. */
function lastAt(points: readonly Point[], x: number | null): Point | undefined {
  if (x === null) return points.at(-1);
  const after = lowerBound(
    points.map(point => point.x),
    x,
  );
  return points[after]?.x === x ? points[after] : points[after - 1];
}

customElements.define('compare-chart', CompareChart);
