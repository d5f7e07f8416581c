// Splits long engine calls into units (such as a packed pass, or the texts after one prompt). Stop requests and
// progress are handled between units; a unit is never interrupted.
import { RunStopped } from './run-stopped';

export interface WorkUnits {
  /** Called before each unit; `done` of `of` units are complete. @throws RunStopped after a stop */
  next(done: number, of: number): void;
}

/** For calls without progress reports or stopping. */
export const unwatched: WorkUnits = { next: () => undefined };

/** Units that a stop ends permanently. */
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

  /** Reports the same progress, but ignores stops. */
  get unstoppable(): WorkUnits {
    return { next: (done, of) => this.onProgress(done, of) };
  }

  /** @throws RunStopped after a stop */
  check(): void {
    if (this.stopped) throw new RunStopped();
  }
}
