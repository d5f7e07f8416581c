// Messages between the main thread of the environment process and the worker thread of one environment. The worker also
// publishes its current call in a shared array, so that the main thread can identify a call that never returns. While a
// call waits for a promise, other items run; each waiting call has its own time limit.

import type { StateForms } from '../../../../envs/api/environment';
import type { StateForm } from '../../../../envs/api/state-forms';
import type { RoleOutcome } from '../../../../envs/api/roles';
import type { RoleDescription, ScoreRequest, Scores } from '../../../protocol/environment-link';
import type { ToolCallRecord } from '../../../run-data/tool-call';
import type { ToolDescription, ToolSettings } from '../../../protocol/tool-link';

/** The worker's `workerData`. */
export interface WorkerSetup {
  tag: string;
  /** Absolute path of the user's source. */
  source: string;
  /**
   * Path under which the bundle is compiled. It is in the source's folder, because the source map contains relative
   * paths.
   */
  filename: string;
  /** The bundle with an inline source map. */
  code: string;
  config: Record<string, unknown>;
  /** Limits and servers of tools; the defaults if absent. */
  tools?: ToolSettings;
  /** Whether to count how often each range of the code runs. */
  cover?: boolean;
  /** Buffer of an Int32Array with the slots listed in `progress`. */
  progress: SharedArrayBuffer;
}

/** Indices into the shared array. */
export const progress = {
  /**
   * Number of the item whose code is running. If no code is running: the number of the waiting item, `several` if more
   * than one item waits, `noItem` if none waits.
   */
  item: 0,
  /** Index of the current action of a step or replay; −1 for all other calls. */
  action: 1,
  /**
   * Counter of progress. Incremented at each call into environment code, and periodically while the worker waits for
   * promises and its event loop is not blocked.
   */
  calls: 2,
  /**
   * Heap and native memory of the thread in KiB. Measured every 200 ms while the thread's event loop is not blocked.
   */
  kibibytes: 3,
  slots: 4,
} as const;

/** Value of `item` if no environment code is running and no item waits. */
export const noItem = -1;
/** Value of `item` if several items wait for promises; the code of any of them may be running. */
export const several = -2;

export type WorkItem =
  | { do: 'load' }
  | { do: 'reset'; episode: string; seed: number; member: number; mode: 'train' | 'val'; state_form?: StateForm }
  | { do: 'step'; episode: string; actions: (number | string)[]; score?: ScoreRequest; state_form?: StateForm }
  /** Rebuilds an episode whose worker has ended. */
  | { do: 'replay'; episode: string; seed: number; member: number; mode: 'train' | 'val'; actions: (number | string)[] }
  | { do: 'solve'; episode: string }
  | { do: 'close'; episode: string };

/** A fault of environment code, without its location and context. */
export interface Fault {
  kind: 'threw' | 'timed_out' | 'bad_value' | 'died' | 'build';
  /** What happened, worded to follow the environment's name, for example 'did not return within 1000 ms'. */
  what: string;
  /** What the user can do, as an imperative. */
  remedy: string;
  /** Stack of the thrown error, with positions in the bundle. */
  stack?: string;
  /** Index of the current action; −1 for all other calls. */
  action: number;
  /** `env_config` with its defaults; set if the configuration is valid and a missing dependency prevents loading. */
  config?: Record<string, unknown>;
}

/** Properties of a definition under one configuration. */
export interface Description {
  name: string;
  config: Record<string, unknown>;
  instruction: string;
  legend: Record<string, string>;
  actions?: Record<number, string>;
  has_solver: boolean;
  /** Whether an answer always counts as one action and is never split into several. */
  whole_answer: boolean;
  /** Whether observations are model calls and actions are replies (envs/api/model-calls.ts). */
  model_calls?: boolean;
  /** Maximum number of episodes that run at the same time; undefined for no limit. */
  at_once?: number;
  /** The tools that the model may call; absent if there are none. */
  tools?: ToolDescription[];
  /** The roles that models play, in the order of their declaration; absent if there are none. */
  roles?: RoleDescription[];
  /** Minimum time limit of a call in milliseconds. */
  patience_ms: number;
  /** Default weights of the reward components; undefined if the code has no score functions. */
  components?: Record<string, number>;
  /** Which score functions the code has; undefined if it has none. */
  scores?: Scores;
  /** The forms of true states, with their descriptions; undefined if the code gives none. */
  state_forms?: StateForms;
}

export interface Outcome {
  action: number | string;
  reward: number;
  terminated: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
  /** The tool calls of the action; absent if the action is an answer. */
  calls?: ToolCallRecord[];
  /** Rewards and successes by role. */
  roles?: Record<string, RoleOutcome>;
}

export interface WorkResult {
  description?: Description;
  observation?: string;
  images?: Uint8Array[];
  info?: Record<string, unknown>;
  actions?: Record<number, string>;
  /** The role whose turn is next. */
  role?: string;
  outcomes?: Outcome[];
  components?: Record<string, number>;
  true_state?: string;
  solution?: (number | string)[];
  fault?: Fault;
}

/** Items for the worker; their numbers are consecutive and start at `first`. */
export interface ToWorker {
  first: number;
  items: WorkItem[];
  /** Milliseconds after which a promise of environment code times out. */
  limitMs: number;
  /** Maximum number of items that wait for promises concurrently. */
  overlap: number;
}

/** Changes the time limit of all calls, including calls that wait for promises now. */
export interface LimitChange {
  limitMs: number;
}

/** Requests the coverage counts since the last such request. */
export type CoverageQuestion = 'coverage';
/** Start and end offset of a range of the code, and how often this range ran. */
export type CoveredRange = [from: number, to: number, count: number];

/** One of: results of finished items (keyed by item number), printed text, coverage counts. */
export type FromWorker =
  { results: [number, WorkResult][] } | { stream: 'stdout' | 'stderr'; text: string } | { covered: CoveredRange[] };
