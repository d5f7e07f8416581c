// A started trainer as the terminal sees it, and how it ended.

/** How a process ended. */
export interface TrainerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Handle of a trainer's process; only the process that started it can observe how it ended. */
export interface TrainerProcess {
  /** Undefined if unknown. */
  readonly pid: number | undefined;
  /** Null while it runs, and if its end was not observed. */
  ended(): TrainerExit | null;
}
