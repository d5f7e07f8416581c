// Messages between a trainer and its environment process. One request carries a whole batch, one reply answers it.
// Carried by Node's IPC channel of the forked process (structured clone); `id` pairs a reply with its request.

/** An environment to make ready: one per configured tag. */
export interface EnvironmentSpec {
  tag: string;
  /** RAGEN's `env_type`, the name of a built-in environment, or a path to the user's own TypeScript file. */
  env_type: string;
  /** Absolute path of the environment's source file (its entry). */
  source: string;
  /** `env_config`: overrides of the environment's own defaults. */
  config: Record<string, unknown>;
}

/** What a loaded environment says of itself. */
export interface LoadedEnvironment {
  tag: string;
  name: string;
  source: string;
  /** First 16 hex digits of the sha256 over the bundled code: the version each episode records. */
  version: string;
  /** Bundled source, to be kept in the run folder under `environments/<version>/`. */
  bundle: string;
  /** Absolute paths of all source files that went into the bundle: the files to watch. */
  files: string[];
  /** `env_config` with all defaults filled in. */
  config: Record<string, unknown>;
  instruction: string;
  legend: Record<string, string>;
  actions?: Record<number, string>;
  has_solver: boolean;
  /** An answer is one action, never split. */
  whole_answer?: boolean;
}

export interface EpisodeReset {
  /** Id of the episode, chosen by the trainer, unique while the episode lives. */
  episode: string;
  tag: string;
  seed: number;
  member: number;
  mode: 'train' | 'val';
}

export interface EpisodeActions {
  episode: string;
  /** Executed in order, stopping after the first that terminates or truncates. */
  actions: (number | string)[];
}

/** Why an environment failed; the message is one sentence with place, value and remedy. */
export interface EnvironmentFailure {
  kind: 'threw' | 'timed_out' | 'bad_value' | 'died' | 'build';
  message: string;
  /** `file:line` in the user's source, where it is known. */
  at?: string;
}

export interface EpisodeState {
  episode: string;
  /** Text of the observation (images are counted and kept apart). */
  observation: string;
  images?: Uint8Array[];
  version: string;
  info?: Record<string, unknown>;
  /** After a reset: names of this episode's actions, where it has its own. */
  actions?: Record<number, string>;
  error?: EnvironmentFailure;
}

export interface ActionOutcome {
  action: number | string;
  reward: number;
  terminated: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
}

export interface EpisodeStep extends EpisodeState {
  /** One entry per executed action; shorter than the request when the episode ended. */
  outcomes: ActionOutcome[];
}

export type EnvironmentRequest =
  | { id: number; method: 'load'; environments: EnvironmentSpec[]; timeout_ms: number }
  | { id: number; method: 'reset'; episodes: EpisodeReset[] }
  | { id: number; method: 'step'; episodes: EpisodeActions[] }
  | { id: number; method: 'solve'; episodes: string[] }
  | { id: number; method: 'close'; episodes: string[] }
  | { id: number; method: 'shutdown' };

export type EnvironmentReply =
  | { id: number; method: 'load'; environments: LoadedEnvironment[]; error?: EnvironmentFailure }
  | { id: number; method: 'reset'; episodes: EpisodeState[] }
  | { id: number; method: 'step'; episodes: EpisodeStep[] }
  | { id: number; method: 'solve'; solutions: { episode: string; actions?: (number | string)[] }[] }
  | { id: number; method: 'close' }
  | { id: number; method: 'shutdown' };

/** Unasked messages: what an environment printed. */
export type EnvironmentNotice = { method: 'log'; tag: string; stream: 'stdout' | 'stderr'; text: string };
