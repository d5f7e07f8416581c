// How much of an output without end is let through: so many characters a second, with a word where the rest is left out. Environments
// print as they like; the run's log, and what is on its way there, must not grow without bound.

export class OutputBudget {
  private second = -1;
  private left = 0;

  /** @param perSecond characters of each second that pass */
  constructor(private readonly perSecond: number) {}

  /** What of `text` passes at the time `now` (milliseconds): all of it, its beginning, or nothing. */
  take(text: string, now = performance.now()): string {
    const second = Math.floor(now / 1000);
    if (second !== this.second) [this.second, this.left] = [second, this.perSecond];
    const before = this.left;
    this.left = Math.max(0, before - text.length);
    if (text.length <= before) return text;
    return before > 0 ? `${text.slice(0, before)}… (further output of this second is left out)\n` : '';
  }
}
