// Limits text output to a number of characters per second; a note replaces dropped output. Environments may print any
// amount of text, but the run's log and its buffers must stay bounded.

export class OutputBudget {
  private second = -1;
  private left = 0;

  /** @param perSecond maximum characters per second */
  constructor(private readonly perSecond: number) {}

  /** Returns the part of `text` within the limit at time `now` (milliseconds): all of it, its beginning, or nothing. */
  take(text: string, now = performance.now()): string {
    const second = Math.floor(now / 1000);
    if (second !== this.second) [this.second, this.left] = [second, this.perSecond];
    const before = this.left;
    this.left = Math.max(0, before - text.length);
    if (text.length <= before) return text;
    return before > 0 ? `${text.slice(0, before)}… (further output in this second was dropped)\n` : '';
  }
}
