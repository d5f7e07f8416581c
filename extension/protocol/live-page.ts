// Messages between the extension host and the Live page: an episode of a running run, told token by token while it is played.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { RunSummary } from './pages';
import type { WatchChoice, WatchedEpisode, WatchedTurn } from './trainer-link';

export interface LiveSnapshot {
  run: RunSummary;
  /** Tags that the run plays; empty until its trainer has told them. */
  tags: string[];
  choice: WatchChoice;
  episode: WatchedEpisode | null;
}

/** Begins to watch, by the page's choice. */
export const liveReady: RequestType<WatchChoice, LiveSnapshot> = { method: 'live/ready' };
export const liveRun: NotificationType<{ run: RunSummary }> = { method: 'live/run' };
export const liveTags: NotificationType<{ tags: string[] }> = { method: 'live/tags' };
/** An episode begins, comes to a turn or ends; null between rollouts. */
export const liveEpisode: NotificationType<{ episode: WatchedEpisode | null }> = { method: 'live/episode' };
/** Tokens of its newest turn, from index `at` on. */
export const liveTokens: NotificationType<{ id: string; turn: number; at: number; tokens: WatchedTurn['tokens'] }> = {
  method: 'live/tokens',
};
/** Opens a stored episode as a trace, or the run's episodes; pauses or resumes the run. */
export const liveCommand: NotificationType<{ command: 'episodes' | 'pause' | 'resume' | 'log' }> = {
  method: 'live/command',
};
