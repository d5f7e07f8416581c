// Long calls of the engine are made of units (a packed pass, texts after one prompt): between two of them a stop is obeyed and progress is
// reported. A unit itself is never cut off.
import { RunStopped } from './run-stopped';

export interface WorkUnits {
  /** Called before each unit: `done` of `of` are over. @throws RunStopped once the work is to end */
  next(done: number, of: number): void;
}

/** Of calls that nobody follows or stops. */
export const unwatched: WorkUnits = { next: () => undefined };

/** Units that one signal ends for good. */
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

  /** The same progress, which a stop does not end. */
  get unstoppable(): WorkUnits {
    return { next: (done, of) => this.onProgress(done, of) };
  }

  /** @throws RunStopped once the work is to end */
  check(): void {
    if (this.stopped) throw new RunStopped();
  }
}
