// Progress counts of a rollout.

export interface RolloutCounts {
  /** Number of finished episodes. */
  episodes: number;
  /** Number of all episodes. */
  of: number;
  /** Number of finished turns. */
  turns: number;
}
