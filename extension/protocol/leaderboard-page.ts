// Messages between the extension host and the Leaderboard page. The host reads the evaluations of all workspace folders
// each time the page asks.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { LeaderboardTable } from '../run-data/leaderboard';

export interface LeaderboardSnapshot {
  tables: LeaderboardTable[];
  /** Folders of the runs, by id. */
  folders: Record<string, string>;
  /** Why evaluations are left out, one sentence each. */
  notes: string[];
}

export const leaderboardReady: RequestType<null, LeaderboardSnapshot> = { method: 'leaderboard/ready' };

/** Opens the dashboard of a run, given by its folder. */
export const leaderboardOpen: NotificationType<{ folder: string }> = { method: 'leaderboard/open' };

/** Saves the tables in a file that the user chooses. Returns false if the user cancels. */
export const leaderboardSave: RequestType<{ format: 'csv' | 'md' }, boolean> = { method: 'leaderboard/save' };
