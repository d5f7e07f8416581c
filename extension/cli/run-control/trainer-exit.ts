// Types for a trainer process that the CLI has started, and for its exit.

/** Exit code and signal of a process, as in Node's `exit` event. */
export interface TrainerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Handle of a trainer's process; only the process that started it can observe how it ended. */
export interface TrainerProcess {
  /** Undefined if unknown. */
  readonly pid: number | undefined;
  /** Returns null while the trainer runs, and if this process could not observe the exit. */
  ended(): TrainerExit | null;
}
