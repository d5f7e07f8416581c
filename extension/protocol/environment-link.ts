// Messages between a trainer and its environment process. One request carries a whole batch; one reply answers it, or several do where
// some episodes are slow. Requests overlap.
// Carried by Node's IPC channel of the forked process (structured clone); `id` pairs a reply with its request.
import { isRecord } from './json';

/** An environment to make ready: one per configured tag. */
export interface EnvironmentSpec {
  tag: string;
  /** RAGEN's `env_type`, the name of a built-in environment, or a path to the user's own TypeScript file. */
  env_type: string;
  /** Absolute path of the environment's source file (its entry). */
  source: string;
  /** `env_config`: overrides of the environment's own defaults. */
  config: Record<string, unknown>;
  /** Runs this code, as `LoadedEnvironment` gave it, instead of what the file holds now. */
  built?: Pick<LoadedEnvironment, 'bundle' | 'files'>;
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

/** A mistake in an environment's source, at its place; lines and columns count from 1. */
export interface SourceProblem {
  /** Absolute path. */
  file: string;
  line: number;
  column: number;
  /** Behind the last character, where the end is known. */
  endLine?: number;
  endColumn?: number;
  message: string;
  /** The file does not build, its types do not fit, or it does not load. */
  kind: 'build' | 'type' | 'load';
}

/** New code of a tag: ready to be used, or refused with all its mistakes. */
export type PreparedEnvironment = {
  tag: string;
  /** Absolute paths to watch: of the code and of what its types come from, as far as they are known. */
  files: string[];
  /** Why types were not checked, where they were to be. */
  unchecked?: string;
} & ({ environment: LoadedEnvironment } | { problems: SourceProblem[] });

/** How often episodes reached the lines of a tag's code. */
export interface CoveredCode {
  tag: string;
  version: string;
  /** First 8 hex digits of the source map's sha256: lines of another one are other lines. */
  map: string;
  files: {
    /** Absolute path. */
    file: string;
    /** Lines that hold code, from 1, with how often their most and their least reached part was. */
    lines: [line: number, most: number, least: number][];
  }[];
}

/** Why an environment failed; the message is one sentence with place, value and remedy. */
export interface EnvironmentFailure {
  kind: 'threw' | 'timed_out' | 'bad_value' | 'died' | 'build';
  message: string;
  /** `file:line` in the user's source, where it is known. */
  at?: string;
  /** `env_config` with its defaults, where a load failed for want of something that the environment needs. */
  config?: Record<string, unknown>;
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
  /** Builds, checks and loads what the files hold now, beside what runs; nothing is used before it is asked for. */
  | { id: number; method: 'prepare'; environments: EnvironmentSpec[]; timeout_ms: number; check_types: boolean }
  /** Episodes reset from here on use what was prepared last for these tags. */
  | { id: number; method: 'use'; tags: string[] }
  /** Opens the process to a debugger on the loopback, during which no call has a time limit, or closes it again. */
  | { id: number; method: 'debug'; on: boolean }
  /** Episodes reset from here on count the lines they reach, or do so no more. Asks for the counts since the last time. */
  | { id: number; method: 'cover'; on: boolean }
  | { id: number; method: 'reset'; episodes: EpisodeReset[] }
  | { id: number; method: 'step'; episodes: EpisodeActions[] }
  | { id: number; method: 'solve'; episodes: string[] }
  | { id: number; method: 'close'; episodes: string[] }
  | { id: number; method: 'shutdown' };

export type EnvironmentReply =
  | { id: number; method: 'load'; environments: LoadedEnvironment[]; error?: EnvironmentFailure }
  | { id: number; method: 'prepare'; environments: PreparedEnvironment[] }
  | { id: number; method: 'use' }
  /** `url` is where a debugger may connect. */
  | { id: number; method: 'debug'; url?: string }
  | { id: number; method: 'cover'; covered: CoveredCode[] }
  /** With `more` those that were ready first: the others follow under the same id. */
  | { id: number; method: 'reset'; episodes: EpisodeState[]; more?: true }
  | { id: number; method: 'step'; episodes: EpisodeStep[]; more?: true }
  | { id: number; method: 'solve'; solutions: { episode: string; actions?: (number | string)[] }[] }
  | { id: number; method: 'close' }
  | { id: number; method: 'shutdown' };

/** Unasked messages: what an environment printed. */
export type EnvironmentNotice = { method: 'log'; tag: string; stream: 'stdout' | 'stderr'; text: string };

/** The list that a reply carries, and what each entry must have. */
const replyLists: Readonly<Record<string, readonly [list: string, isEntry: (entry: Plain) => boolean] | null>> = {
  load: ['environments', ({ tag, version }) => isText(tag) && isText(version)],
  prepare: ['environments', ({ tag, files }) => isText(tag) && Array.isArray(files)],
  use: null,
  debug: null,
  cover: ['covered', ({ tag, files }) => isText(tag) && Array.isArray(files)],
  reset: ['episodes', isState],
  step: ['episodes', entry => isState(entry) && Array.isArray(entry.outcomes) && entry.outcomes.every(isRecord)],
  solve: ['solutions', ({ episode }) => isText(episode)],
  close: null,
  shutdown: null,
};

/** Whether a message of an environment process is one: a process that says anything else is not to be reckoned with. */
export function isEnvironmentMessage(message: unknown): message is EnvironmentReply | EnvironmentNotice {
  if (!isRecord(message) || !isText(message.method)) return false;
  const { id, method, tag, stream, text, error } = message;
  if (method === 'log') return isText(tag) && isText(text) && (stream === 'stdout' || stream === 'stderr');
  if (typeof id !== 'number' || !Object.hasOwn(replyLists, method) || !isFailure(error)) return false;
  const carried = replyLists[method];
  if (!carried) return true;
  const list = message[carried[0]];
  return Array.isArray(list) && list.every(entry => isRecord(entry) && carried[1](entry));
}

type Plain = Record<string, unknown>;
const isText = (value: unknown): value is string => typeof value === 'string';
const isFailure = (error: unknown): boolean =>
  error === undefined || (isRecord(error) && isText(error.kind) && isText(error.message));

function isState({ episode, observation, version, info, actions, images, error }: Plain): boolean {
  const parts = [info, actions].every(part => part === undefined || isRecord(part));
  const pictures = images === undefined || Array.isArray(images);
  return isText(episode) && isText(observation) && isText(version) && parts && pictures && isFailure(error);
}
