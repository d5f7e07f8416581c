// One chart with its header: short name, latest value, change over the last ten steps, key and description on hover, a
// menu, and a table of the values. A card draws only while it is on screen; the page provides the shared crosshair, the
// x range and new data.
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { formatChange, formatValue } from '../shared/format';
import { icon } from '../shared/icons';
import { openMenu, type MenuItem } from '../shared/menu';
import { button } from '../shared/toolkit';
import { relativePosition, type Range } from './axis';
import type { ChartSpec } from './catalogue';
import type { DrawQueue } from './draw-queue';
import { glyphs, type Mark } from './marks';
import { chartTable } from './metric-table';
import type { Plot, Plotter } from './plot';
import { axisWidth } from './plot';
import { bandKeys, lineStyle, plotData, type PlotContext, type PlotData } from './plot-data';
import { changeOverTenSteps } from './transforms';
import { formatX } from './format-x';
import { listenForZoom, type Span } from './zoom';

/** State shared by all charts of the page. */
export interface ChartContext extends PlotContext {
  /** Whether only new rows at the end were added. */
  grown: boolean;
  /** Event marks for a chart of this width in pixels. */
  marks(width: number): readonly Mark[];
  meaning(key: string): string | undefined;
  /** The latest alarm for a key. */
  alarm(key: string): Mark | undefined;
}

/** Requests from a card to the page. */
export interface CardEvents {
  /** The pointer is at this x value, or has left the chart (null). */
  hover(x: number | null): void;
  /** Moves the crosshair by a number of rows. */
  move(rows: number): void;
  openMark(mark: Mark): void;
  toggle(id: string, setting: 'enlarged' | 'log' | 'pinned'): void;
  /** Moves the chart by a number of positions in its group, or before another chart. */
  moveBy(id: string, positions: number): void;
  moveBefore(id: string, other: string): void;
  zoomBy(factor: number, about: number | null): void;
  panBy(distance: number | 'left' | 'right'): void;
  show(part: Span | null): void;
  export(id: string, format: 'csv' | 'png' | 'svg'): void;
}

/** Display settings of a card. */
export interface CardSettings {
  large: boolean;
  log: boolean;
  pinned: boolean;
}

export class ChartCard {
  readonly element: HTMLElement;
  private readonly plotArea: HTMLElement;
  private readonly title: HTMLElement;
  private readonly values = h('div', { class: 'chart-values' });
  private readonly crosshairLabel = h('span');
  private readonly crosshair = h('div', { class: 'crosshair', hidden: true }, this.crosshairLabel);
  private readonly selection = h('div', { class: 'selection', hidden: true });
  private readonly explanation = h('dl', { class: 'chart-explanation', hidden: true });
  private readonly canvas = h('canvas', { role: 'img' });
  private readonly growButton: HTMLElement;
  private readonly tableButton: HTMLElement;
  private readonly menuButton: HTMLElement;
  private plot: Plot | null = null;
  private context: ChartContext | null = null;
  private range: Range | null = null;
  private table: HTMLElement | null = null;
  private settings: CardSettings = { large: false, log: false, pinned: false };
  private visible = false;
  private hovered: number | null = null;
  /** Width in pixels, cached because reading it forces a layout. */
  private width = 0;
  /** Fingerprint of the visible end of the last drawing. */
  private drawnEnd = '';
  private readonly valueParts = new ValueParts();
  private readonly redraw = () => this.drawNow();

  constructor(
    private spec: ChartSpec,
    private readonly plotter: Plotter,
    private readonly queue: DrawQueue,
    private readonly events: CardEvents,
  ) {
    this.title = h('button', { class: 'plain chart-title', type: 'button' }, spec.title);
    this.title.addEventListener('click', () => events.toggle(spec.id, 'enlarged'));
    const small = (label: string, name: Parameters<typeof icon>[0], onClick: () => void) =>
      button({ label, icon: icon(name), iconOnly: true, onClick });
    this.growButton = small(`Enlarge ${spec.title}`, 'grow', () => events.toggle(spec.id, 'enlarged'));
    this.tableButton = small(`Table of ${spec.title}`, 'table', () => this.toggleTable());
    this.menuButton = small(`More about ${spec.title}`, 'more', () => this.showMenu());
    this.menuButton.setAttribute('aria-haspopup', 'menu');
    const tools = h('div', { class: 'chart-tools' }, this.tableButton, this.growButton, this.menuButton);
    this.plotArea = h('div', { class: 'chart-plot', tabindex: 0 }, this.canvas, this.selection, this.crosshair);
    this.element = h(
      'article',
      { class: 'chart', 'data-chart': spec.id, 'aria-label': spec.title },
      h('header', { class: 'chart-head', draggable: 'true' }, h('h3', {}, this.title), this.values, tools),
      this.explanation,
      this.plotArea,
    );
    this.listen();
    this.listenForDrags();
    new ResizeObserver(() => (this.width = this.canvas.clientWidth)).observe(this.plotArea);
  }

