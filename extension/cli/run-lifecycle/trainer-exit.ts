// Types for a trainer process that the CLI has started, and for its exit.

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
}
