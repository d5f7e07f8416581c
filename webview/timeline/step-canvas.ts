// The drawing of a step, with zooming, panning, hovering and selecting. The canvas is as large as the visible part of
// the drawing; an element as high as the whole drawing gives the scroll bar its length. The user zooms with two fingers
// or by turning the wheel while pressing Ctrl. Dragging moves the visible range. A double click on a span zooms to the
// span. Left and right arrow keys move the selection within a row; up and down arrow keys move it to another row. For
// screen readers, a status line says what is selected, and a table replaces the canvas.
import { html, type PropertyValues, type TemplateResult } from 'lit';
import { PaintedElement } from '../components/painted-element';
import { entryOfKey } from '../shared/keyboard';
import type { Theme } from '../shared/theme';
import { spanLabel } from './labels';
import { wholeStep, type OpenStep } from './state';
import { spanAt } from './step-layout';
import { axisHeight, gutterOf, paintStep, type Viewport } from './step-paint';
import { formatUs } from './time-axis';
import { wheelZoomed } from './wheel-zoom';

/** A click or hover hits a span if the span is at most this many pixels away from the pointer. */
const slackPixels = 3;

/** The keys of the timeline of a step with the focus. */
export const spanKeys: Readonly<Record<string, { does: string; run(canvas: StepCanvas): void }>> = {
  ArrowLeft: { does: 'Previous or next span of the row', run: canvas => canvas.onSelect(canvas.alongRow(-1)) },
  ArrowRight: { does: 'Previous or next span of the row', run: canvas => canvas.onSelect(canvas.alongRow(1)) },
  ArrowUp: { does: 'Nearest span of the row above or below', run: canvas => canvas.onSelect(canvas.acrossRows(-1)) },
  ArrowDown: { does: 'Nearest span of the row above or below', run: canvas => canvas.onSelect(canvas.acrossRows(1)) },
  Enter: {
    does: 'Zoom to the selected span',
    run: canvas => canvas.open.selected !== null && canvas.zoomTo(canvas.open.selected),
  },
  Home: { does: 'Show the complete step', run: ({ open, onZoom }) => onZoom(0, wholeStep(open.timeline).to) },
};

export class StepCanvas extends PaintedElement {
  static override properties = {
    open: { attribute: false },
    theme: { attribute: false },
    hovered: { state: true },
  };

  declare open: OpenStep;
  declare theme: Theme;
  declare onZoom: (from: number, to: number) => void;
  declare onSelect: (span: number | null) => void;
  /** The span under the pointer, and the position of the pointer. */
  declare private hovered: { span: number; x: number; y: number } | null;
  private drag: { x: number; y: number; moved: boolean; scrollTop: number; from: number; to: number } | null = null;

  constructor() {
    super();
    this.hovered = null;
  }

  protected override render(): TemplateResult {
    const { timeline, layout } = this.open;
    const label = `Timeline of step ${timeline.step}: ${timeline.spans.start.length} spans in ${formatUs(timeline.seconds * 1e6)}. Arrow keys select a span; W and S zoom, A and D move.`;
    return html`<div class="step-scroll" @scroll=${() => this.paint()}>
      <div class="step-spacer" style="height: ${axisHeight + layout.height}px">
        <canvas
          tabindex="0"
          role="img"
          aria-label=${label}
          aria-describedby="selected-span"
          @wheel=${(event: WheelEvent) => this.onWheel(event)}
          @pointerdown=${(event: PointerEvent) => this.onDown(event)}
          @pointermove=${(event: PointerEvent) => this.onMove(event)}
          @pointerup=${(event: PointerEvent) => this.onUp(event)}
          @pointerleave=${() => (this.hovered = null)}
          @dblclick=${(event: PointerEvent) => this.onDouble(event)}
          @keydown=${(event: KeyboardEvent) => this.onKey(event)}
        ></canvas>
      </div>
      ${this.tip()}
    </div>`;
  }

  private tip(): TemplateResult {
    const { hovered, open } = this;
    const { spans, names, episodes } = open.timeline;
    if (!hovered || hovered.span >= spans.start.length) return html`<div class="step-tip" hidden></div>`;
    const { span, x, y } = hovered;
    const episode = spans.episode[span] >= 0 ? ` · ${episodes[spans.episode[span]]}` : '';
    const right = x > this.clientWidth / 2;
    const place = right ? `right: ${this.clientWidth - x + 12}px` : `left: ${x + 12}px`;
    return html`<div class="step-tip" style="top: ${y + 12}px; ${place}" aria-hidden="true"
      >${spanLabel(names[spans.name[span]])} ${formatUs(spans.us[span])}${episode}</div
    >`;
  }

  protected override updated(changed: PropertyValues<this>): void {
    const before = changed.get('open');
    if (before && before.selected !== this.open.selected) this.reveal();
    super.updated(changed);
  }

