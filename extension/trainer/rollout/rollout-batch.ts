// The result of a rollout: complete episodes with the tokens the model saw and sampled, and the batch's metrics. Read
// by training, validation, the run folder and the diagnostics.
// Training uses an episode's samples: one for the whole chat in mode `full` (another one where the chat had to be
// shortened), one per turn in the windowed modes. Scores, groups, filter and metrics refer to episodes, which count
// once however many samples they have.
import type { EpisodeTurn } from '../../run-data/episode';
import type { EnvironmentFailure } from '../../protocol/environment-link';
import type { EpisodeContext } from './context-manager';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import type { RolloutSample } from './rollout-sample';
import type { EpisodeEntry } from './environment-state-manager';

export interface RolloutEpisode {
  /** For example `train-000012-g003-m05`. */
  id: string;
  mode: 'train' | 'val';
  step: number;
  env_id: number;
  group_id: number;
  member: number;
  tag: string;
  seed: number;
  environment: { name: string; version: string };
  terminated: boolean;
  truncated: boolean;
  success: boolean;
  /** Ended because the next prompt would not fit into `max_model_len`. */
  context_full: boolean;
  /** The reason in one sentence: the environment, the turn, the remedy. */
  context_reason?: string;
  /** Some prompts show fewer turns than the window allows, because of `max_model_len`. */
  context_shortened: boolean;
  /** Σ turn rewards, Σ format penalties, and their sum (before normalisation). */
  reward: number;
  penalty: number;
  score: number;
  /** Return in the environment's own scale: Σ `raw_reward` if reported, else `reward`. */
  episodic_return: number;
  turns: PlayedTurn[];
  final_state: string;
  /** The whole conversation, including parts that the model did not see at every turn. */
  messages: ChatMessage[];
  /** At least one if there is a turn; every turn is in exactly one sample. */
  samples: RolloutSample[];
  /** Per-episode metrics, keys without tag. */
  metrics: Record<string, number>;
  /** The environment's failure; such an episode is not trained on. */
  error?: EnvironmentFailure;
}

/** A turn without the position of its tokens, which its sample stores. */
export type PlayedTurn = Omit<EpisodeTurn, 'span'>;

export interface RolloutBatch {
  mode: 'train' | 'val';
  step: number;
  episodes: RolloutEpisode[];
  /** Aggregated metrics, keys without the prefix `train/` or `val-env/`. */
  metrics: Record<string, number>;
  /** Seconds for which the generator waited for environments. */
  environmentSeconds: number;
}

/** Whether the episode can be trained on: the environment did not fail and it has a turn. */
export const isTrainable = ({ error, turns }: RolloutEpisode): boolean => !error && turns.length > 0;

/** Number of sampled tokens in the episode's turns. */
export const sampledTokens = ({ samples }: Pick<RolloutEpisode, 'samples'>): number =>
  samples.reduce((sum, { turns }) => sum + turns.reduce((n, { span: [from, to] }) => n + to - from, 0), 0);

/** Builds the finished episode. `finishes[i]` says how the response of turn i ended. */
export function finishedEpisode(
  at: { mode: 'train' | 'val'; step: number },
  entry: EpisodeEntry,
  context: Pick<EpisodeContext, 'messages' | 'shortened' | 'samples'>,
  finishes: readonly EpisodeTurn['finish'][],
): RolloutEpisode {
  const reward = entry.history.reduce((sum, turn) => sum + turn.reward, 0);
  const raw = entry.history.map(({ info }) => info.raw_reward).filter(value => typeof value === 'number');
  return {
    id: entry.id,
    mode: at.mode,
    step: at.step,
    env_id: entry.env_id,
    group_id: entry.group_id,
    member: entry.member,
    tag: entry.tag,
    seed: entry.seed,
    environment: { name: entry.environment.name, version: entry.version },
    terminated: entry.terminated,
    truncated: entry.truncated,
    success: entry.success,
    context_full: entry.context_full,
    ...(entry.context_reason !== undefined && { context_reason: entry.context_reason }),
    context_shortened: context.shortened,
    reward,
    penalty: entry.penalty,
    score: reward + entry.penalty,
    episodic_return: raw.length > 0 ? raw.reduce((sum, value) => sum + value, 0) : reward,
    turns: entry.history.map((turn, index) => ({ ...turn, finish: finishes[index] })),
    final_state: entry.state,
    messages: [...context.messages],
    samples: context.samples(),
    metrics: {},
    error: entry.error,
  };
}
