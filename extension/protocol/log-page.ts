// Messages between the extension host and the Log page. When the page opens, the host sends the newest part of the
// run's log, bounded in size. While the page is visible, the host sends the entries that the run has added.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { LogEntry } from '../run-data/log-entries';
import type { RunSummary } from './page-state';

export interface LogSnapshot {
  run: RunSummary;
  /** Entries in the order in which they were written. */
  entries: LogEntry[];
  /** Names of the files of which only the newest part was read. */
  cut: string[];
}

export const logReady: RequestType<null, LogSnapshot> = { method: 'log/ready' };

/** The entries since the last message; empty if only the run's status has changed. */
export const logGrown: NotificationType<Omit<LogSnapshot, 'cut'>> = { method: 'log/grown' };

/** Files that the page can open in the editor. */
export const logFiles = ['trainer.log', 'events.jsonl', 'metrics.jsonl'] as const;

export type LogCommand =
  | { command: 'dashboard' | 'episodes' }
  /** Opens a file of the run in the editor. */
  | { command: 'file'; name: (typeof logFiles)[number] }
  | { command: 'copy'; text: string };
export const logCommand: NotificationType<LogCommand> = { method: 'log/command' };