  get id(): string {
    return this.spec.id;
  }

  /** Whether the title or a key contains the text (in lower case). */
  matches(text: string): boolean {
    return [this.spec.title, ...this.spec.lines.map(line => line.key)].some(name => name.toLowerCase().includes(text));
  }

  /** A chart's keys may increase during a run (a second tag, validation). */
  setSpec(spec: ChartSpec): void {
    this.spec = spec;
  }

  set(settings: CardSettings): void {
    const { large, log } = this.settings;
    this.settings = settings;
    if (settings.log !== log) this.range = null;
    if (settings.large === large) return;
    this.element.classList.toggle('large', settings.large);
    const label = `${settings.large ? 'Shrink' : 'Enlarge'} ${this.spec.title}`;
    setAttribute(this.growButton, 'aria-label', label);
    setAttribute(this.growButton, 'title', label);
    replaceChildren(this.growButton, icon(settings.large ? 'shrink' : 'grow'));
  }

  /** Off screen, nothing is requested or drawn, and no canvas memory is held. */
  setVisible(visible: boolean): void {
    if (this.visible === visible) return;
    this.visible = visible;
    if (visible) return this.draw();
    this.queue.remove(this.redraw);
    this.plot?.destroy();
    this.plot = null;
    this.drawnEnd = '';
  }

  /** Applies new data, settings or theme. */
  update(context: ChartContext): void {
    this.context = context;
    this.draw();
  }

  /** Whether the visible card uses any of these keys. */
  shows(keys: ReadonlySet<string>): boolean {
    return this.visible && this.wanted().some(key => keys.has(key));
  }

  /** Shows the crosshair at a row, with the values there; null shows the latest values. */
  hover(row: number | null): void {
    this.hovered = row;
    if (!this.context || !this.visible) return;
    const x = row === null ? Number.NaN : this.context.xs[row];
    const { min, max } = this.context.x;
    this.crosshair.hidden = !this.plot || !(x >= min && x <= max);
    if (this.plot && !this.crosshair.hidden) {
      this.crosshair.style.transform = `translateX(${Math.round(this.plot.pixelOf(x))}px)`;
      const { axis, store } = this.context;
      setText(this.crosshairLabel, formatX(x, axis, store.steps[row ?? 0]));
    }
    this.showValues(this.context);
  }

  /** The drawing of an exported picture of `width` pixels; null if there is no data. */
  picture(width: number): PlotData | null {
    const { context, settings } = this;
    if (!context) return null;
    return plotData(this.spec, context, {
      ...settings,
      large: true,
      width,
      marks: context.marks(width),
      previous: this.range,
    });
  }

  /** Keys in the exported file of the chart's numbers. */
  get keys(): string[] {
    return this.wanted();
  }

  dispose(): void {
    this.setVisible(false);
    this.element.remove();
  }

  private wanted(): string[] {
    return [...this.spec.lines.map(line => line.key), ...bandKeys(this.spec)];
  }

  private draw(): void {
    if (!this.context || !this.visible) return;
    this.context.store.want(this.wanted());
    this.queue.add(this.redraw);
  }

