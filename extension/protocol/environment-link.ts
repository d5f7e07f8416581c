// Messages between a trainer and its environment process. Messages are frames (frames.ts) over a pipe on file
// descriptor 3. A request may cover a batch of episodes. The process sends one reply to a request, or several replies
// if some episodes are ready before others. A request may be sent before earlier requests are answered; a reply has the
// `id` of its request.
import type { StateForms } from '../../envs/api/environment';
import type { StateForm } from '../../envs/api/state-forms';
import type { AnsweredEpisode, AnsweredTurn } from '../../envs/api/rewards';
import type { RoleOutcome } from '../../envs/api/roles';
import {
  areComponents,
  areNames,
  areStateForms,
  areRoles,
  isAction,
  isFailure,
  largest,
  longestText,
  stateProblem,
} from './environment-message-bounds';
import { isRecord } from '../common/json';
import type { ToolCallRecord } from '../run-data/tool-call';
import { areTools, type ToolDescription, type ToolSettings } from './tool-link';

/**
 * Environment variable with the tag of an environment. It is set in the environment's thread and in the child processes
 * that the environment starts.
 */
export const tagVariable = 'RAGEN_ENVIRONMENT_TAG';

/**
 * Name of the bundle's entry that combines an environment with its rewards file. It is part of the source map, but no
 * such file exists.
 */
export const scoredEntry = 'environment-with-rewards.ts';

/** An environment to load; one per configured tag. */
export interface EnvironmentSpec {
  tag: string;
  /** RAGEN's `env_type`: the name of a built-in environment, or the path of the user's TypeScript file. */
  env_type: string;
  /** Absolute path of the environment's entry file. */
  source: string;
  /** `env_config`: values that override the environment's defaults. */
  config: Record<string, unknown>;
  /** The environment and its rewards file, if it has one. `source` is the file of the two that the user owns. */
  scored?: { environment: string; rewards: string };
  /** Code of an earlier `LoadedEnvironment`. If set, this code is loaded instead of the current file. */
  built?: Pick<LoadedEnvironment, 'bundle' | 'files'>;
  /** Limits and servers of tools; the defaults if absent. */
  tools?: ToolSettings;
}

/** A loaded environment: its code, configuration and task description. */
export interface LoadedEnvironment {
  tag: string;
  name: string;
  source: string;
  /** First 16 hex digits of the SHA-256 of the bundled code; stored with each episode. */
  version: string;
  /** Bundled code, saved in the run folder under `environments/<version>/`. */
  bundle: string;
  /** Absolute paths of all source files in the bundle; live editing watches these files. */
  files: string[];
  /** `env_config` with all defaults filled in. */
  config: Record<string, unknown>;
  instruction: string;
  legend: Record<string, string>;
  actions?: Record<number, string>;
  has_solver: boolean;
  /** Whether the complete answer is one action. If not, the answer is split at the action separator. */
  whole_answer?: boolean;
  /** Whether observations are model calls and actions are replies (envs/api/model-calls.ts). */
  model_calls?: boolean;
  /** Maximum number of episodes that run at the same time; undefined for no limit. */
  at_once?: number;
  /** The tools that the model may call; absent if there are none. */
  tools?: ToolDescription[];
  /** The roles that models play, in the order of their declaration; absent if there are none. */
  roles?: RoleDescription[];
  /** Default weights of the reward components of the code, by name; undefined if it has no score functions. */
  components?: Record<string, number>;
  /** Which score functions the code has; undefined if it has none. */
  scores?: Scores;
  /** The forms in which the environment gives its true state, with their descriptions; undefined if it gives none. */
  state_forms?: StateForms;
}

/** A role of an environment (envs/api/roles.ts). */
export interface RoleDescription {
  name: string;
  /** The task description of the role; by default the environment's instruction. */
  instruction?: string;
}

/** The score functions of environment code. */
export interface Scores {
  turn: boolean;
  episode: boolean;
}

/**
 * What a step request asks score functions to score, after its actions: the turn, whose outcome the environment process
 * adds, or the complete episode.
 */
export type ScoreRequest =
  { turn: Omit<AnsweredTurn, 'executed' | 'reward' | 'info' | 'calls'> } | { episode: AnsweredEpisode };

export interface EpisodeReset {
  /** Episode id, assigned by the trainer; unique while the episode is open. */
  episode: string;
  tag: string;
  seed: number;
  member: number;
  mode: 'train' | 'val';
  /** Asks for the true state in this form; one that the environment declares. */
  state_form?: StateForm;
}

