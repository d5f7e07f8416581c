// Types for a trainer process that the CLI has started, here or as a job of a cluster, and for its exit.
import type { LeaseWatch } from '../../trainer/store/held-lease';

/** Exit code and signal of a process, as in Node's `exit` event. */
export interface TrainerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Handle of a trainer's process. Only the process that started the trainer can observe its exit. */
export interface TrainerProcess {
  /** Process id; undefined if it is unknown. */
  readonly pid: number | undefined;
  /** Returns the exit. Null while the trainer runs, or if this process could not observe the exit. */
  ended(): TrainerExit | null;
  /** Whether the run has ended; by default, if the trainer has ended or its lease is gone. */
  runOver?(lease: ReturnType<LeaseWatch['look']>): boolean;
  /** Explains why the trainer ended without a final status; by default, from the trainer's log and exit. */
  explain?(): Promise<string>;
}
