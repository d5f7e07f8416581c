// Parallel coordinates: an axis per configuration key, an axis for the metric, and a line per run in the colour of its
// result. A drag along an axis marks a range; runs outside any range fade. A click opens a run's dashboard. Everything
// can also be done by keys, and a table below contains the runs within the ranges as text. Without a shadow root.
import { html, LitElement, nothing, svg, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { counted, formatValue } from '../../shared/format';
import { hue } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';
import type { CompareActions } from '../actions';
import type { ComparedMetric } from '../compared-metrics';
import { draggedBrush, runsWithin, steppedBrush, type Brush, type ParallelAxis } from './parallel-axes';
import type { SweepRun } from './sweep-runs';

const height = 264;
const [top, bottom, edge] = [40, 248, 56];
/** Least distance of axes, in pixels; with many axes, the drawing scrolls. */
const leastGap = 84;
const colourSteps = 16;

export class ParallelPlot extends LitElement {
  static override properties = {
    axes: { attribute: false },
    runs: { attribute: false },
    metric: { attribute: false },
    theme: { attribute: false },
    hovered: { state: true },
    brushes: { state: true },
    width: { state: true },
  };

  /** The axes of the shown keys; the last axis is the metric. */
  declare axes: readonly ParallelAxis[];
  declare runs: readonly SweepRun[];
  declare metric: ComparedMetric;
  declare theme: Theme;
  declare actions: CompareActions;
  /** Index of the highlighted run. */
  declare private hovered: number | null;
  /** The marked ranges by key. */
  declare private brushes: ReadonlyMap<string, Brush>;
  declare private width: number;

  private readonly resizes = new ResizeObserver(([entry]) => (this.width = Math.floor(entry.contentRect.width)));

  constructor() {
    super();
    this.hovered = null;
    this.brushes = new Map();
    this.width = 0;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.resizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.resizes.disconnect();
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(): void {
    if (this.hovered !== null && this.hovered >= this.runs.length) this.hovered = null;
  }

  protected override render(): TemplateResult {
    const { axes, runs, width, brushes } = this;
    const wide = Math.max(width, 2 * edge + (axes.length - 1) * leastGap);
    const x = (axis: number): number => edge + (axis / Math.max(1, axes.length - 1)) * (wide - 2 * edge);
    const within = runsWithin(axes, brushes);
    const shown = new Set(within);
    const result = axes.at(-1)!.shares;
    // Lines of higher results are drawn above the others.
    const order = [...runs.keys()].sort((a, b) => result[a] - result[b]);
    return html`<div
        class="parallel-scroll"
        tabindex="0"
        role="group"
        aria-label="Parallel coordinates: the left and right arrow keys choose a run, Enter opens it"
        @keydown=${(event: KeyboardEvent) =>
          this.onKey(
            event,
            order.filter(run => shown.has(run)),
          )}
      >
        <svg
          width=${wide}
          height=${height}
          role="group"
          aria-label=${`${counted(runs.length, 'run')} by ${axes.length} axes`}
        >
          ${order.map(run => this.line(run, x, shown.has(run)))}${this.highlight(x)}${axes.map((axis, i) =>
            this.axis(axis, i, x),
          )}
        </svg>
      </div>
      <p class="parallel-readout" aria-live="polite">${this.readout(within.length)}</p>
      ${this.table(order.filter(run => shown.has(run)).reverse())}`;
  }

  private points(run: number, x: (axis: number) => number): string {
    return this.axes.map(({ shares }, axis) => `${x(axis).toFixed(1)},${pixelOf(shares[run]).toFixed(1)}`).join(' ');
  }

  private line(run: number, x: (axis: number) => number, isShown: boolean): TemplateResult {
    const points = this.points(run, x);
    const stroke = isShown ? this.colourAt(this.axes.at(-1)!.shares[run]) : this.theme.border;
    const drawn = svg`<polyline class="parallel-line" data-out=${isShown ? nothing : 'true'} points=${points} stroke=${stroke}></polyline>`;
    if (!isShown) return drawn;
    // A wide transparent line makes the thin line easy to point at.
    return svg`${drawn}<polyline class="parallel-target" data-run=${run} points=${points}
      @pointerenter=${() => (this.hovered = run)} @pointerleave=${() => (this.hovered = null)}
      @click=${() => this.actions.openDashboard(this.runs[run].folder)}></polyline>`;
  }

  private highlight(x: (axis: number) => number): TemplateResult | typeof nothing {
    const { hovered, theme } = this;
    if (hovered === null) return nothing;
    return svg`<polyline class="parallel-highlight" points=${this.points(hovered, x)} stroke=${theme.foreground}></polyline>`;
  }

  /** Returns the colour of a result: orange for the lowest, blue for the highest. */
  private colourAt(share: number): string {
    const { palette } = this.theme;
    return `color-mix(in oklab, ${palette[hue.blue]} ${Math.round(share * 100)}%, ${palette[hue.orange]})`;
  }

  private axis(axis: ParallelAxis, index: number, x: (axis: number) => number): TemplateResult {
    const { key, title, ticks } = axis;
    const [at, brush, isResult] = [x(index), this.brushes.get(key), index === this.axes.length - 1];
    const room = Math.max(8, Math.floor((x(1) - x(0)) / 7.2));
    const marked = brush ? `, ${counted(this.marked(axis), 'run')} in the marked range` : '';
    const step = (bottom - top) / colourSteps;
    const scale = Array.from(
      { length: isResult ? colourSteps : 0 },
      (_, i) =>
        svg`<rect x=${at - 2} y=${bottom - (i + 1) * step} width="4" height=${step + 0.5} fill=${this.colourAt((i + 0.5) / colourSteps)}></rect>`,
    );
    return svg`<g class="parallel-axis" data-key=${key} tabindex="0" role="group"
      aria-label=${`${title}${marked}: the up and down arrow keys mark a value, Shift extends the range, Escape removes it`}
      @keydown=${(event: KeyboardEvent) => this.onAxisKey(event, axis)}
      @pointerdown=${(event: PointerEvent) => this.onDrag(event, axis)}>
      <rect class="parallel-handle" x=${at - 14} y=${top - 6} width="28" height=${bottom - top + 12}></rect>
      ${isResult ? scale : svg`<line x1=${at} x2=${at} y1=${top} y2=${bottom}></line>`}
      ${brush ? svg`<rect class="parallel-brush" x=${at - 7} width="14" y=${pixelOf(brush.high) - 3} height=${pixelOf(brush.low) - pixelOf(brush.high) + 6}></rect>` : nothing}
      <text class="parallel-title" x=${at} y=${top - 20} text-anchor="middle"><title>${key}</title>${brief(title, room)}</text>
      ${ticks.map(({ share, label }) =>
        isResult
          ? svg`<text x=${at + 8} y=${pixelOf(share) + 4}>${brief(label, 8)}</text>`
          : svg`<text x=${at - 8} y=${pixelOf(share) + 4} text-anchor="end">${brief(label, index === 0 ? 7 : room - 3)}</text>`,
      )}</g>`;
  }

  private marked({ key, shares }: ParallelAxis): number {
    return runsWithin([{ key, title: '', shares, ticks: [] }], this.brushes).length;
  }

  private readout(within: number): TemplateResult {
    const { hovered, runs, metric, brushes } = this;
    if (hovered !== null) {
      const { name, result, texts } = runs[hovered];
      const values = this.axes.slice(0, -1).map(({ key, title }) => `${title} ${texts.get(key) ?? '–'}`);
      return html`<strong>${name}</strong>: ${metric.title} ${formatValue(result, metric.unit)}; ${values.join(', ')}`;
    }
    if (brushes.size === 0)
      return html`<span class="muted"
        >Colour is ${metric.title}, orange for low and blue for high. Drag along an axis to mark a range.</span
      >`;
    return html`<span class="muted">${within} of ${counted(runs.length, 'run')} in the marked ranges</span>
      <button class="plain link" type="button" @click=${() => (this.brushes = new Map())}>show all</button>`;
  }

  private table(order: readonly number[]): TemplateResult {
    const { runs, metric } = this;
    const keys = [...(runs[0]?.texts.keys() ?? [])];
    const rows = repeat(
      order,
      run => runs[run].id,
      run => {
        const { name, folder, result, texts } = runs[run];
        const open = (): void => this.actions.openDashboard(folder);
        return html`<tr
          ><th scope="row"><button class="plain link" type="button" @click=${open}>${name}</button></th
          ><td class="number">${formatValue(result, metric.unit)}</td
          >${keys.map(key => html`<td class="setting">${texts.get(key)}</td>`)}</tr
        >`;
      },
    );
    return html`<details class="parallel-table">
      <summary>Table of ${counted(order.length, 'run')}</summary>
      <div class="parallel-rows" tabindex="0" role="region" aria-label="Runs of the parallel coordinates">
        <table>
          <thead
            ><tr
              ><th scope="col">run</th
              ><th scope="col">${metric.title}</th
              >${keys.map(key => html`<th scope="col" title=${key}>${lastPart(key)}</th>`)}</tr
            ></thead
          >
          <tbody>${rows}</tbody>
        </table>
      </div>
    </details>`;
  }

  private readonly onKey = (event: KeyboardEvent, order: readonly number[]): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || order.length === 0) return;
    const at = this.hovered === null ? -1 : order.indexOf(this.hovered);
    if (event.key === 'ArrowRight') this.hovered = order[Math.min(at + 1, order.length - 1)];
    else if (event.key === 'ArrowLeft') this.hovered = order[at < 0 ? order.length - 1 : Math.max(at - 1, 0)];
    else if (event.key === 'Enter' && at >= 0) this.actions.openDashboard(this.runs[order[at]].folder);
    else if (event.key === 'Escape') this.hovered = null;
    else return;
    event.preventDefault();
  };

  private onAxisKey(event: KeyboardEvent, { key, shares }: ParallelAxis): void {
    const direction = event.key === 'ArrowUp' ? 1 : event.key === 'ArrowDown' ? -1 : 0;
    if (direction === 0 && event.key !== 'Escape') return;
    this.mark(key, direction === 0 ? null : steppedBrush(shares, this.brushes.get(key), direction, event.shiftKey));
    event.preventDefault();
    event.stopPropagation();
  }

  private onDrag(event: PointerEvent, { key }: ParallelAxis): void {
    if (event.button !== 0) return;
    const axis = event.currentTarget as SVGElement;
    const shareAt = ({ clientY }: PointerEvent): number =>
      (bottom - (clientY - axis.ownerSVGElement!.getBoundingClientRect().top)) / (bottom - top);
    const from = shareAt(event);
    const move = (next: PointerEvent): void => this.mark(key, draggedBrush(from, shareAt(next)));
    const end = (): void => {
      axis.removeEventListener('pointermove', move);
      axis.removeEventListener('pointerup', end);
      axis.removeEventListener('pointercancel', end);
    };
    this.mark(key, null); // a click removes the range
    axis.setPointerCapture(event.pointerId);
    axis.addEventListener('pointermove', move);
    axis.addEventListener('pointerup', end);
    axis.addEventListener('pointercancel', end);
  }

  private mark(key: string, brush: Brush | null): void {
    const brushes = new Map(this.brushes);
    if (brush) brushes.set(key, brush);
    else brushes.delete(key);
    this.brushes = brushes;
    this.hovered = null;
  }
}

const pixelOf = (share: number): number => bottom - share * (bottom - top);

const lastPart = (key: string): string => key.slice(key.lastIndexOf('.') + 1);

const brief = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1)}…`;

customElements.define('parallel-plot', ParallelPlot);