export interface EpisodeActions {
  episode: string;
  /** Actions to execute in order; execution stops after the action that ends the episode. */
  actions: (number | string)[];
  score?: ScoreRequest;
  /** Asks for the true state after the actions in this form. */
  state_form?: StateForm;
}

/** An error in an environment's source. Lines and columns are counted from 1. */
export interface SourceProblem {
  /** Absolute path. */
  file: string;
  line: number;
  column: number;
  /** Last line of the faulty range, and the column after the range's last character; undefined if unknown. */
  endLine?: number;
  endColumn?: number;
  message: string;
  /** What is wrong with the file: it does not build, has type errors, or does not load. */
  kind: 'build' | 'type' | 'load';
}

/** New environment code for a tag: either loaded and ready for `use`, or rejected with a list of all problems. */
export type PreparedEnvironment = {
  tag: string;
  /** Absolute paths of the files to watch: source files and type declarations, as far as they are known. */
  files: string[];
  /** The reason why a requested type check did not run. */
  unchecked?: string;
} & ({ environment: LoadedEnvironment } | { problems: SourceProblem[] });

/** Execution counts for the lines of the environment code of one tag. */
export interface CoveredCode {
  tag: string;
  version: string;
  /** First 8 hex digits of the SHA-256 of the source map. Line numbers of different maps are not comparable. */
  map: string;
  files: {
    /** Absolute path. */
    file: string;
    /**
     * One entry per line with code: the line's number, counted from 1, and the highest and lowest execution counts of
     * the code on this line.
     */
    lines: [line: number, most: number, least: number][];
  }[];
}

/** A failure of an environment. The message is one sentence with location, value and remedy. */
export interface EnvironmentFailure {
  /** `player`: not the environment failed, but a model behind an API that plays a role. */
  kind: 'threw' | 'timed_out' | 'bad_value' | 'died' | 'build' | 'player';
  message: string;
  /** `file:line` in the user's source; undefined if unknown. */
  at?: string;
  /** `env_config` with its defaults; set if only a missing dependency prevents loading. */
  config?: Record<string, unknown>;
}

export interface EpisodeState {
  episode: string;
  /** Text of the observation; its images are in `images`. */
  observation: string;
  images?: Uint8Array[];
  version: string;
  info?: Record<string, unknown>;
  /** The true state; set if the request asked for it. */
  true_state?: string;
  /**
   * Action names by id. Set after a reset, and only if this episode has its own actions. In an environment with roles,
   * also set after a step: the legal actions of the next turn.
   */
  actions?: Record<number, string>;
  /** The role whose turn is next; set if the environment has roles and the episode is not over. */
  role?: string;
  error?: EnvironmentFailure;
}

export interface ActionOutcome {
  action: number | string;
  reward: number;
  terminated: boolean;
  truncated: boolean;
  info: Record<string, unknown>;
  /** The tool calls of the action; absent if the action is an answer. */
  calls?: ToolCallRecord[];
  /** Rewards and successes by role; only in an environment with roles. */
  roles?: Record<string, RoleOutcome>;
}

export interface EpisodeStep extends EpisodeState {
  /** One entry per executed action; fewer than requested if the episode ended. */
  outcomes: ActionOutcome[];
  /** Values of reward components by name; set if the request asked for a score. */
  components?: Record<string, number>;
}

export type EnvironmentRequest =
  | { id: number; method: 'load'; environments: EnvironmentSpec[]; timeout_ms: number }
  /** Builds, type-checks and loads the current files without affecting running episodes; `use` activates the result. */
  | { id: number; method: 'prepare'; environments: EnvironmentSpec[]; timeout_ms: number; check_types: boolean }
  /** Makes later resets use the code that was last prepared for these tags. */
  | { id: number; method: 'use'; tags: string[] }
  /** Opens or closes the inspector on the loopback interface. Calls have no time limit while the inspector is open. */
  | { id: number; method: 'debug'; on: boolean }
  /** Switches line coverage on or off for later resets. The reply contains the counts since the last such request. */
  | { id: number; method: 'cover'; on: boolean }
  | { id: number; method: 'reset'; episodes: EpisodeReset[] }
  | { id: number; method: 'step'; episodes: EpisodeActions[] }
  | { id: number; method: 'solve'; episodes: string[] }
  | { id: number; method: 'close'; episodes: string[] }
  /** Checks that the process responds; the reply contains the memory that the process uses. */
  | { id: number; method: 'ping' }
  | { id: number; method: 'shutdown' };

