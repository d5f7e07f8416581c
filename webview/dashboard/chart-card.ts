// One chart with its head: short name, newest value, change over the last ten steps, key and meaning on hover, and a table behind
// it. A card draws only while it is on screen; the page tells it the shared crosshair, the ranges and when data have come.
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { formatChange, formatDuration, formatValue } from '../shared/format';
import { icon } from '../shared/icons';
import { dashes } from '../shared/palette';
import type { Theme } from '../shared/theme';
import { button } from '../shared/toolkit';
import { progressRange, shareRange, valueRange, type Range } from './axis';
import type { ChartSpec } from './catalogue';
import type { Mark } from './marks';
import { chartTable } from './metric-table';
import type { Plot, PlotData, Plotter } from './plot';
import type { SeriesStore } from './series';
import { changeOverTenSteps, extent, lastFinite, linePoints, smooth } from './transforms';

/** What all charts of the page share. */
export interface ChartContext {
  store: SeriesStore;
  theme: Theme;
  /** Place of the run's colour in the palette. */
  colour: number;
  /** Weight of the past in the smoothed line, 0…0.99. */
  smoothing: number;
  axis: 'step' | 'time';
  /** Places of the rows on the x axis: steps, or seconds of run time. */
  xs: Float64Array;
  /** Planned end of the x axis, null when not known. */
  limit: number | null;
  /** Marks at a chart of this many pixels. */
  marks(width: number): readonly Mark[];
  meaning(key: string): string | undefined;
}

export interface ChartCardEvents {
  /** The pointer is over this place of the x axis, or has left (null). */
  hover(x: number | null): void;
  grow(id: string): void;
  openMark(mark: Mark): void;
  /** Moves the crosshair by so many rows. */
  move(rows: number): void;
}

export class ChartCard {
  readonly element: HTMLElement;
  /** The part that decides whether the card is on screen. */
  private readonly plotArea: HTMLElement;
  private readonly values = h('div', { class: 'chart-values' });
  private readonly crosshairLabel = h('span');
  private readonly crosshair = h('div', { class: 'crosshair', hidden: true }, this.crosshairLabel);
  private readonly explanation = h('dl', { class: 'chart-explanation', hidden: true });
  private readonly canvas = h('canvas', { role: 'img' });
  private readonly growButton: HTMLElement;
  private readonly tableButton: HTMLElement;
  private plot: Plot | null = null;
  private context: ChartContext | null = null;
  private range: Range | null = null;
  private table: HTMLElement | null = null;
  private large = false;
  private visible = false;

  constructor(
    private spec: ChartSpec,
    private readonly plotter: Plotter,
    private readonly events: ChartCardEvents,
  ) {
    const title = h('button', { class: 'plain chart-title', type: 'button' }, spec.title);
    title.addEventListener('click', () => events.grow(spec.id));
    this.growButton = button({
      label: `Enlarge ${spec.title}`,
      icon: icon('grow'),
      iconOnly: true,
      onClick: () => events.grow(spec.id),
    });
    this.tableButton = button({
      label: `Table of ${spec.title}`,
      icon: icon('table'),
      iconOnly: true,
      onClick: () => this.toggleTable(),
    });
    const tools = h('div', { class: 'chart-tools' }, this.tableButton, this.growButton);
    this.plotArea = h('div', { class: 'chart-plot', tabindex: 0 }, this.canvas, this.crosshair);
    this.element = h(
      'article',
      { class: 'chart', 'data-chart': spec.id, 'aria-label': spec.title },
      h('header', { class: 'chart-head' }, h('h3', {}, title), this.values, tools),
      this.explanation,
      this.plotArea,
    );
    this.listen();
  }

  get id(): string {
    return this.spec.id;
  }

  /** Whether title or keys contain the (lower-case) text. */
  matches(text: string): boolean {
    return [this.spec.title, ...this.spec.lines.map(line => line.key)].some(name => name.toLowerCase().includes(text));
  }

  /** A chart's keys may grow in number while a run goes on (a second tag, validation). */
  setSpec(spec: ChartSpec): void {
    this.spec = spec;
  }