  private listen(): void {
    const { events, plotArea } = this;
    plotArea.addEventListener('pointermove', event => {
      if (this.plot) events.hover(this.plot.xAt(event.offsetX));
      const mark = this.plot?.markAt(event.offsetX, event.offsetY);
      plotArea.style.cursor = mark ? 'pointer' : '';
      setAttribute(plotArea, 'title', mark?.event.message ?? null);
    });
    plotArea.addEventListener('pointerleave', () => events.hover(null));
    plotArea.addEventListener('blur', () => events.hover(null));
    plotArea.addEventListener('click', event => {
      const mark = this.plot?.markAt(event.offsetX, event.offsetY);
      if (mark) events.openMark(mark);
    });
    plotArea.addEventListener('keydown', event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { id } = this.spec;
      const act: Record<string, (() => void) | undefined> = {
        ArrowLeft: () => (event.shiftKey ? events.panBy('left') : events.move(-1)),
        ArrowRight: () => (event.shiftKey ? events.panBy('right') : events.move(1)),
        PageUp: () => events.move(-10),
        PageDown: () => events.move(10),
        '+': () => events.zoomBy(0.5, null),
        '-': () => events.zoomBy(2, null),
        '<': () => events.moveBy(id, -1),
        '>': () => events.moveBy(id, 1),
        p: () => events.toggle(id, 'pinned'),
        l: () => events.toggle(id, 'log'),
        m: () => this.showMenu(),
        Enter: () => events.toggle(id, 'enlarged'),
        ' ': () => events.toggle(id, 'enlarged'),
      };
      const run = act[event.key];
      if (!run) return;
      event.preventDefault();
      run();
    });
    listenForZoom(plotArea, this.selection, {
      xAt: pixel => this.plot?.xAt(pixel) ?? Number.NaN,
      edges: () => [axisWidth, this.canvas.clientWidth - 10],
      zoomBy: (factor, about) => this.plot && events.zoomBy(factor, about),
      panBy: distance => Number.isFinite(distance) && events.panBy(distance),
      show: part => events.show(part),
      reset: () => events.show(null),
    });
  }

  private listenForDrags(): void {
    const { element, events } = this;
    const head = element.querySelector('header')!;
    const type = 'application/x-ragen-chart';
    head.addEventListener('dragstart', event => {
      event.dataTransfer?.setData(type, this.spec.id);
      element.classList.add('dragged');
    });
    head.addEventListener('dragend', () => element.classList.remove('dragged'));
    element.addEventListener('dragover', event => {
      if (!event.dataTransfer?.types.includes(type)) return;
      event.preventDefault();
      element.classList.add('drop');
    });
    element.addEventListener('dragleave', () => element.classList.remove('drop'));
    element.addEventListener('drop', event => {
      element.classList.remove('drop');
      const id = event.dataTransfer?.getData(type);
      if (!id) return;
      event.preventDefault();
      events.moveBefore(id, this.spec.id);
    });
  }

  private showMenu(): void {
    const { events, settings } = this;
    const { id, title } = this.spec;
    const items: (MenuItem | null)[] = [
      { label: 'Pin to the top', key: 'p', checked: settings.pinned, run: () => events.toggle(id, 'pinned') },
      { label: 'Logarithmic scale', key: 'l', checked: settings.log, run: () => events.toggle(id, 'log') },
      { label: settings.large ? 'Shrink' : 'Enlarge', key: 'Enter', run: () => events.toggle(id, 'enlarged') },
      null,
      { label: 'Move left', key: '<', run: () => events.moveBy(id, -1) },
      { label: 'Move right', key: '>', run: () => events.moveBy(id, 1) },
      null,
      { label: 'Zoom in', key: '+', run: () => events.zoomBy(0.5, null) },
      { label: 'Zoom out', key: '-', run: () => events.zoomBy(2, null) },
      { label: 'Show all steps', key: '0', run: () => events.show(null) },
      null,
      { label: 'Export as CSV…', run: () => events.export(id, 'csv') },
      { label: 'Export as PNG…', run: () => events.export(id, 'png') },
      { label: 'Export as SVG…', run: () => events.export(id, 'svg') },
    ];
    openMenu(this.menuButton, title, items);
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
    if (open && this.context) this.element.append((this.table = chartTable(this.spec, this.context)));
    if (!open) this.draw();
  }

  private drawNow(): void {
    const { context, settings } = this;
    if (!context || !this.visible) return;
    this.describe(context);
    if (this.table) {
      const fresh = chartTable(this.spec, context, this.table);
      fresh.scrollTop = this.table.scrollTop;
      this.table.replaceWith(fresh);
      this.table = fresh;
    }
    this.width ||= this.canvas.clientWidth || 280;
    const { width } = this;
    const data = plotData(this.spec, context, {
      ...settings,
      width,
      marks: context.marks(width),
      previous: this.range,
    });
    const waiting = !data && this.wanted().some(key => context.store.has(key) && !context.store.curve(key));
    setAttribute(this.element, 'data-empty', data ? null : waiting ? 'waiting' : '');
    if (data) this.range = data.y;
    if (data && !this.table) {
      this.plot ??= this.plotter(this.canvas);
      const end = endOf(data, width);
      if (!context.grown || end !== this.drawnEnd) this.plot.update(data);
      this.drawnEnd = end;
    }
    this.hover(this.hovered);
  }

  /** Shows the latest values, or those of the hovered row with its step. */
  private showValues({ store, theme, colour, alarm }: ChartContext): void {
    const { lines, unit } = this.spec;
    const { hovered } = this;
    const raised = lines.map(({ key }) => alarm(key)).find(mark => mark !== undefined);
    const shown = lines.map(({ key, label, colourOffset }) => {
      const curve = store.curve(key);
      const row = curve?.lastFinite(hovered ?? curve.length - 1) ?? -1;
      const value = curve && row >= 0 ? curve.values[row] : Number.NaN;
      const name =
        lines.length > 1 || key.startsWith('val-env/')
          ? { label, colour: lineStyle(theme, colour, colourOffset).colour }
          : null;
      return { name, value: formatValue(value, unit) };
    });
    const only = lines.length === 1 ? store.curve(lines[0].key) : undefined;
    const change = only && hovered === null ? changeOverTenSteps(store.steps, only) : Number.NaN;
    this.valueParts.show(
      this.values,
      shown,
      Number.isFinite(change) ? formatChange(change, unit) : '',
      raised && {
        message: raised.event.message,
        open: () => this.events.openMark(raised),
      },
    );
  }

  private describe({ store, meaning }: ChartContext): void {
    const { title, lines, unit } = this.spec;
    const sentences = lines.map(({ key, band }) => {
      const edges = !band
        ? ''
        : 'low' in band
          ? `\nband: ${band.low} … ${band.high}`
          : band.side === 'val'
            ? '\nband: 95 % interval (Wilson) over the episodes'
            : '';
      return `${key}\n${meaning(key) ?? ''}`.trim() + edges;
    });
    setAttribute(this.title, 'title', sentences.join('\n\n') || 'nothing logged yet');
    this.explanation.hidden = !this.settings.large;
    if (this.settings.large) {
      replaceChildren(
        this.explanation,
        ...lines.flatMap(({ key }) => [h('dt', {}, key), h('dd', {}, meaning(key) ?? '')]),
      );
    }
    const values = lines.map(({ key, label }) => {
      const curve = store.curve(key);
      const row = curve?.lastFinite() ?? -1;
      return !curve || row < 0
        ? `${label}: nothing logged yet`
        : `${label}: ${formatValue(curve.values[row], unit)} at step ${String(store.steps[row])}`;
    });
    setAttribute(this.canvas, 'aria-label', `Chart of ${title}. ${values.join('; ')}`);
    const keys = 'arrow keys move the crosshair, plus and minus zoom, Enter enlarges, m opens the menu';
    setAttribute(this.plotArea, 'aria-label', `${title}: ${keys}`);
  }
}

