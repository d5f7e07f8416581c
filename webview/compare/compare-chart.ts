// The chart of one metric as an element without a shadow root. The draw queue calls the function that updates the
// drawing. This function recomputes the drawing only if values, theme or smoothing have changed. While the chart is off
// screen, it draws nothing and holds no canvas memory.
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { chartCard, chartValue } from '../components/chart-card';
import type { OnScreen } from '../components/on-screen';
import '../components/plot-canvas';
import type { PlotCanvas } from '../components/plot-canvas';
import { QueuedChart } from '../components/queued-chart';
import type { Range } from '../charts/axis';
import type { DrawQueue } from '../charts/draw-queue';
import type { Plotter } from '../charts/plot';
import { formatValue } from '../shared/format';
import { areSame } from '../shared/memoize-latest';
import type { Theme } from '../shared/theme';
import type { ColouredGroup, ComparedMetric } from './compared-metrics';
import { comparisonOf, type Comparison } from './comparison';
import type { RunCurve } from './group-curves';

/** Services shared by all charts; constant while the page is open. */
export interface ChartTools {
  readonly plotter: Plotter;
  readonly queue: DrawQueue;
  readonly screen: OnScreen;
  /** Reports the step under the pointer; null when the pointer leaves the chart. */
  hover(step: number | null): void;
  /** Reports that the chart of a metric has entered or left the screen. */
  appear(key: string, isOnScreen: boolean): void;
}

export class CompareChart extends QueuedChart {
  static override properties = {
    metric: { attribute: false },
    groups: { attribute: false },
    curves: { attribute: false },
    theme: { attribute: false },
    smoothing: { attribute: false },
    hovered: { attribute: false },
    isOnScreen: { attribute: false },
  };

  declare tools: ChartTools;
  declare metric: ComparedMetric;
  declare groups: readonly ColouredGroup[];
  /** One curve per run; null until the curves have been received. */
  declare curves: readonly RunCurve[] | null;
  declare theme: Theme;
  declare smoothing: number;
  /** Step of the crosshair. */
  declare hovered: number | null;
  declare isOnScreen: boolean;

  private comparison: Comparison | null = null;
  /** Inputs from which `comparison` was computed. */
  private inputs: readonly unknown[] = [];
  /** The y range of the last drawing. */
  private range: Range | null = null;

  constructor() {
    super();
    this.curves = null;
    this.hovered = null;
    this.isOnScreen = false;
  }

  protected override shouldUpdate(changed: PropertyValues): boolean {
    return this.isOnScreen || !this.hasUpdated || changed.has('isOnScreen') || changed.has('metric');
  }

  protected override willUpdate(): void {
    const { isOnScreen, metric, groups, curves, theme, smoothing, range } = this;
    const inputs = [metric, groups, curves, theme, smoothing];
    if (!isOnScreen || !curves || areSame(inputs, this.inputs)) return;
    this.inputs = inputs;
    this.comparison = comparisonOf(metric, groups, curves, { theme, smoothing, previous: range });
    if (this.comparison.data) this.range = this.comparison.data.y;
  }

  protected override render(): TemplateResult {
    const { metric, comparison, isOnScreen, hovered, tools } = this;
    const { key, title, hint } = metric;
    const data = comparison?.data ?? null;
    return chartCard({
      id: key,
      label: title,
      title,
      hint,
      state: data ? 'drawn' : comparison ? 'empty' : 'waiting',
      values: data ? this.values(comparison!, hovered) : nothing,
      content: html`<div class="chart-plot" @pointermove=${this.onPoint} @pointerleave=${() => tools.hover(null)}>
        <plot-canvas
          .plotter=${tools.plotter}
          .data=${isOnScreen ? data : null}
          .crosshair=${hovered === null ? null : { x: hovered, label: String(hovered) }}
          .label=${data ? `Chart of ${title}. ${this.latest(comparison!)}` : ''}
        ></plot-canvas>
      </div>`,
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

  private readonly onPoint = ({ offsetX }: PointerEvent): void => {
    const { plot } = this.canvas;
    if (plot) this.tools.hover(Math.round(plot.xAt(offsetX)));
  };

  /** Renders the groups' values at `step`. If `step` is null, renders their latest values. */
  private values({ means }: Comparison, step: number | null): TemplateResult {
    const { palette } = this.theme;
    const values = this.groups.map(({ label, colour }, i) => {
      const points = means[i] ?? [];
      const at = step === null ? points.at(-1) : points.findLast(({ x }) => x <= step);
      const value = formatValue(at?.y ?? Number.NaN, this.metric.unit);
      return chartValue(value, { label, colour: palette[colour % palette.length], onHover: true });
    });
    return html`${values}`;
  }

  private latest({ means }: Comparison): string {
    const texts = this.groups.map(({ label }, i) => {
      const { y } = means[i]?.at(-1) ?? { y: Number.NaN };
      return `${label}: ${formatValue(y, this.metric.unit)}`;
    });
    return texts.join('; ');
  }
}

customElements.define('compare-chart', CompareChart);
