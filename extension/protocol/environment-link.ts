// Messages between a trainer and its environment process. A request carries a whole batch and gets one reply, or
// several if some episodes are slow. Requests overlap. Messages are frames (frames.ts) over a pipe on file descriptor
// 3; `id` pairs a reply with its request.
import { areNames, isAction, isFailure, largest, longestText, stateProblem } from './environment-bounds';
import { isRecord } from '../common/json';

/** Environment variable that names the tag, set for a thread and its child processes. */
export const tagVariable = 'RAGEN_ENVIRONMENT_TAG';

/** An environment to load; one per configured tag. */
export interface EnvironmentSpec {
  tag: string;
  /** RAGEN's `env_type`: the name of a built-in environment, or a path to the user's own TypeScript file. */
  env_type: string;
  /** Absolute path of the environment's entry file. */
  source: string;
  /** `env_config`: overrides of the environment's defaults. */
  config: Record<string, unknown>;
  /** Code from an earlier `LoadedEnvironment` to run, instead of the file's current content. */
  built?: Pick<LoadedEnvironment, 'bundle' | 'files'>;
}

/** Description of a loaded environment. */
export interface LoadedEnvironment {
  tag: string;
  name: string;
  source: string;
  /** First 16 hex digits of the SHA-256 of the bundled code; recorded with each episode. */
  version: string;
  /** Bundled source, saved in the run folder under `environments/<version>/`. */
  bundle: string;
  /** Absolute paths of all source files in the bundle: the files to watch. */
  files: string[];
  /** `env_config` with all defaults filled in. */
  config: Record<string, unknown>;
  instruction: string;
  legend: Record<string, string>;
  actions?: Record<number, string>;
  has_solver: boolean;
  /** Whether an answer is one action, never split. */
  whole_answer?: boolean;
}

export interface EpisodeReset {
  /** Episode id, chosen by the trainer, unique while the episode is open. */
  episode: string;
  tag: string;
  seed: number;
  member: number;
  mode: 'train' | 'val';
}

export interface EpisodeActions {
  episode: string;
  /** Executed in order, up to the first that terminates or truncates the episode. */
  actions: (number | string)[];
}

/** An error in an environment's source with its location. Lines and columns are 1-based. */
export interface SourceProblem {
  /** Absolute path. */
  file: string;
  line: number;
  column: number;
  /** Exclusive end, if known. */
  endLine?: number;
  endColumn?: number;
  message: string;
  /** The file does not build, has type errors, or does not load. */
  kind: 'build' | 'type' | 'load';
}

/** New code of a tag: ready for use, or rejected with all its problems. */
export type PreparedEnvironment = {
  tag: string;
  /** Absolute paths to watch, of the code and its type sources, as far as known. */
  files: string[];
  /** Why requested type checks did not run. */
  unchecked?: string;
} & ({ environment: LoadedEnvironment } | { problems: SourceProblem[] });

/** How often episodes executed the lines of a tag's code. */
export interface CoveredCode {
  tag: string;
  version: string;
  /** First 8 hex digits of the SHA-256 of the source map. Line numbers are comparable only under the same map. */
  map: string;
  files: {
    /** Absolute path. */
    file: string;
    /** 1-based lines that hold code, with the highest and lowest execution count of their parts. */
    lines: [line: number, most: number, least: number][];
  }[];
}

/** Why an environment failed. The message is one sentence with location, value and remedy. */
export interface EnvironmentFailure {
  kind: 'threw' | 'timed_out' | 'bad_value' | 'died' | 'build';
  message: string;
  /** `file:line` in the user's source, if known. */
  at?: string;
  /** `env_config` with its defaults, when a load failed because of a missing dependency. */
  config?: Record<string, unknown>;
}

export interface EpisodeState {
  episode: string;
  /** Text of the observation. Images are separate. */
  observation: string;
  images?: Uint8Array[];
  version: string;
  info?: Record<string, unknown>;
  /** After a reset: names of this episode's actions, if it has its own. */
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
  /** One entry per executed action; shorter than the request if the episode ended. */
  outcomes: ActionOutcome[];
}

