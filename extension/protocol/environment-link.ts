// Messages between a trainer and its environment process. One request carries a whole batch; one reply answers it, or several do where
// some episodes are slow. Requests overlap.
// Carried in frames (frames.ts) over a pipe that is the process's descriptor 3; `id` pairs a reply with its request.
import { areNames, isAction, isFailure, largest, longestText, stateProblem } from './environment-bounds';
import { isRecord } from './json';

/** Variable of a thread's environment, and of what it starts, that names its tag. */
export const tagVariable = 'RAGEN_ENVIRONMENT_TAG';

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
  /** Asks for a sign of life. */
  | { id: number; method: 'ping' }
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
  | { id: number; method: 'ping'; threads: ThreadMemory[] }
  | { id: number; method: 'shutdown' };

/** Unasked messages: what an environment printed. */
export type EnvironmentNotice = { method: 'log'; tag: string; stream: 'stdout' | 'stderr'; text: string };

/** What one thread of the process holds, as far as it is known: its heap and what belongs to it outside. */
export interface ThreadMemory {
  tag: string;
  bytes: number;
}

type Plain = Record<string, unknown>;
const isText = (value: unknown, most = largest): value is string => typeof value === 'string' && value.length <= most;
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(item => isText(item, longestText));
const isSource = (value: unknown): boolean => typeof value === 'string';

/** The list that a reply carries, what each entry must have, and the name that no two entries share. */
const replyLists: Readonly<Record<string, readonly [list: string, isEntry: (entry: Plain) => boolean, key: string] | null>> = {
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
}; // prettier-ignore

/** Whether a message of an environment process is one, with all its values within bounds: a process that says anything else is ended. */
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
 * What is wrong with a reply to a request, as the rest of a sentence whose subject is the process: it answers something else, for
 * episodes or tags that were not asked for, twice, or not at all. `open` are the names that wait for their answer.
 */
export function replyProblem(request: EnvironmentRequest, reply: EnvironmentReply, open: Set<string>): string | undefined {
  if (reply.method !== request.method) return `answered a request to ${request.method} with one to ${reply.method}`;
  for (const name of namesOf(reply))
    if (!open.delete(name)) return `answered for ${JSON.stringify(name.slice(0, 80))}, which nobody asks for`;
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
} // prettier-ignore

/** The names that a reply to a request may answer for. */
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
