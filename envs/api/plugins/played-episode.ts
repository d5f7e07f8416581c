// An episode as metrics and filters of the workspace receive it. The fields have the names of an episode file
// (docs/RUN-FOLDER.md).
import type { AnsweredTurn } from '../rewards';

/** A played training episode. */
export interface PlayedEpisode {
  /** The id, such as `train-000012-g003-m05`. */
  id: string;
  /** Name of the environment in the configuration. */
  tag: string;
  /** Number of the prompt group, and index of the episode in it. */
  group: number;
  member: number;
  /** Seed of the prompt group. */
  seed: number;
  terminated: boolean;
  truncated: boolean;
  success: boolean;
  /** Sum of the turns' rewards, sum of the penalties, and their sum with all reward components. */
  reward: number;
  penalty: number;
  score: number;
  /** Number of sampled tokens. */
  tokens: number;
  turns: readonly AnsweredTurn[];
}
