// Limits how many jobs run at the same time, over all callers. Waiting jobs start in the order in which they came.

/** HTTP requests that sampling leaves for scoring and training. */
const trainingRequests = 5;

/** The number of rows that are sampled at the same time over `connections` connections. */
export const samplingSlots = (connections: number): number =>
  Math.max(1, connections - Math.min(trainingRequests, connections >> 1));

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
