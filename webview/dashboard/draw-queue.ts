// Drawing within the frame: what is due is drawn a few milliseconds a frame, in its order, so that scrolling and the pointer stay smooth
// while many charts change at once.

/** Milliseconds of a frame that drawing may take; more until all was drawn once, since nothing can be scrolled that is not there. */
const budget = 7;
const firstBudget = 60;

export class DrawQueue {
  private readonly due = new Set<() => void>();
  private asked = false;
  private drawnOnce = false;

  /** @param drained all that was due is drawn; answers whether that is all there is to draw for now */
  constructor(private readonly drained: () => boolean) {}

  /** Draws in one of the next frames; a drawing that is due already is due once. */
  add(draw: () => void): void {
    this.due.add(draw);
    this.ask();
  }

  remove(draw: () => void): void {
    this.due.delete(draw);
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
