// What a rollout gives: whole episodes with the tokens the model saw and drew, and the batch's metrics. Training, validation, the
// run folder and the diagnostics all read these.
import type { EpisodeTurn } from '../../protocol/run-folder';
import type { EnvironmentFailure } from '../../protocol/environment-link';
import type { ChatMessage, EpisodeContext } from './context-manager';
import type { EpisodeEntry } from './environment-state-manager';

export interface RolloutEpisode {
  /** `train-000012-g003-m05`. */
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
  /** Ended because the next prompt would not have fitted into `max_model_len`. */
  context_full: boolean;
  /** Σ turn rewards, Σ format penalties, and their sum (before normalisation). */
  reward: number;
  penalty: number;
  score: number;
  /** Return in the environment's own scale: Σ `raw_reward` where it is reported, else `reward`. */
  episodic_return: number;
  turns: EpisodeTurn[];
  final_state: string;
  messages: ChatMessage[];
  /** All tokens; `mask` is 1 where one was sampled, `logprobs` (nats) holds there and is 0 elsewhere. */
  ids: Int32Array;
  mask: Uint8Array;
  logprobs: Float32Array;
  /** Per-episode metrics, keys without tag. */
  metrics: Record<string, number>;
  /** The environment failed: the episode is not trained on. */
  error?: EnvironmentFailure;
}

export interface RolloutBatch {
  mode: 'train' | 'val';
  step: number;
  episodes: RolloutEpisode[];
  /** Aggregated, keys without the `train/` or `val-env/` in front. */
  metrics: Record<string, number>;
}

/** Whether there is something to train on: the environment did not fail and a token was sampled. */
export const isTrainable = ({ error, turns }: RolloutEpisode): boolean => !error && turns.length > 0;

/** The episode as it came out. `finishes[i]` says how the answer of turn i ended. */
export function finishedEpisode(
  at: { mode: 'train' | 'val'; step: number },
  entry: EpisodeEntry,
  context: EpisodeContext,
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
    reward,
    penalty: entry.penalty,
    score: reward + entry.penalty,
    episodic_return: raw.length > 0 ? raw.reduce((sum, value) => sum + value, 0) : reward,
    turns: entry.history.map((turn, index) => ({ ...turn, finish: finishes[index], span: context.spans[index] })),
    final_state: entry.state,
    messages: [...context.messages],
    ids: Int32Array.from(context.ids),
    mask: Uint8Array.from(context.mask),
    logprobs: Float32Array.from(context.logprobs),
    metrics: {},
    error: entry.error,
  };
}
