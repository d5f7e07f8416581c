// The distribution of episode scores over training: one strip per tag, steps on the x axis, scores on the y axis,
// darker for a larger share of the step's episodes. The host aggregates into as many columns as there are pixels; the
// crosshair shows a column's values.
import { dashboardScores, scoreColumn, type ScoreStrip } from '../../extension/protocol/dashboard-page';
import { maximum } from '../../extension/common/lists';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { formatNumber, formatPercent } from '../shared/format';
import type { Host } from '../shared/host';
import { icon } from '../shared/icons';
import { openMenu } from '../shared/menu';
import { withAlpha } from '../shared/palette';
import { button } from '../shared/toolkit';
import type { ChartContext, CardEvents, CardSettings } from './chart-card';
import { relativePosition, progressTicks } from './axis';
import { axisWidth } from './plot';
import type { DrawQueue } from './draw-queue';
import { formatX, tickOfX } from './format-x';

const title = 'scores';
/** Width of a column in pixels, and minimum milliseconds between two requests while steps arrive. */
const columnPixels = 3;
const requestIntervalMs = 1000;
const right = 10;

export class ScoreCard {
  readonly element: HTMLElement;
  readonly id = title;
  private readonly canvas = h('canvas', {
    role: 'img',
    'aria-label': 'Distribution of the scores of each step’s training episodes',
  });
  private readonly plotArea: HTMLElement;
  private readonly values = h('div', { class: 'chart-values' });
  private readonly crosshairLabel = h('span');
  private readonly crosshair = h('div', { class: 'crosshair', hidden: true }, this.crosshairLabel);
  private readonly tableButton: HTMLElement;
  private readonly menuButton: HTMLElement;
  private context: ChartContext | null = null;
  private strips: ScoreStrip[] = [];
  private table: HTMLElement | null = null;
  private settings: CardSettings = { large: false, log: false, pinned: false };
  private visible = false;
  private shown = { from: 0, to: 0 };
  private hovered: number | null = null;
  private askedFor = '';
  private askedAt = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly redraw = () => this.drawNow();

