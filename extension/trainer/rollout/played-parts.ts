// How far a rollout is.

/** Progress counts of a rollout. */
export interface PlayedParts {
  /** Finished episodes, all episodes, and finished turns. */
  episodes: number;
  of: number;
  turns: number;
}
