// What the tools around environments say: the list, the transcripts, the checks of the contract, and the session of somebody who plays.
// A session is spoken over standard input and output of `ragen env play … --stdio`: one request a line, one reply a line, in order; a reply
// holds the whole session, so that whoever shows it keeps nothing.

/** An environment that a run of this workspace can name. */
export interface ListedEnvironment {
  /** What a configuration writes as `env_type`. */
  env_type: string;
  /** The name in its definition; the same as `env_type` for built-in ones. */
  name: string;
  source: string;
  built_in: boolean;
  /** `env_config` with its defaults; null where the environment’s code does not load. */
  config: Record<string, unknown> | null;
  /** Named actions by id; null where it takes text, names them at each episode's beginning, or is not there to be asked. */
  actions: Record<string, string> | null;
  /** False too where it is not there to be asked. */
  has_solver: boolean;
  /** Why it does not load: what is missing and how to get it, or what is wrong with its code. */
  missing: string | null;
}

/** One requirement of the contract that docs/environments/writing-your-own.md lists. */
export interface ContractCheck {
  name: string;
  state: 'passed' | 'failed' | 'skipped';
  /** One sentence: what was tried, with seed and actions where it failed. */
  evidence: string;
  /** `file:line` in the environment's source that the failure leads to. */
  at?: string;
}

export interface ContractReport {
  /** The definition's name, or what was asked for where it does not load. */
  environment: string;
  source: string;
  checks: ContractCheck[];
}

/** What an environment shows: its text, and PNG images in base64 where there are some. */
export interface Shown {
  observation: string;
  images?: string[];
}

export interface ShownStep extends Shown {
  reward: number;
  terminated: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
}

/** `ragen env play --input`: one a case, in the order of the cases. */
export type Transcript = (Shown & { steps: ShownStep[] }) | { error: string };

export interface PlayedStep extends ShownStep {
  action: number | string;
  /** The action as people read it. */
  name: string;
}

/** What the same seed and actions came to before and after the code was loaded anew. */
export interface PlayDifference {
  /** 0 is the beginning, n the n-th action. */
  step: number;
  what: 'observation' | 'images' | 'reward' | 'end' | 'info' | 'missing';
  before: string;
  after: string;
}

export interface PlaySession {
  environment: string;
  source: string;
  /** Hash of the code in use. */
  version: string;
  /** Source files that went in: those whose change makes a reload worthwhile. */
  files: string[];
  config: Record<string, unknown>;
  seed: number;
  instruction: string;
  legend: Record<string, string>;
  /** Named actions of this episode; empty where it takes text. */
  actions: { id: number; name: string }[];
  has_solver: boolean;
  /** The episode's beginning. */
  first: Shown;
  steps: PlayedStep[];
  /** The sum of the rewards. */
  total: number;
  over: boolean;
  /** After `hint`: the solver's actions from here by name, null where it finds none; gone with the next action. */
  hint?: string[] | null;
  /** After `reload`: what the new code does otherwise, and the version before. */
  reloaded?: { from: string; differences: PlayDifference[] };
}

export type PlayDo =
  /** An action by id, by name, or the answer's text. */
  | { do: 'act'; action: number | string }
  /** Takes the last action back, by replay. */
  | { do: 'undo' }
  | { do: 'restart'; seed?: number }
  | { do: 'hint' }
  /** Plays what the solver says until the episode ends. */
  | { do: 'solve' }
  /** Builds the source anew and replays the same seed and actions. */
  | { do: 'reload' };

/** `id` comes back in the reply. */
export type PlayRequest = { id: number } & PlayDo;

export interface PlayReply {
  /** 0 for the reply that comes unasked at the start. */
  id: number;
  /** Absent while the environment has never loaded. */
  session?: PlaySession;
  /** Why nothing was done; the session is as it was. `at` is `file:line` in the source where it is known. */
  error?: { message: string; at?: string };
}
