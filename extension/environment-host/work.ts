// What passes between the environment process's main thread and the worker thread that runs one environment. Types alone.
// While the worker works, a shared array says where it is, so that the main thread can tell which call never returned. A call that returns
// a promise lets others go on meanwhile, and has a time limit of its own.

/** What the worker is given at its start (`workerData`). */
export interface WorkerSetup {
  tag: string;
  /** Absolute path of the user's source. */
  source: string;
  /** Path under which the bundle is compiled: beside the source, so that its source map's relative paths hold. */
  filename: string;
  /** Bundle with an inline source map. */
  code: string;
  config: Record<string, unknown>;
  /** Count how often each part of the code is reached. */
  cover?: boolean;
  /** Int32Array, see `progress`. */
  progress: SharedArrayBuffer;
}

/** Slots of the shared array. */
export const progress = {
  /** Number of the work item whose code runs or which alone is waited for; else `nobody` or `several`. */
  item: 0,
  /** Index of the action in hand within a step or replay; −1 in any other call. */
  action: 1,
  /** Grows with each call into environment code, and from time to time while the worker waits for promises and nothing blocks it. */
  calls: 2,
  /** KiB that the thread's heap and what belongs to it outside take, as of the last time that its event loop turned. */
  kibibytes: 3,
  slots: 4,
} as const;

/** No environment code runs, and none is waited for. */
export const nobody = -1;
/** Several items wait for their promises: whose code runs now is not known. */
export const several = -2;

export type WorkItem =
  | { do: 'load' }
  | { do: 'reset'; episode: string; seed: number; member: number; mode: 'train' | 'val' }
  | { do: 'step'; episode: string; actions: (number | string)[] }
  /** Rebuilds an episode of a worker that is gone. */
  | { do: 'replay'; episode: string; seed: number; member: number; mode: 'train' | 'val'; actions: (number | string)[] }
  | { do: 'solve'; episode: string }
  | { do: 'close'; episode: string };

/** A fault of environment code, still without place and remedy-giving context. */
export interface Fault {
  kind: 'threw' | 'timed_out' | 'bad_value' | 'died' | 'build';
  /** What happened, as the predicate of a sentence whose subject is the environment. */
  what: string;
  /** What the user can do, as an imperative. */
  remedy: string;
  /** The thrown error's stack in terms of the bundle. */
  stack?: string;
  /** Index of the action in hand, −1 in any other call. */
  action: number;
  /** `env_config` with its defaults, where the environment does not load for want of something else alone. */
  config?: Record<string, unknown>;
}

/** What a definition says of itself under its configuration. */
export interface Description {
  name: string;
  config: Record<string, unknown>;
  instruction: string;
  legend: Record<string, string>;
  actions?: Record<number, string>;
  has_solver: boolean;
  /** An answer is one action, never split. */
  whole_answer: boolean;
  /** Milliseconds that a call may take at least. */
  patience_ms: number;
}

export interface Outcome {
  action: number | string;
  reward: number;
  terminated: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
}

export interface WorkResult {
  description?: Description;
  observation?: string;
  images?: Uint8Array[];
  info?: Record<string, unknown>;
  actions?: Record<number, string>;
  outcomes?: Outcome[];
  solution?: (number | string)[];
  fault?: Fault;
}

/** Items to do, numbered on from `first`. */
export interface ToWorker {
  first: number;
  items: WorkItem[];
  /** Milliseconds after which a promise of environment code is given up. */
  limitMs: number;
  /** Items that may wait for their promises at the same time. */
  overlap: number;
}

/** Asks for the counts of reached code since the last time. */
export type CoverageQuestion = 'coverage';
/** Offsets into the code, and how often what lies between was reached. */
export type CoveredRange = [from: number, to: number, count: number];

/** Results by their items' numbers, of as many as are done; or what was printed; or counts of reached code. */
export type FromWorker =
  { results: [number, WorkResult][] } | { stream: 'stdout' | 'stderr'; text: string } | { covered: CoveredRange[] };
