// Types for the exit of a trainer process, and for the process itself. The CLI has started the process on this machine
// or as a job of a cluster.
import type { LeaseWatch } from '../../trainer/store/held-lease';

/** Exit code and signal of a process, as in Node's `exit` event. */
export interface TrainerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Represents a trainer's process. Only the process that started the trainer can observe its exit. */
export interface TrainerProcess {
  /** Process id; undefined if it is unknown. */
  readonly pid: number | undefined;
  /** Returns the exit. Returns null while the trainer runs, or if this process could not observe the exit. */
  ended(): TrainerExit | null;
  /**
   * Whether the run has ended. Without this method, a run counts as ended when its trainer has ended or its lease is
   * gone.
   */
  runOver?(lease: ReturnType<LeaseWatch['look']>): boolean;
  /**
   * Explains why the trainer ended without a final status. Without this method, the explanation is taken from the
   * trainer's log and exit.
   */
  explain?(): Promise<string>;
}
