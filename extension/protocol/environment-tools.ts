// Output of the environment tools: the list of environments, transcripts, contract checks, and interactive play
// sessions. A session runs over standard input and output of `ragen env play … --stdio`: one JSON request per line, one
// reply per line, in order. A reply contains the complete session, so the client stores no state.

/** An environment that a run in this workspace can use. */
export interface ListedEnvironment {
  /** Value of `env_type` in a configuration. */
  env_type: string;
  /** Name in the environment's definition; equals `env_type` for built-in environments. */
  name: string;
  source: string;
  built_in: boolean;
  /** `env_config` with its defaults; null if the environment's code does not load. */
  config: Record<string, unknown> | null;
  /**
   * Named actions by id. Null if any text is an action, if each episode has its own action names, or if the environment
   * does not load.
   */
  actions: Record<string, string> | null;
  /** Whether the environment defines `solve()`; false if the environment does not load. */
  has_solver: boolean;
  /**
   * Reason why the environment does not load: a missing dependency with its remedy, or an error in the environment's
   * code.
   */
  missing: string | null;
}

/** One requirement of the contract in docs/environments/writing-your-own.md. */
export interface ContractCheck {
  name: string;
  state: 'passed' | 'failed' | 'skipped';
  /** One sentence that describes the test. After a failure, the sentence also names seed and actions. */
  evidence: string;
  /** `file:line` of the failure in the environment's source. */
  at?: string;
}

export interface ContractReport {
  /** Name in the definition, or the requested name if the environment does not load. */
  environment: string;
  source: string;
  checks: ContractCheck[];
}

/** An observation of an environment: its text and its base64 PNG images, if the environment renders images. */
export interface Shown {
  observation: string;
  images?: string[];
  /** The role whose turn is next; absent in an environment without roles, and when the episode is over. */
  role?: string;
}

export interface ShownStep extends Shown {
  reward: number;
  terminated: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
}

/** Output of `ragen env play --input`: one entry per case, in the order of the cases. */
export type Transcript = (Shown & { steps: ShownStep[] }) | { error: string };

export interface PlayedStep extends ShownStep {
  action: number | string;
  /** Display name of the action. */
  name: string;
  /** The role that acted, and what each role earned by this step; absent in an environment without roles. */
  acted?: string;
  earned?: Record<string, number>;
}

/** A difference between the results of the old code and of the reloaded code for the same seed and actions. */
export interface PlayDifference {
  /** Position of the difference: 0 for the reset, n for the n-th action. */
  step: number;
  what: 'observation' | 'images' | 'reward' | 'end' | 'info' | 'missing';
  before: string;
  after: string;
}

/** A role of a played episode. */
export interface PlayedRole {
  name: string;
  /** Instruction in the role's system message; absent if it is that of the environment. */
  instruction?: string;
  /** Sum of the role's rewards. */
  total: number;
}

export interface PlaySession {
  environment: string;
  source: string;
  /** Hash of the code in use. */
  version: string;
  /** Source files of the bundle. The editor offers a reload when one of them changes. */
  files: string[];
  config: Record<string, unknown>;
  seed: number;
  instruction: string;
  legend: Record<string, string>;
  /** Named actions of this episode; empty if any text is an action. */
  actions: { id: number; name: string }[];
  has_solver: boolean;
  /** State after the reset. */
  first: Shown;
  steps: PlayedStep[];
  /** Sum of the rewards. With roles it has no meaning, because each role has a return of its own. */
  total: number;
  /** The roles in the order of their declaration, with their returns; absent in an environment without roles. */
  roles?: PlayedRole[];
  over: boolean;
  /**
   * After `hint`: names of the solver's actions from the current state; null if the solver finds no solution. The key
   * is absent after the next action.
   */
  hint?: string[] | null;
  /** After `reload`: the previous version, and the differences in the replayed episode. */
  reloaded?: { from: string; differences: PlayDifference[] };
}

export type PlayDo =
  /** An action by id or name, or the text of an answer. */
  | { do: 'act'; action: number | string }
  /** Undoes the last action by replaying all earlier actions. */
  | { do: 'undo' }
  | { do: 'restart'; seed?: number }
  | { do: 'hint' }
  /** Plays the solver's actions until the episode ends. */
  | { do: 'solve' }
  /** Rebuilds the source and replays the episode with the same seed and actions. */
  | { do: 'reload' };

/** A request; the reply has the same `id`. */
export type PlayRequest = { id: number } & PlayDo;

export interface PlayReply {
  /** Id of the request; 0 for the first reply, which is sent without a request. */
  id: number;
  /** The complete session; absent until the environment has loaded once. */
  session?: PlaySession;
  /** Reason why the request failed; the session is then unchanged. `at` is `file:line` in the source, if known. */
  error?: { message: string; at?: string };
}