export type EnvironmentReply =
  | { id: number; method: 'load'; environments: LoadedEnvironment[]; error?: EnvironmentFailure }
  | { id: number; method: 'prepare'; environments: PreparedEnvironment[] }
  | { id: number; method: 'use' }
  /** `url` is the address to which a debugger connects. */
  | { id: number; method: 'debug'; url?: string }
  | { id: number; method: 'cover'; covered: CoveredCode[] }
  /**
   * If `more` is set, the reply is partial: it contains the episodes that are ready, and the other episodes follow in
   * later replies with the same id.
   */
  | { id: number; method: 'reset'; episodes: EpisodeState[]; more?: true }
  | { id: number; method: 'step'; episodes: EpisodeStep[]; more?: true }
  | { id: number; method: 'solve'; solutions: { episode: string; actions?: (number | string)[] }[] }
  | { id: number; method: 'close' }
  | { id: number; method: 'ping'; threads: ThreadMemory[] }
  | { id: number; method: 'shutdown' };

/** Notification: text that an environment printed. */
export type EnvironmentNotice = { method: 'log'; tag: string; stream: 'stdout' | 'stderr'; text: string };

/** Memory of one thread in bytes at its last measurement: heap and native memory. */
export interface ThreadMemory {
  tag: string;
  bytes: number;
}

type Plain = Record<string, unknown>;
const isText = (value: unknown, most = largest): value is string => typeof value === 'string' && value.length <= most;
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(item => isText(item, longestText));
const isSource = (value: unknown): boolean => typeof value === 'string';

/**
 * Properties of the list in the reply to each method: the list's name, the function that checks an entry, and the key
 * that must be unique among the entries ('' if none). Null if the reply has no list.
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
 * Whether a message of an environment process is valid and within bounds. The trainer ends a process that sends an
 * invalid message.
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
 * Returns what is wrong with a reply, as the rest of a sentence that begins with 'the process', for example 'did not
 * answer for 2 of the requested episodes'. Returns undefined if the reply is correct. A reply is wrong if it is for
 * another method, omits a requested name, contains a name twice, or contains a name that was not requested.
 * @param open requested names without an answer so far; the names in the reply are removed from this set
 */
export function replyProblem(
  request: EnvironmentRequest,
  reply: EnvironmentReply,
  open: Set<string>,
): string | undefined {
  if (reply.method !== request.method) return `answered a ${request.method} request with a ${reply.method} reply`;
  for (const name of namesOf(reply))
    if (!open.delete(name)) return `answered for ${JSON.stringify(name.slice(0, 80))}, which was not requested`;
  if (reply.method === 'step' && request.method === 'step') {
    const asked = new Map(request.episodes.map(({ episode, actions }) => [episode, actions]));
    for (const { episode, outcomes } of reply.episodes) {
      const actions = asked.get(episode)!;
      if (outcomes.length > actions.length || outcomes.some(({ action }, i) => action !== actions[i]))
        return `reported actions of episode ${JSON.stringify(episode.slice(0, 80))} that were not requested`;
    }
  }
  const whole = reply.method === 'reset' || reply.method === 'step' || reply.method === 'solve';
  if (whole && !('more' in reply && reply.more) && open.size > 0)
    return `did not answer for ${open.size} of the requested episodes`;
  return undefined;
}

/** Returns the names (tags or episode ids) that replies to a request may contain. */
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
  const { tag, name, source, version, bundle, files, config } = entry;
  const { instruction, legend, actions, components, scores, tools, roles, has_solver, at_once, state_forms } = entry;
  const texts = [tag, name, instruction].every(text => isText(text)) && isText(version, 64);
  const code = isSource(bundle) && isSource(source) && areTexts(files);
  const named = isRecord(legend) && (actions === undefined || areNames(actions));
  const scored = (components === undefined || areComponents(components)) && (scores === undefined || isScores(scores));
  const callable = (tools === undefined || areTools(tools)) && (roles === undefined || areRoles(roles));
  const limited = at_once === undefined || (Number.isSafeInteger(at_once) && Number(at_once) >= 1);
  const stated = state_forms === undefined || areStateForms(state_forms);
  return (
    texts &&
    code &&
    named &&
    scored &&
    callable &&
    limited &&
    stated &&
    isRecord(config) &&
    typeof has_solver === 'boolean'
  );
}

const isScores = (scores: unknown): boolean =>
  isRecord(scores) && typeof scores.turn === 'boolean' && typeof scores.episode === 'boolean';

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
