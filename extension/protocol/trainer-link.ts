// Messages between a trainer and its clients (extension host, terminal): JSON-RPC over the run's socket or pipe.
// `hello` contains the lease's token and must be the first request. All persistent data is in the run folder;
// notifications only report that the data has changed.
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { RoleReturn } from '../run-data/role-return';
import type { RunEvent, SettingChange } from '../run-data/run-events';
import type { RunStatus } from '../run-data/run-status-file';

export interface Welcome {
  run: string;
  pid: number;
  status: RunStatus;
}

/**
 * Whether a lease's endpoint, which is a socket path or a pipe name, is on this machine. A forged lease could name a
 * port or, on Windows, a pipe of another machine. If the client connected to such a pipe, Windows would disclose the
 * user's identity to the other machine.
 */
export const isLocalEndpoint = (endpoint: string, windows: boolean): boolean =>
  windows ? /^\\\\\.\\pipe\\[^\\/]+$/.test(endpoint) : endpoint.startsWith('/');

export const hello = new RequestType<{ token: string }, Welcome, void>('ragen/hello');
export const pause = new RequestType<null, RunStatus, void>('ragen/pause');
export const resume = new RequestType<null, RunStatus, void>('ragen/resume');
/** Ends the run in any phase, and writes a checkpoint of the run's last finished step. */
export const stop = new RequestType<null, RunStatus, void>('ragen/stop');
/** Writes a checkpoint at the end of the current step; returns its folder name. */
export const checkpoint = new RequestType<null, { folder: string }, void>('ragen/checkpoint');

/**
 * Changes settings (run-data/changeable-settings.ts) from the next step on. Returns the number of the next step and the
 * changes. If a change is not possible, rejects with a message of one sentence. With `checkOnly`, only checks the
 * changes.
 */
export const change = new RequestType<
  { values: Record<string, number>; checkOnly?: boolean },
  { step: number; changes: SettingChange[] },
  void
>('ragen/change');

/**
 * Opens the inspectors of the run's environment processes. They stay open until the client sends `endDebugging` or
 * disconnects. Returns the inspectors' addresses, to which a debugger connects.
 */
export const debugEnvironments = new RequestType<null, { urls: string[] }, void>('ragen/debugEnvironments');
export const endDebugging = new RequestType<null, RunStatus, void>('ragen/endDebugging');

/** Switches line coverage of environment code on or off (`environments/<version>/coverage.jsonl`). */
export const coverEnvironments = new RequestType<{ on: boolean }, RunStatus, void>('ragen/coverEnvironments');

/** A turn of the watched episode; incomplete while the turn is being sampled. */
export interface WatchedTurn {
  /** 1-based index of the turn. */
  turn: number;
  /** The role that plays the turn; absent in an environment without roles. */
  role?: string;
  state: string;
  /**
   * Names of the state's pictures in the run folder, absent if it has none. The extension host replaces them by data URLs
   * for pages, null for a picture that is missing or not loaded yet.
   */
  pictures?: (string | null)[];
  actions_left: number;
  /** Generation prefix of every answer; the model's text of a turn is this prefix followed by the turn's tokens. */
  prefix: string;
  tokens: { text: string; logprob: number }[];
  /** Parsed answer and its result; null until the turn is over. */
  outcome: {
    thought: string | null;
    answer: string | null;
    executed: string[];
    reward: number;
    penalty: number;
    /** Reward components of the turn, and their weighted sum; absent if the tag has none. */
    components?: Record<string, number>;
    component_reward?: number;
  } | null;
}

/** The watched episode with its turns up to now. */
export interface WatchedEpisode {
  id: string;
  mode: 'train' | 'val';
  /** The training step whose rollout contains the episode. */
  step: number;
  tag: string;
  group_id: number;
  member: number;
  seed: number;
  environment: { name: string; version: string };
  turns: WatchedTurn[];
  /** The environment's current state, and its pictures as in WatchedTurn. */
  state: string;
  pictures?: (string | null)[];
  over: boolean;
  success: boolean;
  /** What each role has earned so far; absent in an environment without roles. */
  roles?: Record<string, RoleReturn>;
  /** Sums of the turns' rewards and penalties. */
  reward: number;
  penalty: number;
  /** Weighted sum of all reward components so far, without those of judges; absent if the tag has none. */
  component_reward?: number;
  /** Reward components of the complete episode, once it is over. */
  components?: Record<string, number>;
  error?: string;
}

export interface WatchChoice {
  /**
   * If set, an episode with this tag is watched. If `group` is set, the episode is chosen from the prompt group with
   * this index in the batch.
   */
  tag?: string;
  group?: number;
}

/**
 * Switches the token-by-token report of one rollout episode on or off. Returns the available tags and the current
 * episode; the episode is null between rollouts. The newest choice of any client applies to all clients.
 */
export const watch = new RequestType<
  { on: boolean } & WatchChoice,
  { tags: string[]; episode: WatchedEpisode | null },
  void
>('ragen/watch');

/**
 * The watched episode. Sent when the episode starts or ends, and when one of its turns starts or ends. Null when a
 * rollout is over.
 */
export const watchedEpisode = new NotificationType<{ episode: WatchedEpisode | null }>('ragen/watchedEpisode');
/** Tokens of the newest turn, from index `at` on (at most 20 times per second). */
export const watchedTokens = new NotificationType<{
  id: string;
  turn: number;
  at: number;
  tokens: WatchedTurn['tokens'];
}>('ragen/watchedTokens');

/**
 * The new status of the run, sent at most 10 times per second. `fraction` is the completed share of the current phase.
 */
export const statusChanged = new NotificationType<{ status: RunStatus; fraction: number }>('ragen/status');
/** Reports that a file of the run folder has grown and is complete up to the offset `bytes`. */
export const appended = new NotificationType<{ file: string; bytes: number; step: number }>('ragen/appended');
export const eventHappened = new NotificationType<RunEvent>('ragen/event');
