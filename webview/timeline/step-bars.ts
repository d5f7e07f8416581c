// The drawing of the overview: a bar for each step shows the seconds per lane, and below the bars is the number of
// requests in flight. A click opens a step. Arrow keys move the mark, and Enter opens the marked step. Turning the
// wheel while pressing Ctrl zooms, and dragging moves the visible range.
import { html, type TemplateResult } from 'lit';
import { PaintedElement } from '../components/painted-element';
import { maximum } from '../../extension/common/lists';
import type { StepSummary } from '../../extension/run-data/timeline';
import { formatDuration, formatTick } from '../shared/format';
import { entryOfKey } from '../shared/keyboard';
import { withAlpha } from '../shared/run-colours';
import type { Theme } from '../shared/theme';
import { laneColour } from './lane-colours';
import { barLanes, barsOf, roundCeiling, type Bar } from './overview-bars';
import type { Range } from './state';
import { wheelZoomed } from './wheel-zoom';

const gutter = 52;
const axisHeight = 22;
const flightHeight = 44;
const slackPixels = 3;

const marked = (by: number, does: string) => ({ does, run: (bars: StepBars) => bars.onMark(bars.marked + by) });

/** The keys of the bars with the focus. */
export const barKeys: Readonly<Record<string, { does: string; run(bars: StepBars): void }>> = {
  ...{ ArrowLeft: marked(-1, 'Mark another step'), ArrowRight: marked(1, 'Mark another step') },
  ...{ PageUp: marked(-10, 'Move the mark by ten steps'), PageDown: marked(10, 'Move the mark by ten steps') },
  Home: { does: 'Mark the first or the last step', run: ({ onMark }) => onMark(0) },
  End: { does: 'Mark the first or the last step', run: ({ onMark, steps }) => onMark(steps.length - 1) },
  Enter: { does: 'Open the marked step', run: bars => bars.onOpen(bars.steps[bars.marked].step) },
};

export class StepBars extends PaintedElement {
  static override properties = {
    steps: { attribute: false },
    range: { attribute: false },
    marked: { attribute: false },
    kept: { attribute: false },
    theme: { attribute: false },
  };

  declare steps: readonly StepSummary[];
  declare range: Range;
  declare marked: number;
  /** Numbers of the steps that can be opened, because the run still contains their spans. */
  declare kept: ReadonlySet<number>;
  declare theme: Theme;
  declare onMark: (index: number) => void;
  declare onOpen: (step: number) => void;
  declare onZoom: (from: number, to: number) => void;
  private drag: { x: number; from: number; to: number; moved: boolean } | null = null;

  protected override render(): TemplateResult {
    const { steps, range } = this;
    const label = `Seconds per lane of ${Math.round(range.to - range.from)} of ${steps.length} steps. Arrow keys select a step, Enter opens it.`;
    return html`<canvas
      tabindex="0"
      role="img"
      aria-label=${label}
      aria-describedby="marked-step"
      @wheel=${(event: WheelEvent) => this.onWheel(event)}
      @pointerdown=${(event: PointerEvent) => this.onDown(event)}
      @pointermove=${(event: PointerEvent) => this.onMove(event)}
      @pointerup=${(event: PointerEvent) => this.onUp(event)}
      @keydown=${(event: KeyboardEvent) => this.onKey(event)}
    ></canvas>`;
  }

  private get plotWidth(): number {
    return Math.max(1, this.clientWidth - gutter);
  }

  private indexAt({ clientX }: MouseEvent): number {
    const { left } = this.getBoundingClientRect();
    const { from, to } = this.range;
    return Math.max(
      0,
      Math.min(this.steps.length - 1, Math.floor(from + ((clientX - left - gutter) / this.plotWidth) * (to - from))),
    );
  }

