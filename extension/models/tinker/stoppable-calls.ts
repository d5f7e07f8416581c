// Calls of an engine on a server that end with RunStopped as soon as the run is stopped. A request that was sent is not
// cancelled on the server; its result is ignored.
import { RunStopped } from '../../engine/run-stopped';
import { StoppableUnits } from '../../engine/work-units';

export class StoppableCalls {
  readonly units: StoppableUnits;
  private readonly interrupted = new AbortController();

  constructor(onUnits: (done: number, of: number) => void) {
    this.units = new StoppableUnits(onUnits);
  }

  /** Ends all calls, also later ones. */
  stop(): void {
    this.units.stop();
    this.interrupted.abort();
  }

  /** Returns the result of a call. Throws RunStopped as soon as the run is stopped. */
  async result<T>(call: Promise<T>): Promise<T> {
    const { signal } = this.interrupted;
    let end = (): void => undefined;
    const stopped = new Promise<never>((_, reject) => {
      end = () => reject(new RunStopped());
      signal.addEventListener('abort', end, { once: true });
    });
    try {
      this.units.check();
      return await Promise.race([call, stopped]);
    } finally {
      call.catch(() => undefined);
      signal.removeEventListener('abort', end);
    }
  }
}
