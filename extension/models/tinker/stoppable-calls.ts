// Makes the calls of an engine on a server throw RunStopped as soon as the run is stopped. Requests that were already
// sent are not cancelled on the server, but their results are ignored.
import { RunStopped } from '../../engine/run-stopped';
import { StoppableUnits } from '../../engine/work-units';

export class StoppableCalls {
  readonly units: StoppableUnits;
  private readonly interrupted = new AbortController();

  constructor(onUnits: (done: number, of: number) => void) {
    this.units = new StoppableUnits(onUnits);
  }

  /** Makes all running calls, and all calls that begin later, throw RunStopped. */
  stop(): void {
    this.units.stop();
    this.interrupted.abort();
  }

  /** Waits for a call and returns its result. Throws RunStopped as soon as the run is stopped. */
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