  private onWheel(event: WheelEvent): void {
    const { from, to } = this.range;
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (sideways !== 0) {
      const by = (sideways / this.plotWidth) * (to - from);
      return this.onZoom(from + by, to + by);
    }
    const { left } = this.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - left - gutter) / this.plotWidth));
    const zoomed = wheelZoomed(this.range, from + share * (to - from), event.deltaY);
    this.onZoom(zoomed.from, zoomed.to);
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.drag = { x: event.clientX, ...this.range, moved: false };
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  }

  private onMove(event: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      const index = this.indexAt(event);
      if (index !== this.marked) this.onMark(index);
      return;
    }
    const dx = event.clientX - drag.x;
    if (Math.abs(dx) > slackPixels) drag.moved = true;
    const by = (dx / this.plotWidth) * (drag.to - drag.from);
    if (drag.moved) this.onZoom(drag.from - by, drag.to - by);
  }

  private onUp(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    if (!drag || drag.moved) return;
    const index = this.indexAt(event);
    this.onMark(index);
    this.onOpen(this.steps[index].step);
  }

  private onKey(event: KeyboardEvent): void {
    const action = entryOfKey(barKeys, event);
    if (!action) return;
    action.run(this);
    event.preventDefault();
    event.stopPropagation();
  }

  protected override paint(): void {
    const canvas = this.querySelector('canvas');
    const context = canvas?.getContext('2d');
    const { clientWidth: width, clientHeight: height } = this;
    if (!canvas || !context || width === 0 || height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [pixels, lines] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== pixels || canvas.height !== lines) {
      canvas.width = pixels;
      canvas.height = lines;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paintBars(context, width, height);
  }

  private paintBars(context: CanvasRenderingContext2D, width: number, height: number): void {
    const { steps, range, theme, marked } = this;
    const bars = barsOf(steps, range, Math.floor(this.plotWidth / 3));
    const top = 8;
    const bottom = height - axisHeight - flightHeight;
    const ceiling = roundCeiling(bars.reduce((most, { seconds }) => Math.max(most, seconds), 0));
    const xOf = (index: number): number => gutter + ((index - range.from) / (range.to - range.from)) * this.plotWidth;
    const yOf = (seconds: number): number => bottom - (seconds / ceiling) * (bottom - top);
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, height);
    context.font = `11px ${theme.fontFamily}`;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(yOf(ceiling * share));
      context.fillStyle = theme.border;
      context.fillRect(gutter, y, width - gutter, 1);
      context.fillStyle = theme.muted;
      context.fillText(formatTick(ceiling * share, 'seconds'), gutter - 8, Math.max(8, y));
    }
    context.save();
    context.beginPath();
    context.rect(gutter, 0, width - gutter, height);
    context.clip();
    const barOf = (bar: Bar): [x: number, width: number] => {
      const [left, right] = [xOf(bar.from), xOf(bar.to)];
      const space = right - left > 6 ? Math.min(4, (right - left) * 0.15) : 0;
      return [left + space / 2, Math.max(1, right - left - space)];
    };
    for (const bar of bars) {
      const [x, wide] = barOf(bar);
      let y = bottom;
      for (const [k, seconds] of bar.parts.entries()) {
        if (seconds <= 0) continue;
        const next = yOf(sumTo(bar, k));
        context.fillStyle = laneColour(barLanes[k], theme);
        context.fillRect(x, next, wide, Math.max(0.5, y - next - (theme.highContrast && y - next > 3 ? 1 : 0)));
        y = next;
      }
      context.strokeStyle = withAlpha(theme.palette[7], 0.6);
      context.lineWidth = 1;
      if (wide >= 4) context.strokeRect(x + 0.5, yOf(bar.seconds) + 0.5, wide - 1, bottom - yOf(bar.seconds));
      if (marked >= bar.from && marked < bar.to) {
        context.strokeStyle = theme.foreground;
        context.lineWidth = theme.highContrast ? 3 : 2;
        context.strokeRect(x - 1, yOf(bar.seconds) - 1, wide + 2, bottom - yOf(bar.seconds) + 2);
      }
    }
    this.paintFlight(context, bars, barOf, height);
    context.restore();
    this.paintStepAxis(context, bars, xOf, bottom + axisHeight / 2, width);
    context.fillStyle = theme.muted;
    context.textAlign = 'left';
    context.fillText('In flight', 0, height - flightHeight / 2);
  }

  private paintFlight(
    context: CanvasRenderingContext2D,
    bars: readonly Bar[],
    barOf: (bar: Bar) => [x: number, width: number],
    height: number,
  ): void {
    const { steps, theme } = this;
    const meanOf = ({ from, to }: Bar): number =>
      steps.slice(from, to).reduce((sum, { in_flight: [, mean] }) => sum + mean, 0) / (to - from);
    const means = bars.map(meanOf);
    const most = maximum(means, 1);
    context.fillStyle = withAlpha(theme.palette[0], 0.45);
    for (const [i, bar] of bars.entries()) {
      const [x, wide] = barOf(bar);
      const high = (means[i] / most) * (flightHeight - 12);
      context.fillRect(x, height - 2 - high, wide, high);
    }
  }

  private paintStepAxis(
    context: CanvasRenderingContext2D,
    bars: readonly Bar[],
    xOf: (index: number) => number,
    y: number,
    width: number,
  ): void {
    const { steps, kept, theme } = this;
    const every = Math.max(1, Math.ceil(bars.length / Math.max(1, this.plotWidth / 56)));
    context.textAlign = 'center';
    for (const [k, { from, to }] of bars.entries()) {
      const x = xOf((from + to) / 2);
      const isKept = steps.slice(from, to).some(({ step }) => kept.has(step));
      context.fillStyle = theme.muted;
      if (isKept) context.fillRect(x - 1, y - axisHeight / 2 + 2, 2, 3);
      if (k % every !== 0 || x > width - 14) continue;
      context.fillText(String(steps[from].step), x, y + 2);
    }
  }
}

/** Returns the sum of a bar's parts from the first part to part `k`, in seconds. */
const sumTo = ({ parts }: Bar, k: number): number => parts.slice(0, k + 1).reduce((sum, part) => sum + part, 0);

customElements.define('step-bars', StepBars);

/** Describes a step in words, for the status line. */
export function describeStep({ step, seconds, exposed, in_flight: [peak] }: StepSummary): string {
  const parts = barLanes
    .flatMap(lane => (exposed[lane] ? [[lane, exposed[lane]] as const] : []))
    .sort(([, a], [, b]) => b - a)
    .slice(0, 4)
    .map(([lane, of]) => `${lane} ${formatDuration(of)}`);
  return `Step ${step}: ${formatDuration(seconds)} (${parts.join(', ')}), at most ${peak} in flight`;
}
