// Messages between a trainer and whoever watches it (extension host, terminal): JSON-RPC over the run's socket or pipe.
// `hello` carries the lease's token and must come first. Everything lasting is in the run folder; these only say that there is more.
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { RunEvent, RunStatus } from './run-folder';

export interface Welcome {
  run: string;
  pid: number;
  status: RunStatus;
}

export const hello = new RequestType<{ token: string }, Welcome, void>('ragen/hello');
export const pause = new RequestType<null, RunStatus, void>('ragen/pause');
export const resume = new RequestType<null, RunStatus, void>('ragen/resume');
/** Ends the run after the step in hand, with a checkpoint. */
export const stop = new RequestType<null, RunStatus, void>('ragen/stop');
/** Writes a checkpoint at the end of the step in hand; answers with its folder's name. */
export const checkpoint = new RequestType<null, { folder: string }, void>('ragen/checkpoint');

/** The status changed (at most ten times a second). `fraction` is the share of the phase in hand that is done. */
export const statusChanged = new NotificationType<{ status: RunStatus; fraction: number }>('ragen/status');
/** A file of the run folder grew and is complete up to `bytes`. */
export const appended = new NotificationType<{ file: string; bytes: number; step: number }>('ragen/appended');
export const eventHappened = new NotificationType<RunEvent>('ragen/event');
