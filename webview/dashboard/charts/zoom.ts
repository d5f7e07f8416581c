// Zooming and panning of the shared x axis by wheel, dragging and keys. Turning the wheel with Ctrl (or ⌘) zooms around
// the pointer; turning the wheel alone scrolls the page. Dragging selects the range to show; dragging with Shift moves
// the visible range.

import type { Range } from '../../../extension/run-data/charts/axis';

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Returns the complete x axis and its visible part. */
export function spansOf({ whole }: { whole: Range }, zoom: Span | null): { whole: Span; shown: Span } {
  const all = { from: whole.min, to: whole.max };
  return { whole: all, shown: zoom ?? all };
}

/**
 * Returns the visible range after scaling by `factor` around the position `about`. A result that reaches beyond `whole`
 * is shifted back inside; if the result covers all of `whole`, returns null.
 */
export function zoomed(shown: Span, whole: Span, factor: number, about: number): Span | null {
  const least = (whole.to - whole.from) / 1e5;
  const length = Math.max(least, (shown.to - shown.from) * factor);
  if (length >= (whole.to - whole.from) * 0.999) return null;
  const share = (about - shown.from) / (shown.to - shown.from);
  return heldInside({ from: about - share * length, to: about + (1 - share) * length }, whole);
}

/**
 * Returns the visible range after a move by `distance`. A result that reaches beyond `whole` is shifted back inside.
 */
export function panned(shown: Span, whole: Span, distance: number): Span {
  return heldInside({ from: shown.from + distance, to: shown.to + distance }, whole);
}

function heldInside({ from, to }: Span, whole: Span): Span {
  const shift = Math.max(0, whole.from - from) - Math.max(0, to - whole.to);
  return { from: from + shift, to: to + shift };
}

export interface ZoomHandlers {
  /** Returns the x value at a pixel of the element. */
  xAt(pixel: number): number;
  /** Returns the pixel positions of the left and the right end of the axis. */
  edges(): [left: number, right: number];
  zoomBy(factor: number, about: number): void;
  panBy(distance: number): void;
  show(part: Span): void;
  reset(): void;
}

/** A drag of at most this many pixels is treated as a click. */
const dragPixels = 5;

/** Handles zoom and pan gestures on a chart; `selection` is the element that highlights the selected range. */
export function listenForZoom(element: HTMLElement, selection: HTMLElement, handlers: ZoomHandlers): void {
  const { xAt } = handlers;
  let start: { pixel: number; x: number; pans: boolean } | null = null;
  element.addEventListener(
    'wheel',
    event => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !sideways) return;
      event.preventDefault();
      const pixels = event.deltaMode === 0 ? 1 : 16;
      if (sideways) handlers.panBy(xAt(event.deltaX * pixels) - xAt(0));
      else handlers.zoomBy(Math.exp((event.deltaY * pixels) / 400), xAt(event.offsetX));
    },
    { passive: false },
  );
  element.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    start = { pixel: event.offsetX, x: xAt(event.offsetX), pans: event.shiftKey };
  });
  element.addEventListener('pointermove', event => {
    if (!start || Math.abs(event.offsetX - start.pixel) < dragPixels) return;
    if (!element.hasPointerCapture(event.pointerId)) element.setPointerCapture(event.pointerId);
    if (start.pans) {
      handlers.panBy(start.x - xAt(event.offsetX));
      return;
    }
    const [left, right] = handlers.edges();
    const [from, to] = [start.pixel, event.offsetX]
      .map(at => Math.max(left, Math.min(right, at)))
      .sort((a, b) => a - b);
    selection.hidden = false;
    selection.style.left = `${from}px`;
    selection.style.width = `${to - from}px`;
  });
  const end = (event: PointerEvent) => {
    const began = start;
    start = null;
    selection.hidden = true;
    if (!began || began.pans || Math.abs(event.offsetX - began.pixel) < dragPixels) return;
    const [left, right] = handlers.edges();
    const [from, to] = [began.pixel, event.offsetX]
      .map(at => xAt(Math.max(left, Math.min(right, at))))
      .sort((a, b) => a - b);
    if (to > from) handlers.show({ from, to });
  };
  element.addEventListener('pointerup', end);
  element.addEventListener('pointercancel', () => {
    start = null;
    selection.hidden = true;
  });
  element.addEventListener('dblclick', () => handlers.reset());
}
