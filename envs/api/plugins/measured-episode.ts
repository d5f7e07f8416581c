// An episode as metrics receive it, built-in ones and those of the workspace: a played episode, with what only metrics
// and charts need. The fields have the names of an episode file (docs/RUN-FOLDER.md).
import type { AnsweredTurn } from '../rewards';
import type { PlayedEpisode } from './played-episode';

/** A judgement by a model behind an API. */
export interface MeasuredJudgement {
  /** Name of the model in `model_info`. */
  model: string;
  /** Score from 0 to 1; null if the judge gave none. */
  score: number | null;
  /** Whether the reply was known from an earlier request with the same content. */
  cached: boolean;
  /** Input and output tokens of the request, and their cost by `price_per_million`. */
  tokens: number;
  cost: number;
}

/** Judgements by the names of reward components. */
export type MeasuredJudgements = Readonly<Record<string, readonly MeasuredJudgement[]>>;

export interface MeasuredTurn extends AnsweredTurn {
  /** Judgements of the turn's descriptions of states; absent without judges of them. */
  judgements?: MeasuredJudgements;
}

export interface MeasuredEpisode extends PlayedEpisode {
  turns: readonly MeasuredTurn[];
  /** Whether the step trained on the episode. */
  kept: boolean;
  /** Whether the prompts of the episode ask for a thought before the answer. */
  thinks: boolean;
  /** Sum of `raw_reward` of the turns' infos if the environment reports it, otherwise `reward`. */
  episodic_return: number;
  /** Whether the episode ended because its next prompt did not fit into the model's context. */
  context_full: boolean;
  /** Whether prompts show fewer turns than the context window allows, because they did not fit. */
  context_shortened: boolean;
  /** The episode's own metrics, such as `num_actions`, numbers of `info`, `components/<name>` and `roles/<role>/score`. */
  metrics: Readonly<Record<string, number>>;
  /** Judgements of the complete episode; absent without judges of it. */
  judgements?: MeasuredJudgements;
  /** How the environment failed; absent if it did not. */
  error?: string;
}
