// Spreads drawing over animation frames: queued drawings run in order, for a few milliseconds per frame. The limit
// keeps scrolling and pointer movement smooth while many charts change.

/**
 * Milliseconds of drawing per frame. `firstBudget` applies until all charts have been drawn for the first time. It is
 * larger, because scrolling need not be smooth yet: the user cannot scroll a page that is still empty.
 */
const budget = 7;
const firstBudget = 60;

export class DrawQueue {
  private readonly due = new Set<() => void>();
  private asked = false;
  private drawnOnce = false;

  /** @param drained called when the queue becomes empty; returns whether all charts on screen are drawn */
  constructor(private readonly drained: () => boolean) {}

  /** Calls `draw` in one of the next frames; a function that is already queued is not added again. */
  add(draw: () => void): void {
    this.due.add(draw);
    this.ask();
  }

  private ask(): void {
    if (this.asked || this.due.size === 0) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      const end = performance.now() + (this.drawnOnce ? budget : firstBudget);
      for (const draw of this.due) {
        this.due.delete(draw);
        draw();
        if (performance.now() >= end) break;
      }
      if (this.due.size === 0) this.drawnOnce = this.drained();
      this.ask();
    });
  }
}

/**
 * Name of the performance mark that is set when all charts on screen are drawn for the first time. It is used to
 * measure how long the page takes to open.
 */
const drawnMark = 'ragen.charts-drawn';

/** Whether all charts on screen are drawn. The first call that returns true sets the performance mark. */
export function areDrawn(page: HTMLElement): boolean {
  if (page.querySelector('.chart[data-empty="waiting"]') || !page.querySelector('.chart')) return false;
  if (performance.getEntriesByName(drawnMark).length === 0) performance.mark(drawnMark);
  return true;
}
