// The progress of a rollout: its finished share (0…1) and its counts of episodes and turns. The share never decreases.
import type { RolloutCounts } from './rollout-counts';
import { isDone } from './environment-state-manager';
import type { PlayedSoFar, RolloutRequest } from './rollout-request';

/**
 * The progress of one rollout. The time of a call grows with the number of the given episodes, not with the number of
 * all episodes.
 */
export class RolloutProgress {
  private readonly known = new Map<PlayedSoFar['entry'], { share: number; over: boolean; turns: number }>();
  private readonly counts: RolloutCounts;
  /** Sum of the episodes' shares. */
  private played = 0;
  private reported = 0;

  constructor(
    all: readonly PlayedSoFar[],
    private readonly limits: { max_turn: number; max_new_tokens: number },
    private readonly onProgress: RolloutRequest['onProgress'],
  ) {
    this.counts = { episodes: 0, of: all.length, turns: 0 };
    this.count(all.map(({ entry }) => entry));
  }

  /** Updates the counts with the present state of these episodes. */
  private count(entries: readonly PlayedSoFar['entry'][]): void {
    const { max_turn } = this.limits;
    for (const entry of entries) {
      const before = this.known.get(entry) ?? { share: 0, over: false, turns: 0 };
      const turns = entry.history.length;
      const now = { share: isDone(entry) ? 1 : turns / max_turn, over: isDone(entry) || turns >= max_turn, turns };
      this.known.set(entry, now);
      this.played += now.share - before.share;
      this.counts.episodes += Number(now.over) - Number(before.over);
      this.counts.turns += turns - before.turns;
    }
  }

  /** Reports the progress after a change of these episodes. */
  changed(entries: readonly PlayedSoFar['entry'][]): void {
    this.count(entries);
    this.sampled(0);
  }

  /**
   * Reports the progress while `tokens` tokens of the current turns are sampled. With n episodes, a finished episode
   * contributes 1/n. An unfinished episode contributes a part of 1/n, which grows with its finished turns and with the
   * sampled tokens of its current turn.
   */
  sampled(tokens: number): void {
    const { max_turn, max_new_tokens } = this.limits;
    const generating = tokens / max_new_tokens / max_turn;
    this.reported = Math.max(this.reported, Math.min((this.played + generating) / this.counts.of, 1));
    this.onProgress?.(this.reported, { ...this.counts });
  }

  /** Reports the end of the rollout, after which these episodes do not change. */
  ended(entries: readonly PlayedSoFar['entry'][]): void {
    this.count(entries);
    this.onProgress?.(1, { ...this.counts });
  }
}
