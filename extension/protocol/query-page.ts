// Messages between the extension host and the Query page. The host answers each query with a process of its own
// (`ragen query`), so an answer contains what is on disk at that time, and a cancelled query costs nothing.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { QueryResult } from './query-result';

export type QueryAnswer = { result: QueryResult } | { error: string } | { cancelled: true };

export interface QueryContext {
  /** Name of the workspace folder whose runs are queried. */
  folder: string;
  /** Most rows of an answer. */
  rows: number;
}

export const queryReady: RequestType<null, QueryContext> = { method: 'query/ready' };

/** Executes SQL. A query that is still in progress is cancelled first. */
export const queryRun: RequestType<{ sql: string }, QueryAnswer> = { method: 'query/run' };

/** Ends the query in progress, which is then answered with `cancelled`. */
export const queryCancel: NotificationType<null> = { method: 'query/cancel' };

/** Saves a result as CSV in a file that the user chooses. Returns false if the user cancels. */
export const querySave: RequestType<Pick<QueryResult, 'columns' | 'rows'>, boolean> = { method: 'query/save' };
