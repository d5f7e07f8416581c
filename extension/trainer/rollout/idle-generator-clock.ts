// Measures how long a rollout waits for its environments (`timing_s/env`): the total time in which environment requests
// are pending and the generator is idle. Time in which environments and generator work at the same time is not counted.

export class IdleGeneratorClock {
  private environments = 0;
  private generations = 0;
  private since = 0;
  private waited = 0;

  /** @param now returns the time in milliseconds; injectable in tests */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Runs a request to the environments and counts it as pending. */
  environment<T>(work: () => Promise<T>): Promise<T> {
    return this.counted(work, by => (this.environments += by));
  }

  /** Runs a call of the generator and counts the generator as busy. */
  generation<T>(work: () => Promise<T>): Promise<T> {
    return this.counted(work, by => (this.generations += by));
  }

  /** Total seconds of waiting so far. */
  get seconds(): number {
    const current = this.waiting ? this.now() - this.since : 0;
    return (this.waited + current) / 1000;
  }

  private get waiting(): boolean {
    return this.environments > 0 && this.generations === 0;
  }

  private async counted<T>(work: () => Promise<T>, count: (by: number) => void): Promise<T> {
    this.change(() => count(1));
    try {
      return await work();
    } finally {
      this.change(() => count(-1));
    }
  }

  private change(apply: () => void): void {
    const now = this.now();
    if (this.waiting) this.waited += now - this.since;
    apply();
    this.since = now;
  }
}
