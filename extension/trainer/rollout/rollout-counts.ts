// Progress counts of a rollout.

export interface RolloutCounts {
  /** Number of finished episodes, of all episodes, and of finished turns. */
  episodes: number;
  of: number;
  turns: number;
}