  constructor(
    private readonly host: Pick<Host, 'request'>,
    private readonly queue: DrawQueue,
    private readonly events: CardEvents,
  ) {
    const name = h('button', { class: 'plain chart-title', type: 'button' }, title);
    const meaning =
      'Distribution of the scores (reward + penalty, before normalisation) of each step’s training episodes';
    name.title = `${meaning}; darker means a larger share of the step’s episodes.`;
    name.addEventListener('click', () => events.toggle(title, 'enlarged'));
    const small = (label: string, sign: Parameters<typeof icon>[0], onClick: () => void) =>
      button({ label, icon: icon(sign), iconOnly: true, onClick });
    this.tableButton = small(`Table of ${title}`, 'table', () => this.toggleTable());
    this.menuButton = small(`More about ${title}`, 'more', () => this.showMenu());
    const tools = h(
      'div',
      { class: 'chart-tools' },
      this.tableButton,
      small(`Enlarge ${title}`, 'grow', () => events.toggle(title, 'enlarged')),
      this.menuButton,
    );
    this.plotArea = h('div', { class: 'chart-plot', tabindex: 0 }, this.canvas, this.crosshair);
    this.element = h(
      'article',
      { class: 'chart', 'data-chart': title, 'aria-label': title },
      h('header', { class: 'chart-head' }, h('h3', {}, name), this.values, tools),
      this.plotArea,
    );
    this.plotArea.addEventListener('pointermove', event => events.hover(this.xAt(event.offsetX)));
    this.plotArea.addEventListener('pointerleave', () => events.hover(null));
    this.plotArea.addEventListener('keydown', event => {
      const act = {
        ArrowLeft: () => events.move(-1),
        ArrowRight: () => events.move(1),
        p: () => events.toggle(title, 'pinned'),
        '<': () => events.moveBy(title, -1),
        '>': () => events.moveBy(title, 1),
        m: () => this.showMenu(),
        Enter: () => events.toggle(title, 'enlarged'),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
    new ResizeObserver(() => this.draw()).observe(this.plotArea);
  }

  matches(text: string): boolean {
    return 'scores spread histogram reward'.includes(text);
  }

  setSpec(): void {}

  set(settings: CardSettings): void {
    this.settings = settings;
    this.element.classList.toggle('large', settings.large);
  }

  setVisible(visible: boolean): void {
    this.visible = visible;
    if (visible) return this.draw();
    this.queue.remove(this.redraw);
    clearTimeout(this.timer);
  }

  update(context: ChartContext): void {
    this.context = context;
    this.draw();
  }

  shows(): boolean {
    return false;
  }

  get keys(): string[] {
    return [];
  }

  picture(): null {
    return null;
  }

  hover(row: number | null): void {
    this.hovered = row;
    if (!this.context || !this.visible) return;
    const { store, xs, axis, x } = this.context;
    const step = row === null ? null : store.steps[row];
    this.crosshair.hidden = row === null || !(xs[row] >= x.min && xs[row] <= x.max);
    if (row !== null && !this.crosshair.hidden) {
      this.crosshair.style.transform = `translateX(${Math.round(this.pixelOf(xs[row]))}px)`;
      setText(this.crosshairLabel, formatX(xs[row], axis, store.steps[row]));
    }
    this.showValues(step);
  }

  dispose(): void {
    this.setVisible(false);
    this.element.remove();
  }

  private get inner(): number {
    return Math.max(1, (this.plotArea.clientWidth || 280) - axisWidth - right);
  }

  private xAt(pixel: number): number {
    if (!this.context) return Number.NaN;
    const { min, max } = this.context.x;
    return min + ((pixel - axisWidth) / this.inner) * (max - min);
  }

  /** Pixel of an x value, as in the other charts. */
  private pixelOf(x: number): number {
    return axisWidth + relativePosition(x, this.context!.x) * this.inner;
  }

  /** Left and right pixel of a column: halfway to the neighbouring rows. */
  private edgesOf(column: number, columns: number): [left: number, right: number] {
    const { store, xs } = this.context!;
    const { from, to } = this.shown;
    const edge = (step: number) => {
      const row = store.rowFrom(step);
      const [before, after] = [
        xs[row - 1] ?? 2 * xs[0] - (xs[1] ?? xs[0] + 1),
        xs[row] ?? 2 * xs[row - 1] - (xs[row - 2] ?? xs[row - 1] - 1),
      ];
      return Math.max(axisWidth, Math.min(axisWidth + this.inner, this.pixelOf((before + after) / 2)));
    };
    const first = (at: number) => Math.ceil(from + (at * (to - from + 1)) / columns);
    return [edge(first(column)), edge(first(column + 1))];
  }

  private draw(): void {
    if (!this.context || !this.visible) return;
    this.ask(this.context);
    this.queue.add(this.redraw);
  }

  /** Requests the steps that the other charts show; throttled while the run continues. */
  private ask({ store, xs, x }: ChartContext): void {
    if (store.length === 0) return;
    const first = xs.findIndex(xValue => xValue >= x.min);
    const last = xs.findLastIndex(xValue => xValue <= x.max);
    const [from, to] = [store.steps[Math.max(0, first)], store.steps[Math.max(0, last)]];
    const columns = Math.max(1, Math.min(to - from + 1, Math.floor(this.inner / columnPixels)));
    const wanted = `${from} ${to} ${columns}`;
    if (wanted === this.askedFor) return;
    clearTimeout(this.timer);
    const wait = this.askedAt + requestIntervalMs - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => this.draw(), wait);
      return;
    }
    this.askedFor = wanted;
    this.askedAt = performance.now();
    this.host.request(dashboardScores, { from, to, columns }).then(
      strips => {
        this.strips = strips;
        this.shown = { from, to };
        this.queue.add(this.redraw);
      },
      () => (this.askedFor = ''),
    );
  }

  private drawNow(): void {
    const { context, strips, canvas } = this;
    if (!context || !this.visible) return;
    setAttribute(this.element, 'data-empty', strips.length > 0 ? null : '');
    this.hover(this.hovered);
    if (this.table) {
      const fresh = this.makeTable();
      this.table.replaceWith(fresh);
      this.table = fresh;
      return;
    }
    const [width, height] = [this.plotArea.clientWidth || 280, this.plotArea.clientHeight || 140];
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const ctx = canvas.getContext('2d');
    if (!ctx) return;
    ctx.scale(ratio, ratio);
    const { theme, colour, x, axis } = context;
    ctx.font = `10.5px ${theme.fontFamily}`;
    const gap = 6;
    const each = (height - 6 - 26 - gap * (strips.length - 1)) / Math.max(1, strips.length);
    strips.forEach((strip, i) => {
      const top = 6 + i * (each + gap);
      const edges = (column: number) => this.edgesOf(column, strip.columns);
      drawStrip(ctx, strip, { top, height: each, edges }, theme.palette[colour]);
      ctx.fillStyle = theme.muted;
      ctx.textAlign = 'right';
      ctx.textBaseline = 'top';
      ctx.fillText(formatNumber(strip.high), axisWidth - 6, top);
      ctx.textBaseline = 'bottom';
      ctx.fillText(formatNumber(strip.low), axisWidth - 6, top + each);
    });
    ctx.fillStyle = theme.muted;
    ctx.textBaseline = 'top';
    for (const tick of progressTicks(x, this.settings.large)) {
      ctx.textAlign = tick <= x.min ? 'left' : tick >= x.max ? 'right' : 'center';
      ctx.fillText(tickOfX(tick, axis), this.pixelOf(tick), height - 17);
    }
  }

  /** Shows the most frequent scores of the hovered step's column, or of the latest. */
  private showValues(step: number | null): void {
    const { from, to } = this.shown;
    const parts = this.strips.map(strip => {
      const at = step === null ? strip.columns - 1 : scoreColumn(step, from, to, strip.columns);
      const column = strip.counts.subarray(at * strip.bins, (at + 1) * strip.bins);
      const total = column.reduce((sum, count) => sum + count, 0);
      const most = column.indexOf(maximum(column));
      const text =
        total > 0
          ? `${formatPercent(column[most] / total)} ${strip.lowest[most] === strip.highest[most] ? 'at' : 'in'} ${scoresIn(strip, most)}`
          : '–';
      return h(
        'span',
        { class: 'chart-value' },
        this.strips.length > 1 && h('span', { class: 'muted' }, strip.tag),
        h('strong', {}, text),
      );
    });
    replaceChildren(this.values, ...parts);
  }

  private toggleTable(): void {
    const open = this.table === null;
    this.table?.remove();
    this.table = null;
    this.plotArea.hidden = open;
    setAttribute(this.tableButton, 'aria-pressed', String(open));
    if (open) this.element.append((this.table = this.makeTable()));
    else this.draw();
  }

  /** Number of episodes by score, over the visible steps and over the latest part of them. */
  private makeTable(): HTMLElement {
    const rows = this.strips.flatMap(strip =>
      Array.from({ length: strip.bins }, (_, i) => strip.bins - 1 - i).flatMap(bin => {
        const counts = Array.from({ length: strip.columns }, (_, column) => strip.counts[column * strip.bins + bin]);
        const total = counts.reduce((sum, count) => sum + count, 0);
        if (total === 0) return [];
        const label = `${this.strips.length > 1 ? `${strip.tag} ` : ''}${scoresIn(strip, bin)}`;
        return [
          h('tr', {}, h('th', { scope: 'row' }, label), h('td', {}, String(total)), h('td', {}, String(counts.at(-1)))),
        ];
      }),
    );
    const head = ['score', `episodes, steps ${this.shown.from}–${this.shown.to}`, 'newest part'];
    return h(
      'div',
      { class: 'table-scroll', tabindex: 0 },
      h(
        'table',
        {},
        h('thead', {}, h('tr', {}, ...head.map(text => h('th', { scope: 'col' }, text)))),
        h('tbody', {}, ...rows),
      ),
    );
  }

  private showMenu(): void {
    const { events, settings } = this;
    openMenu(this.menuButton, title, [
      { label: 'Pin to the top', key: 'p', checked: settings.pinned, run: () => events.toggle(title, 'pinned') },
      { label: settings.large ? 'Shrink' : 'Enlarge', key: 'Enter', run: () => events.toggle(title, 'enlarged') },
      null,
      { label: 'Move left', key: '<', run: () => events.moveBy(title, -1) },
      { label: 'Move right', key: '>', run: () => events.moveBy(title, 1) },
    ]);
  }
}

/** The score of a bin, or the range of its scores. */
function scoresIn({ lowest, highest }: ScoreStrip, bin: number): string {
  const [from, to] = [formatNumber(lowest[bin]), formatNumber(highest[bin])];
  return from === to ? from : `${from} … ${to}`;
}

/**
 * Draws a strip in one hue; the opacity is the square root of the bin's share of the column's episodes, so that small
 * counts stay visible.
 */
function drawStrip(
  ctx: CanvasRenderingContext2D,
  { columns, bins, counts }: ScoreStrip,
  at: { top: number; height: number; edges(column: number): [left: number, right: number] },
  colour: string,
): void {
  const up = at.height / bins;
  for (let column = 0; column < columns; column++) {
    let total = 0;
    for (let bin = 0; bin < bins; bin++) total += counts[column * bins + bin];
    if (total === 0) continue;
    const [left, right] = at.edges(column);
    if (right <= left) continue; // out of view
    for (let bin = 0; bin < bins; bin++) {
      const count = counts[column * bins + bin];
      if (count === 0) continue;
      ctx.fillStyle = withAlpha(colour, 0.08 + 0.92 * Math.sqrt(count / total));
      const bottom = at.top + at.height - bin * up;
      // Whole pixels, so that there are no gaps between neighbours.
      const [x0, x1] = [Math.round(left), Math.round(right)];
      const [y0, y1] = [Math.round(bottom - up), Math.round(bottom)];
      ctx.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
    }
  }
}
