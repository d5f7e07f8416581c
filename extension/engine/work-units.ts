// Splits long engine calls into work units. A unit is, for example, one packed pass, or the scoring of all texts after
// one prompt. Between units, progress is reported and stop requests are handled; a running unit is never interrupted.
import { RunStopped } from './run-stopped';

export interface WorkUnits {
  /**
   * Called before each unit. `done` is the number of completed units, and `of` is the number of all units. @throws
   * RunStopped after a stop
   */
  next(done: number, of: number): void;
}

/** Work units for calls that report no progress and cannot be stopped. */
export const unwatched: WorkUnits = { next: () => undefined };

/** Work units that can be stopped. A stop is permanent. */
export class StoppableUnits implements WorkUnits {
  private stopped = false;

  constructor(private readonly onProgress: (done: number, of: number) => void = () => undefined) {}

  stop(): void {
    this.stopped = true;
  }

  next(done: number, of: number): void {
    this.check();
    this.onProgress(done, of);
  }

  /** Returns work units that report to the same receiver, but ignore stops. */
  get unstoppable(): WorkUnits {
    return { next: (done, of) => this.onProgress(done, of) };
  }

  /** @throws RunStopped after a stop */
  check(): void {
    if (this.stopped) throw new RunStopped();
  }
}
