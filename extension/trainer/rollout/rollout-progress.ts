// The progress of a rollout: its finished share (0…1) and its counts of episodes and turns. The share never decreases.
import type { RolloutCounts } from './rollout-counts';
import { isDone } from './environment-state-manager';
import type { PlayedSoFar, RolloutRequest } from './rollout-request';

/**
 * Returns a function that reports the progress. With n episodes, a finished episode contributes 1/n. An unfinished
 * episode contributes a part of 1/n, which grows with its finished turns and with the sampled tokens of its current
 * turn. The episodes are counted anew only in calls with 0 sampled tokens, because a server may report the tokens of
 * every single response.
 */
export function progressReporter(
  all: readonly PlayedSoFar[],
  max_turn: number,
  max_new_tokens: number,
  onProgress: RolloutRequest['onProgress'],
): (sampled: number) => void {
  let reported = 0;
  let played = 0;
  let counts = rolloutCounts(all, max_turn);
  return sampled => {
    if (sampled === 0) {
      played = all.reduce((sum, { entry }) => sum + (isDone(entry) ? 1 : entry.history.length / max_turn), 0);
      counts = rolloutCounts(all, max_turn);
    }
    const generating = sampled / max_new_tokens / max_turn;
    reported = Math.max(reported, Math.min((played + generating) / all.length, 1));
    onProgress?.(reported, counts);
  };
}

export function rolloutCounts(all: readonly PlayedSoFar[], max_turn: number): RolloutCounts {
  const over = all.filter(({ entry }) => isDone(entry) || entry.history.length >= max_turn);
  return {
    episodes: over.length,
    of: all.length,
    turns: all.reduce((sum, { entry }) => sum + entry.history.length, 0),
  };
}
