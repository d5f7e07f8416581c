// One metric of several runs: one line per group with its band over seeds, and each seed as a thin line behind it.
// Drawn only while on screen.
import { maximum } from '../../extension/common/lists';
import { h, setAttribute, setText } from '../shared/dom';
import { formatValue, type Unit } from '../shared/format';
import type { Theme } from '../shared/theme';
import { progressRange, type Range } from '../dashboard/axis';
import type { Point } from '../dashboard/curve';
import type { DrawQueue } from '../dashboard/draw-queue';
import { lineStyle, yRange, type PlotLine } from '../dashboard/plot-data';
import type { Plot, Plotter } from '../dashboard/plot';
import { groupCurve, pointsOf, type RunCurve } from './group-curves';

export interface ChartedGroup {
  label: string;
  /** Index of its colour in the palette, and of the group. */
  colour: number;
  index: number;
  /** One curve per run. */
  curves: RunCurve[];
}

export interface ComparedMetric {
  key: string;
  title: string;
  unit: Unit;
}

export class CompareChart {
  readonly element: HTMLElement;
  private readonly canvas = h('canvas', { role: 'img' });
  private readonly value = h('div', { class: 'chart-values' });
  private readonly crosshair = h('div', { class: 'crosshair', hidden: true }, h('span'));
  private plot: Plot | null = null;
  private visible = false;
  private groups: ChartedGroup[] = [];
  private means: Point[][] = [];
  private range: Range | null = null;
  private theme: Theme | null = null;
  private smoothing = 0;
  private readonly redraw = () => this.drawNow();

  /**
   * `hover` receives the step under the pointer, or null when it leaves; `wanted` is called when the chart comes on
   * screen.
   */
  constructor(
    readonly metric: ComparedMetric,
    meaning: string | undefined,
    private readonly plotter: Plotter,
    private readonly queue: DrawQueue,
    events: { hover(step: number | null): void; wanted(): void },
  ) {
    const { key, title } = metric;
    const area = h('div', { class: 'chart-plot' }, this.canvas, this.crosshair);
    this.element = h(
      'article',
      { class: 'chart', 'data-chart': key, 'data-empty': 'waiting', 'aria-label': title },
      h('header', { class: 'chart-head' }, h('h3', { title: `${key}\n${meaning ?? ''}`.trim() }, title), this.value),
      area,
    );
    area.addEventListener('pointermove', event => this.plot && events.hover(Math.round(this.plot.xAt(event.offsetX))));
    area.addEventListener('pointerleave', () => events.hover(null));
    this.becameVisible = events.wanted;
  }

  private readonly becameVisible: () => void;

  /** Off screen, nothing is requested or drawn. */
  setVisible(visible: boolean): void {
    if (this.visible === visible) return;
    this.visible = visible;
    if (visible) {
      this.becameVisible();
      if (this.theme) this.queue.add(this.redraw);
      return;
    }
    this.queue.remove(this.redraw);
    this.plot?.destroy();
    this.plot = null;
  }

  get shown(): boolean {
    return this.visible;
  }

  update(groups: ChartedGroup[], theme: Theme, smoothing: number): void {
    Object.assign(this, { groups, theme, smoothing });
    if (this.visible) this.queue.add(this.redraw);
  }

  /** Shows the groups' values at a step, or their latest values. */
  hover(step: number | null): void {
    if (!this.visible || !this.theme) return;
    this.crosshair.hidden = step === null || !this.plot;
    if (step !== null && this.plot) {
      this.crosshair.style.transform = `translateX(${Math.round(this.plot.pixelOf(step))}px)`;
      setText(this.crosshair.firstElementChild!, String(step));
    }
    const { palette } = this.theme;
    const parts = this.groups.map(({ label, colour }, i) => {
      const points = this.means[i] ?? [];
      const at = step === null ? points.at(-1) : points.findLast(({ x }) => x <= step);
      const swatch = h('span', { class: 'swatch', style: `background:${palette[colour % palette.length]}` });
      return h(
        'span',
        { class: 'chart-value', title: label },
        swatch,
        h('strong', {}, formatValue(at?.y ?? Number.NaN, this.metric.unit)),
      );
    });
    this.value.replaceChildren(...parts);
  }

  dispose(): void {
    this.setVisible(false);
    this.element.remove();
  }

  private drawNow(): void {
    const { theme, smoothing, metric } = this;
    if (!theme || !this.visible) return;
    const thin: PlotLine[] = [];
    const lines = this.groups.map(({ label, colour, index, curves }): PlotLine => {
      const style = { ...lineStyle(theme, 0, index), colour: theme.palette[colour % theme.palette.length] };
      const seeds = curves.map(curve => pointsOf(curve, smoothing));
      const alpha = theme.highContrast ? 0.55 : 0.32;
      if (seeds.length > 1)
        for (const points of seeds) thin.push({ ...style, label, points, width: 1, dash: [], alpha, quiet: true });
      const { mean, band } = groupCurve(seeds);
      return { ...style, label, points: mean, ...(band && { band }) };
    });
    this.means = lines.map(({ points }) => points);
    const last = maximum(
      this.groups.flatMap(({ curves }) => curves.map(({ steps }) => steps.at(-1) ?? 0)),
      1,
    );
    const x = progressRange(last, last);
    // The range covers means and seeds but not bands: the intervals of two seeds are so wide that they would flatten
    // all lines.
    const y = yRange([...thin, ...lines.map(({ band: _, ...line }) => line)], x, {
      unit: metric.unit,
      log: false,
      previous: this.range,
    });
    setAttribute(this.element, 'data-empty', y ? null : '');
    if (!y) return;
    this.range = y;
    this.plot ??= this.plotter(this.canvas);
    const { unit, title } = metric;
    this.plot.update({
      title,
      lines: [...thin, ...lines],
      x,
      y,
      log: false,
      unit,
      axis: 'step',
      marks: [],
      theme,
      large: false,
    });
    const labels = lines.map(({ label, points }) => `${label}: ${formatValue(points.at(-1)?.y ?? Number.NaN, unit)}`);
    setAttribute(this.canvas, 'aria-label', `Chart of ${title}. ${labels.join('; ')}`);
    this.hover(null);
  }
}
