// Spreads drawing over frames: queued drawings run for a few milliseconds per frame, in order, so that scrolling and
// the pointer stay smooth while many charts change.

/**
 * Milliseconds per frame for drawing; more until the first full drawing, because nothing can be scrolled before that.
 */
const budget = 7;
const firstBudget = 60;

export class DrawQueue {
  private readonly due = new Set<() => void>();
  private asked = false;
  private drawnOnce = false;

  /**
   * @param drained called when the queue is empty; returns whether drawing is complete for now
   */
  constructor(private readonly drained: () => boolean) {}

  /** Draws in one of the next frames; a drawing already queued is not queued again. */
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

/** Performance mark set when all charts on screen are drawn for the first time, to measure how long opening takes. */
const drawnMark = 'ragen.charts-drawn';

/** Whether the charts on screen have their lines, which is marked the first time. */
export function areDrawn(page: HTMLElement): boolean {
  if (page.querySelector('.chart[data-empty="waiting"]') || !page.querySelector('.chart')) return false;
  if (performance.getEntriesByName(drawnMark).length === 0) performance.mark(drawnMark);
  return true;
}
