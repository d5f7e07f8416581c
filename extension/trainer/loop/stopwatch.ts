// Measures the seconds of each phase of a step, for the `timing_s/*` metrics.

export class Stopwatch {
  private readonly started = performance.now();
  private readonly phases = new Map<string, number>();

  /** @param onPhase called when a phase begins; returns a function that is called when the phase ends */
  constructor(private readonly onPhase?: (phase: string) => () => void) {}

  async time<T>(phase: string, work: () => Promise<T>): Promise<T> {
    const end = this.begin(phase);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /** Starts a phase. Returns a function that ends the phase. */
  begin(phase: string): () => void {
    const ended = this.onPhase?.(phase);
    const start = performance.now();
    return () => {
      this.phases.set(phase, this.seconds(phase) + (performance.now() - start) / 1000);
      ended?.();
    };
  }

  /** Adds the finished phases of another stopwatch. */
  include(other: Stopwatch): void {
    for (const [phase, seconds] of other.phases) this.phases.set(phase, this.seconds(phase) + seconds);
  }

  /** Returns the total seconds of a phase so far. */
  seconds(phase: string): number {
    return this.phases.get(phase) ?? 0;
  }

  /** Seconds since the stopwatch was created. */
  get total(): number {
    return (performance.now() - this.started) / 1000;
  }

  metrics(): Record<string, number> {
    return {
      ...Object.fromEntries([...this.phases].map(([phase, seconds]) => [`timing_s/${phase}`, seconds])),
      'timing_s/step': this.total,
    };
  }
}