/** The end of a drawing in half pixels: while it is unchanged, an additional row makes no visible difference. */
function endOf({ x, y, log, lines }: PlotData, width: number): string {
  const half = (colourOffset: number, pixels: number) => Math.round(colourOffset * pixels * 2);
  const ends = lines.map(({ points }) =>
    points
      .slice(-4)
      .map(point => [half(relativePosition(point.x, x), width), half(relativePosition(point.y, y, log), 120)]),
  );
  return JSON.stringify([x, y, width, ends]);
}

interface ShownValue {
  name: { label: string; colour: string } | null;
  value: string;
}

/** The values in a chart's header: built once for its lines, after which only texts change. */
class ValueParts {
  private shape = '';
  private texts: HTMLElement[] = [];
  private readonly change = h('span', { class: 'muted', title: 'change over the last ten steps' });

  show(
    parent: HTMLElement,
    values: readonly ShownValue[],
    change: string,
    alarm?: { message: string; open(): void },
  ): void {
    const shape = JSON.stringify([values.map(({ name }) => name), change !== '', alarm?.message]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.texts = values.map(() => h('strong'));
      const sign =
        alarm &&
        h(
          'button',
          { class: 'plain alarm-sign', type: 'button', title: alarm.message, 'aria-label': `alarm: ${alarm.message}` },
          glyphs.alarm,
        );
      sign?.addEventListener('click', () => alarm?.open());
      replaceChildren(
        parent,
        sign,
        ...values.map(({ name }, i) =>
          h(
            'span',
            { class: 'chart-value' },
            name && h('span', { class: 'swatch', style: `background:${name.colour}` }),
            name && h('span', { class: 'muted' }, name.label),
            this.texts[i],
          ),
        ),
        change !== '' && this.change,
      );
    }
    values.forEach(({ value }, i) => setText(this.texts[i], value));
    setText(this.change, change);
  }
}