export type EnvironmentRequest =
  | { id: number; method: 'load'; environments: EnvironmentSpec[]; timeout_ms: number }
  /** Builds, checks and loads the current files alongside the running code. The result is not used until `use`. */
  | { id: number; method: 'prepare'; environments: EnvironmentSpec[]; timeout_ms: number; check_types: boolean }
  /** Episodes reset from here on use the code last prepared for these tags. */
  | { id: number; method: 'use'; tags: string[] }
  /** Opens or closes the inspector on the loopback interface. While it is open, calls have no time limit. */
  | { id: number; method: 'debug'; on: boolean }
  /** Switches line coverage on or off for episodes reset from here on. Returns the counts since the last request. */
  | { id: number; method: 'cover'; on: boolean }
  | { id: number; method: 'reset'; episodes: EpisodeReset[] }
  | { id: number; method: 'step'; episodes: EpisodeActions[] }
  | { id: number; method: 'solve'; episodes: string[] }
  | { id: number; method: 'close'; episodes: string[] }
  /** Liveness check. */
  | { id: number; method: 'ping' }
  | { id: number; method: 'shutdown' };

export type EnvironmentReply =
  | { id: number; method: 'load'; environments: LoadedEnvironment[]; error?: EnvironmentFailure }
  | { id: number; method: 'prepare'; environments: PreparedEnvironment[] }
  | { id: number; method: 'use' }
  /** `url` is the address for a debugger. */
  | { id: number; method: 'debug'; url?: string }
  | { id: number; method: 'cover'; covered: CoveredCode[] }
  /** With `more`, the episodes that were ready first; the others follow under the same id. */
  | { id: number; method: 'reset'; episodes: EpisodeState[]; more?: true }
  | { id: number; method: 'step'; episodes: EpisodeStep[]; more?: true }
  | { id: number; method: 'solve'; solutions: { episode: string; actions?: (number | string)[] }[] }
  | { id: number; method: 'close' }
  | { id: number; method: 'ping'; threads: ThreadMemory[] }
  | { id: number; method: 'shutdown' };

/** Notifications: text printed by an environment. */
export type EnvironmentNotice = { method: 'log'; tag: string; stream: 'stdout' | 'stderr'; text: string };

/** Memory of one thread, as last measured: its heap and its native memory. */
export interface ThreadMemory {
  tag: string;
  bytes: number;
}

type Plain = Record<string, unknown>;
const isText = (value: unknown, most = largest): value is string => typeof value === 'string' && value.length <= most;
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(item => isText(item, longestText));
const isSource = (value: unknown): boolean => typeof value === 'string';

/**
 * For each reply: the list it carries, the check of an entry, and the key that must be unique in the list ('' for
 * none).
 */
const replyLists: Readonly<
  Record<string, readonly [list: string, isEntry: (entry: Plain) => boolean, key: string] | null>
> = {
  load: ['environments', isLoaded, 'tag'],
  prepare: ['environments', isPrepared, 'tag'],
  use: null,
  debug: null,
  cover: ['covered', isCovered, ''],
  reset: ['episodes', isState, 'episode'],
  step: ['episodes', entry => isState(entry) && Array.isArray(entry.outcomes), 'episode'],
  solve: ['solutions', isSolution, 'episode'],
  close: null,
  ping: ['threads', ({ tag, bytes }) => isText(tag) && typeof bytes === 'number' && bytes >= 0, ''],
  shutdown: null,
};

/**
 * Whether a message of an environment process is valid and within bounds. A process that sends any other message is
 * ended.
 */
export function isEnvironmentMessage(message: unknown): message is EnvironmentReply | EnvironmentNotice {
  if (!isRecord(message) || !isText(message.method)) return false;
  const { id, method, tag, stream, text, error, url, more } = message;
  if (method === 'log') return isText(tag) && isText(text) && (stream === 'stdout' || stream === 'stderr');
  if (!Number.isSafeInteger(id) || !Object.hasOwn(replyLists, method) || !isFailure(error)) return false;
  if (url !== undefined && !isText(url, longestText)) return false;
  if (more !== undefined && !(more === true && (method === 'reset' || method === 'step'))) return false;
  const carried = replyLists[method];
  if (!carried) return true;
  const [name, isEntry, key] = carried;
  const list = message[name];
  if (!Array.isArray(list) || !list.every(entry => isRecord(entry) && isEntry(entry))) return false;
  return key === '' || new Set(list.map((entry: Plain) => entry[key])).size === list.length;
}