  setLarge(large: boolean): void {
    if (this.large === large) return;
    this.large = large;
    this.element.classList.toggle('large', large);
    const label = `${large ? 'Shrink' : 'Enlarge'} ${this.spec.title}`;
    setAttribute(this.growButton, 'aria-label', label);
    setAttribute(this.growButton, 'title', label);
    replaceChildren(this.growButton, icon(large ? 'shrink' : 'grow'));
    this.redraw();
  }

  /** On screen or not: off screen nothing is drawn and no canvas memory is held. */
  setVisible(visible: boolean): void {
    if (this.visible === visible) return;
    this.visible = visible;
    if (visible) return this.redraw();
    this.plot?.destroy();
    this.plot = null;
  }

  /** New data, settings or theme. */
  update(context: ChartContext): void {
    this.context = context;
    this.redraw();
  }

  /** Shows the crosshair at a row and that row's values; null shows the newest. */
  hover(row: number | null): void {
    if (!this.context || !this.visible) return;
    const x = row === null ? Number.NaN : this.context.xs[row];
    this.crosshair.hidden = !this.plot || !Number.isFinite(x);
    if (this.plot && Number.isFinite(x)) {
      this.crosshair.style.transform = `translateX(${Math.round(this.plot.pixelOf(x))}px)`;
      const { axis, store } = this.context;
      setText(this.crosshairLabel, axis === 'time' ? formatDuration(x) : String(store.steps[row ?? 0]));
    }
    this.showValues(this.context, row);
  }

  dispose(): void {
    this.setVisible(false);
    this.element.remove();
  }

