// Messages between a trainer and whoever watches it (extension host, terminal): JSON-RPC over the run's socket or pipe.
// `hello` carries the lease's token and must come first. Everything lasting is in the run folder; these only say that there is more.
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { RunEvent, RunStatus, SettingChange } from './run-folder';

export interface Welcome {
  run: string;
  pid: number;
  status: RunStatus;
}

/**
 * Whether a lease's endpoint is of this machine: a socket's path, or a pipe's name. A lease that someone else wrote into a run's folder could
 * name a port, or on Windows a pipe of another machine, to which the system would show who connects.
 */
export const isLocalEndpoint = (endpoint: string, windows: boolean): boolean =>
  windows ? /^\\\\\.\\pipe\\[^\\/]+$/.test(endpoint) : endpoint.startsWith('/');

export const hello = new RequestType<{ token: string }, Welcome, void>('ragen/hello');
export const pause = new RequestType<null, RunStatus, void>('ragen/pause');
export const resume = new RequestType<null, RunStatus, void>('ragen/resume');
/** Ends the run, whatever it is at, with a checkpoint of its last finished step. */
export const stop = new RequestType<null, RunStatus, void>('ragen/stop');
/** Writes a checkpoint at the end of the step in hand; answers with its folder's name. */
export const checkpoint = new RequestType<null, { folder: string }, void>('ragen/checkpoint');

/**
 * Changes settings (settings.ts) from the next step on; answers with that step and what differs then, or refuses in one sentence. With
 * `checkOnly` nothing changes.
 */
export const change = new RequestType<
  { values: Record<string, number>; checkOnly?: boolean },
  { step: number; changes: SettingChange[] },
  void
>('ragen/change');

/** Lets a debugger halt the run's environments, until `endDebugging` or until the asker hangs up; answers where it may connect. */
export const debugEnvironments = new RequestType<null, { urls: string[] }, void>('ragen/debugEnvironments');
export const endDebugging = new RequestType<null, RunStatus, void>('ragen/endDebugging');

/** Has the lines of environment code counted that episodes reach (`environments/<version>/coverage.jsonl`), or no more. */
export const coverEnvironments = new RequestType<{ on: boolean }, RunStatus, void>('ragen/coverEnvironments');

/** A turn of the episode that is watched, as far as it is played. */
export interface WatchedTurn {
  /** From 1. */
  turn: number;
  state: string;
  actions_left: number;
  /** What every answer begins with; the model's text is this and its tokens. */
  prefix: string;
  tokens: { text: string; logprob: number }[];
  /** Null until the turn is over: what was read from the answer and what came of it. */
  outcome: {
    thought: string | null;
    answer: string | null;
    executed: string[];
    reward: number;
    penalty: number;
  } | null;
}

/** The episode that is watched, as far as it is played. */
export interface WatchedEpisode {
  id: string;
  mode: 'train' | 'val';
  /** The step that it is played for. */
  step: number;
  tag: string;
  group_id: number;
  member: number;
  seed: number;
  environment: { name: string; version: string };
  turns: WatchedTurn[];
  /** What the environment shows now. */
  state: string;
  over: boolean;
  success: boolean;
  /** Sums of the turns' rewards and of their penalties. */
  reward: number;
  penalty: number;
  error?: string;
}

export interface WatchChoice {
  /** Episodes of this tag alone, and of this prompt group of their batch. */
  tag?: string;
  group?: number;
}

/**
 * Has an episode of the rollouts told as it is played, token by token, or no more; answers with the tags that there are and the episode in
 * hand, if there is one. Where several watch, the newest choice holds for all.
 */
export const watch = new RequestType<
  { on: boolean } & WatchChoice,
  { tags: string[]; episode: WatchedEpisode | null },
  void
>('ragen/watch');

/** The episode that is watched begins, comes to a turn or ends; null when a rollout is over. */
export const watchedEpisode = new NotificationType<{ episode: WatchedEpisode | null }>('ragen/watchedEpisode');
/** Tokens of its newest turn, from index `at` on (at most twenty times a second). */
export const watchedTokens = new NotificationType<{
  id: string;
  turn: number;
  at: number;
  tokens: WatchedTurn['tokens'];
}>('ragen/watchedTokens');

/** The status changed (at most ten times a second). `fraction` is the share of the phase in hand that is done. */
export const statusChanged = new NotificationType<{ status: RunStatus; fraction: number }>('ragen/status');
/** A file of the run folder grew and is complete up to `bytes`. */
export const appended = new NotificationType<{ file: string; bytes: number; step: number }>('ragen/appended');
export const eventHappened = new NotificationType<RunEvent>('ragen/event');
