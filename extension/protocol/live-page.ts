// Messages between the extension host and the Live page, which shows an episode of an active run token by token.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { RunSummary } from './page-state';
import type { WatchChoice, WatchedEpisode, WatchedTurn } from './trainer-link';

export interface LiveSnapshot {
  run: RunSummary;
  /** Tags of the run; empty until the trainer has sent them. */
  tags: string[];
  choice: WatchChoice;
  episode: WatchedEpisode | null;
}

/** Starts the token-by-token report of an episode with the tag and group that the user chose. */
export const liveReady: RequestType<WatchChoice, LiveSnapshot> = { method: 'live/ready' };
export const liveRun: NotificationType<{ run: RunSummary }> = { method: 'live/run' };
export const liveTags: NotificationType<{ tags: string[] }> = { method: 'live/tags' };
/**
 * The watched episode. Sent when the episode starts or ends, and when one of its turns starts or ends. Null between
 * rollouts.
 */
export const liveEpisode: NotificationType<{ episode: WatchedEpisode | null }> = { method: 'live/episode' };
/** New tokens of the newest turn, from index `at` on. */
export const liveTokens: NotificationType<{ id: string; turn: number; at: number; tokens: WatchedTurn['tokens'] }> = {
  method: 'live/tokens',
};
/** Opens the run's episodes or its log; pauses or resumes the run. */
export const liveCommand: NotificationType<{ command: 'episodes' | 'pause' | 'resume' | 'log' }> = {
  method: 'live/command',
};