  /** Scrolls so that the selected span is visible. */
  private reveal(): void {
    const { selected, layout } = this.open;
    const row = selected === null ? undefined : layout.rows[layout.rowOf[selected]];
    if (!row) return;
    const scroll = this.scroller;
    const bottom = row.top + row.height + axisHeight;
    if (row.top < scroll.scrollTop) scroll.scrollTop = row.top;
    else if (bottom > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = bottom - scroll.clientHeight;
  }

  private get scroller(): HTMLElement {
    return this.querySelector<HTMLElement>('.step-scroll')!;
  }

  private get view(): Viewport {
    const { clientWidth: width, clientHeight: height, scrollTop } = this.scroller;
    return { width, height, scrollTop, gutter: gutterOf(width) };
  }

  protected override paint(): void {
    const canvas = this.querySelector('canvas');
    const context = canvas?.getContext('2d');
    if (!canvas || !context) return;
    const view = this.view;
    if (view.width === 0 || view.height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      canvas.style.width = `${view.width}px`;
      canvas.style.height = `${view.height}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintStep(context, this.open, view, this.theme);
  }

  /** Microseconds per pixel. */
  private get scale(): number {
    const { range } = this.open;
    const { width, gutter } = this.view;
    return (range.to - range.from) / Math.max(1, width - gutter);
  }

  private placeOf({ clientX, clientY }: MouseEvent): { x: number; y: number; us: number } {
    const box = this.scroller.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    return { x, y, us: this.open.range.from + (x - this.view.gutter) * this.scale };
  }

  private hit(event: MouseEvent): number {
    const { x, y, us } = this.placeOf(event);
    const { gutter, scrollTop } = this.view;
    if (x < gutter || y < axisHeight) return -1;
    return spanAt(this.open.layout, this.open.timeline, us, y - axisHeight + scrollTop, this.scale * slackPixels);
  }

  private onWheel(event: WheelEvent): void {
    const { range } = this.open;
    const scroll = this.scroller;
    const zooms = event.ctrlKey || event.metaKey || scroll.scrollHeight <= scroll.clientHeight + 1;
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (!zooms && sideways === 0) return; // the browser scrolls
    event.preventDefault();
    if (zooms && event.deltaY !== 0 && !event.shiftKey) {
      const { from, to } = wheelZoomed(range, this.placeOf(event).us, event.deltaY);
      this.onZoom(from, to);
    } else this.onZoom(range.from + sideways * this.scale, range.to + sideways * this.scale);
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    const { from, to } = this.open.range;
    const { clientX: x, clientY: y } = event;
    this.drag = { x, y, from, to, moved: false, scrollTop: this.scroller.scrollTop };
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  }

  private onMove(event: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      const span = this.hit(event);
      const { x, y } = this.placeOf(event);
      this.hovered = span < 0 ? null : { span, x, y: y + this.scroller.scrollTop };
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (Math.abs(dx) + Math.abs(dy) > slackPixels) drag.moved = true;
    if (!drag.moved) return;
    this.hovered = null;
    this.scroller.scrollTop = drag.scrollTop - dy;
    this.onZoom(drag.from - dx * this.scale, drag.to - dx * this.scale);
  }

  private onUp(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    if (!drag || drag.moved) return;
    const span = this.hit(event);
    this.onSelect(span < 0 ? null : span);
  }

  private onDouble(event: PointerEvent): void {
    const span = this.hit(event);
    if (span >= 0) this.zoomTo(span);
  }

  /** Shows a span with a margin. */
  zoomTo(span: number): void {
    const { start, us } = this.open.timeline.spans;
    const margin = us[span] * 0.1 + 10;
    this.onZoom(start[span] - margin, start[span] + us[span] + margin);
  }

  private onKey(event: KeyboardEvent): void {
    const action = entryOfKey(spanKeys, event);
    if (!action) return;
    action.run(this);
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Returns the span before or after the selected span in the same row. If no span is selected, returns the first span
   * of the first row that has spans.
   */
  alongRow(by: number): number | null {
    const { selected, layout } = this.open;
    if (selected === null || layout.rowOf[selected] < 0)
      return layout.rows.find(({ spans }) => spans.length > 0)?.spans[0] ?? null;
    const { spans } = layout.rows[layout.rowOf[selected]];
    return spans[spans.indexOf(selected) + by] ?? selected;
  }

  /** Returns the span that is nearest in time to the selected span, in the next row above or below that has spans. */
  acrossRows(by: number): number | null {
    const { selected, layout, timeline } = this.open;
    if (selected === null || layout.rowOf[selected] < 0) return this.alongRow(1);
    const { start, us } = timeline.spans;
    const middle = start[selected] + us[selected] / 2;
    let at = layout.rowOf[selected] + by;
    while (at >= 0 && at < layout.rows.length && layout.rows[at].spans.length === 0) at += by;
    const spans = layout.rows[at]?.spans ?? [];
    const distance = (i: number): number => Math.max(0, start[i] - middle, middle - start[i] - us[i]);
    return (
      spans.reduce<number | null>((best, i) => (best === null || distance(i) < distance(best) ? i : best), null) ??
      selected
    );
  }
}

customElements.define('step-canvas', StepCanvas);
