// Messages between the main thread of the environment process and the worker thread that runs one environment. Types,
// and the slots of the shared array. The worker publishes its current call in the shared array, so that the main thread
// can identify a call that never returns. A call that returns a promise lets other items run meanwhile and has its own
// time limit.

/** The worker's `workerData`. */
export interface WorkerSetup {
  tag: string;
  /** Absolute path of the user's source. */
  source: string;
  /** Path under which the bundle is compiled: beside the source, so that the relative paths in its source map hold. */
  filename: string;
  /** The bundle with an inline source map. */
  code: string;
  config: Record<string, unknown>;
  /** Whether to count how often each part of the code runs. */
  cover?: boolean;
  /** Buffer of an Int32Array; its slots are in `progress`. */
  progress: SharedArrayBuffer;
}

/** Slots of the shared array. */
export const progress = {
  /** Number of the item whose code runs, or of the only item that waits; else `noItem` or `several`. */
  item: 0,
  /** Index of the current action of a step or replay, −1 in any other call. */
  action: 1,
  /**
   * Incremented at each call into environment code, and periodically while the worker waits for promises and its event
   * loop is not blocked.
   */
  calls: 2,
  /** KiB of the thread's heap and its native memory, as of the last turn of its event loop. */
  kibibytes: 3,
  slots: 4,
} as const;

/** No environment code runs and no item waits. */
export const noItem = -1;
/** Several items wait for promises, so the item whose code runs is unknown. */
export const several = -2;

export type WorkItem =
  | { do: 'load' }
  | { do: 'reset'; episode: string; seed: number; member: number; mode: 'train' | 'val' }
  | { do: 'step'; episode: string; actions: (number | string)[] }
  /** Rebuilds an episode of a worker that has ended. */
  | { do: 'replay'; episode: string; seed: number; member: number; mode: 'train' | 'val'; actions: (number | string)[] }
  | { do: 'solve'; episode: string }
  | { do: 'close'; episode: string };

/** A fault of environment code, before its location and context are added. */
export interface Fault {
  kind: 'threw' | 'timed_out' | 'bad_value' | 'died' | 'build';
  /** What happened, as a predicate; the subject is the environment. */
  what: string;
  /** What the user can do, as an imperative. */
  remedy: string;
  /** Stack of the thrown error, with positions in the bundle. */
  stack?: string;
  /** Index of the current action, −1 in any other call. */
  action: number;
  /** `env_config` with its defaults, when only a missing dependency prevents loading. */
  config?: Record<string, unknown>;
}

/** A definition's properties under its configuration. */
export interface Description {
  name: string;
  config: Record<string, unknown>;
  instruction: string;
  legend: Record<string, string>;
  actions?: Record<number, string>;
  has_solver: boolean;
  /** Whether an answer is one action, never split. */
  whole_answer: boolean;
  /** Minimum time limit of a call, in milliseconds. */
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

/** Items to run, numbered from `first`. */
export interface ToWorker {
  first: number;
  items: WorkItem[];
  /** Milliseconds after which a promise of environment code is abandoned. */
  limitMs: number;
  /** Maximum number of items that wait for promises concurrently. */
  overlap: number;
}

/** Requests the coverage counts since the last request. */
export type CoverageQuestion = 'coverage';
/** Offsets into the code, and how often the range between them ran. */
export type CoveredRange = [from: number, to: number, count: number];

/** Results of finished items by item number, or printed text, or coverage counts. */
export type FromWorker =
  { results: [number, WorkResult][] } | { stream: 'stdout' | 'stderr'; text: string } | { covered: CoveredRange[] };