  private listen(): void {
    const { events, plotArea } = this;
    plotArea.addEventListener('pointermove', event => {
      if (this.plot) events.hover(this.plot.xAt(event.offsetX));
      plotArea.style.cursor = this.plot?.markAt(event.offsetX, event.offsetY) ? 'pointer' : '';
    });
    plotArea.addEventListener('pointerleave', () => events.hover(null));
    plotArea.addEventListener('blur', () => events.hover(null));
    plotArea.addEventListener('click', event => {
      const mark = this.plot?.markAt(event.offsetX, event.offsetY);
      if (mark) events.openMark(mark);
      else events.grow(this.spec.id);
    });
    plotArea.addEventListener('keydown', event => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (step !== undefined) events.move(step);
      else if (event.key === 'Enter' || event.key === ' ') events.grow(this.spec.id);
      else return;
      event.preventDefault();
    });
  }

  private toggleTable(): void {
    const open = this.table === null;
    this.table?.remove();
    this.table = null;
    this.plotArea.hidden = open;
    setAttribute(this.tableButton, 'aria-pressed', String(open));
    const label = `${open ? 'Chart' : 'Table'} of ${this.spec.title}`;
    setAttribute(this.tableButton, 'aria-label', label);
    setAttribute(this.tableButton, 'title', label);
    replaceChildren(this.tableButton, icon(open ? 'chart' : 'table'));
    if (open && this.context) this.element.append((this.table = chartTable(this.spec, this.context.store)));
    if (!open) this.redraw();
  }

  private redraw(): void {
    const { context } = this;
    if (!context || !this.visible) return;
    this.describe(context);
    this.showValues(context, null);
    if (this.table) {
      const fresh = chartTable(this.spec, context.store);
      fresh.scrollTop = this.table.scrollTop;
      this.table.replaceWith(fresh);
      this.table = fresh;
    }
    const data = this.plotData(context);
    setAttribute(this.element, 'data-empty', data ? null : '');
    if (!data || this.table) return;
    this.plot ??= this.plotter(this.canvas);
    this.plot.update(data);
  }

  /** Null while there is nothing to draw. */
  private plotData({ store, theme, colour, smoothing, axis, xs, limit, marks }: ChartContext): PlotData | null {
    const lines = this.spec.lines.map(({ key }, i) => ({ i, column: store.column(key) }));
    const edges = this.spec.band && [store.column(this.spec.band.low), store.column(this.spec.band.high)];
    const shown = lines.flatMap(({ i, column }) => (column ? [{ i, column }] : []));
    const [low, high] = edges ?? [];
    const data = extent([...shown.map(line => line.column), ...(low && high ? [low, high] : [])]);
    if (!data || xs.length === 0) return null;
    const x = progressRange(Number.isFinite(xs[xs.length - 1]) ? xs[xs.length - 1] : 0, limit);
    const inShare = this.spec.unit === 'share' && data.low >= 0 && data.high <= 1;
    this.range = inShare && data.high > 0.25 ? shareRange : valueRange(data.low, data.high, this.range);
    const width = this.canvas.clientWidth || 280;
    const draw = (values: Float64Array) => linePoints(xs, values, x.min, x.max, width);
    const colourOf = (i: number) => theme.palette[(colour + i) % theme.palette.length];
    const dashOf = (i: number) => (theme.highContrast ? dashes[i % dashes.length] : []);
    const strong = theme.highContrast ? 2.25 : 1.5;
    return {
      lines: [
        ...(smoothing > 0 ? shown : []).map(({ i, column }) => ({
          points: draw(column),
          colour: colourOf(i),
          width: 1,
          dash: [],
          alpha: theme.highContrast ? 0.5 : 0.28,
        })),
        ...shown.map(({ i, column }) => ({
          points: draw(smooth(column, smoothing)),
          colour: colourOf(i),
          width: strong,
          dash: dashOf(i),
          alpha: 1,
        })),
      ],
      band: low && high ? { low: draw(low), high: draw(high), colour: colourOf(0) } : null,
      x,
      y: this.range,
      unit: this.spec.unit,
      axis,
      marks: marks(width),
      theme,
      large: this.large,
    };
  }

  /** The newest values, or those of the hovered row with its step. */
  private showValues({ store, theme, colour }: ChartContext, hovered: number | null): void {
    const { lines, unit } = this.spec;
    const parts = lines.map(({ key, label }, i) => {
      const column = store.column(key) ?? new Float64Array(0);
      const row = lastFinite(column, hovered ?? column.length - 1);
      const value = row < 0 ? Number.NaN : column[row];
      const swatch =
        lines.length > 1 &&
        h('span', { class: 'swatch', style: `background:${theme.palette[(colour + i) % theme.palette.length]}` });
      return h(
        'span',
        { class: 'chart-value' },
        swatch,
        lines.length > 1 && h('span', { class: 'muted' }, label),
        h('strong', {}, formatValue(value, unit)),
      );
    });
    const only = lines.length === 1 ? store.column(lines[0].key) : undefined;
    const change = only && hovered === null ? changeOverTenSteps(store.steps, only) : Number.NaN;
    if (Number.isFinite(change)) {
      parts.push(h('span', { class: 'muted', title: 'change over the last ten steps' }, formatChange(change, unit)));
    }
    replaceChildren(this.values, ...parts);
  }

  private describe({ store, meaning }: ChartContext): void {
    const { title, lines, band, unit } = this.spec;
    const keys = lines.map(line => line.key);
    const sentences = keys.map(key => `${key}\n${meaning(key) ?? ''}`.trim());
    if (band) sentences.push(`band: ${band.low} … ${band.high}`);
    setAttribute(this.element.querySelector('.chart-title')!, 'title', sentences.join('\n\n') || 'nothing logged yet');
    this.explanation.hidden = !this.large;
    replaceChildren(this.explanation, ...keys.flatMap(key => [h('dt', {}, key), h('dd', {}, meaning(key) ?? '')]));
    const values = lines.map(({ key, label }) => {
      const column = store.column(key) ?? new Float64Array(0);
      const row = lastFinite(column);
      return row < 0
        ? `${label}: nothing logged yet`
        : `${label}: ${formatValue(column[row], unit)} at step ${String(store.steps[row])}`;
    });
    setText(this.canvas, '');
    setAttribute(this.canvas, 'aria-label', `Chart of ${title}. ${values.join('; ')}`);
    setAttribute(this.plotArea, 'aria-label', `${title}: arrow keys move the crosshair, Enter enlarges`);
  }
}