/**
 * Returns what is wrong with a reply, as a predicate whose subject is the process: it answers another method, answers
 * for names that were not requested or twice, or leaves some out. `open` holds the names still to be answered; answered
 * names are removed.
 */
export function replyProblem(
  request: EnvironmentRequest,
  reply: EnvironmentReply,
  open: Set<string>,
): string | undefined {
  if (reply.method !== request.method) return `answered a request to ${request.method} with one to ${reply.method}`;
  for (const name of namesOf(reply))
    if (!open.delete(name)) return `answered for ${JSON.stringify(name.slice(0, 80))}, which was not requested`;
  if (reply.method === 'step' && request.method === 'step') {
    const asked = new Map(request.episodes.map(({ episode, actions }) => [episode, actions]));
    for (const { episode, outcomes } of reply.episodes) {
      const actions = asked.get(episode)!;
      if (outcomes.length > actions.length || outcomes.some(({ action }, i) => action !== actions[i]))
        return `answered for other actions of ${JSON.stringify(episode.slice(0, 80))} than it was given`;
    }
  }
  const whole = reply.method === 'reset' || reply.method === 'step' || reply.method === 'solve';
  if (whole && !('more' in reply && reply.more) && open.size > 0)
    return `left out ${open.size} of the episodes it was asked for`;
  return undefined;
}

/** Returns the names that a reply to a request may answer for. */
export function namesAsked(request: EnvironmentRequest): Set<string> {
  if ('environments' in request) return new Set(request.environments.map(({ tag }) => tag));
  if (request.method === 'solve') return new Set(request.episodes);
  if (request.method === 'reset' || request.method === 'step')
    return new Set(request.episodes.map(({ episode }) => episode));
  return new Set();
}

function namesOf(reply: EnvironmentReply): string[] {
  if (reply.method === 'load' || reply.method === 'prepare') return reply.environments.map(({ tag }) => tag);
  if (reply.method === 'reset' || reply.method === 'step') return reply.episodes.map(({ episode }) => episode);
  return reply.method === 'solve' ? reply.solutions.map(({ episode }) => episode) : [];
}

function isState(entry: Plain): boolean {
  return stateProblem(entry) === undefined;
}

function isLoaded(entry: Plain): boolean {
  const { tag, name, source, version, bundle, files, config, instruction, legend, actions, has_solver } = entry;
  const texts = [tag, name, instruction].every(text => isText(text)) && isText(version, 64);
  const code = isSource(bundle) && isSource(source) && areTexts(files);
  const named = isRecord(legend) && (actions === undefined || areNames(actions));
  return texts && code && named && isRecord(config) && typeof has_solver === 'boolean';
}

function isPrepared({ tag, files, unchecked, environment, problems }: Plain): boolean {
  if (!isText(tag) || !areTexts(files) || !(unchecked === undefined || isText(unchecked))) return false;
  if (environment !== undefined) return isRecord(environment) && environment.tag === tag && isLoaded(environment);
  return Array.isArray(problems) && problems.length > 0 && problems.every(isProblem);
}

function isProblem(problem: unknown): boolean {
  if (!isRecord(problem)) return false;
  const { file, line, column, message, kind } = problem;
  const placed = isText(file, longestText) && Number.isSafeInteger(line) && Number.isSafeInteger(column);
  return placed && isText(message) && (kind === 'build' || kind === 'type' || kind === 'load');
}

function isCovered({ tag, version, map, files }: Plain): boolean {
  const isLine = (line: unknown) =>
    Array.isArray(line) && line.length === 3 && line.every(value => Number.isSafeInteger(value));
  const isFile = (file: unknown) =>
    isRecord(file) && isText(file.file, longestText) && Array.isArray(file.lines) && file.lines.every(isLine);
  return isText(tag) && isText(version, 64) && isText(map, 64) && Array.isArray(files) && files.every(isFile);
}

function isSolution({ episode, actions }: Plain): boolean {
  if (!isText(episode, longestText)) return false;
  return actions === undefined || (Array.isArray(actions) && actions.length <= largest && actions.every(isAction));
}
