// Limits how many jobs run at the same time, counting the jobs of all callers. Waiting jobs start in the order in which
// `run` was called.

/** Number of connections that sampling leaves free for scoring and training. */
const trainingRequests = 5;

/** Returns the maximum number of rows that may be sampled at the same time with this number of connections. */
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
      const next = this.waiting.shift(); // this job gets the slot of the finished job
      if (next) next();
      else this.free++;
    }
  }
}
