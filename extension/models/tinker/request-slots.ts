// Limits how many jobs run at the same time, over all callers. Waiting jobs start in the order in which they came.

export class RequestSlots {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(readonly count: number) {
    this.free = count;
  }

  /** Runs a job as soon as a slot is free. */
  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free--;
    else await new Promise<void>(resolve => this.waiting.push(resolve));
    try {
      return await job();
    } finally {
      const next = this.waiting.shift(); // its slot passes on
      if (next) next();
      else this.free++;
    }
  }
}
