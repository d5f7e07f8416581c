// What a rollout gives: whole episodes with the tokens the model saw and drew, and the batch's metrics. Training, validation, the
// run folder and the diagnostics all read these.
// An episode is trained on in samples: one of the whole chat in mode `full` (a further one where the chat had to be shortened), one a
// turn in the windowed modes. Scores, groups, filter and metrics speak of episodes, which count once however many samples they have.
import type { EpisodeTurn } from '../../protocol/run-folder';
import type { EnvironmentFailure } from '../../protocol/environment-link';
import type { ChatMessage, EpisodeContext } from './context-manager';
import type { EpisodeEntry } from './environment-state-manager';

/** What is trained on at once: a context exactly as the model saw it, with answers that it drew there. Arrays have the length of `ids`. */
export interface RolloutSample {
  ids: Int32Array;
  /** 1 where a token is trained on: where one was sampled in `turns`, unless the configuration says otherwise (response-mask.ts). */
  mask: Uint8Array;
  /** Of the sampled tokens under the sampler, in nats; 0 elsewhere. */
  logprobs: Float32Array;
  /** Turns (counted from 1) whose answers this sample trains, oldest first, with the span [from, to) of their sampled tokens in `ids`. */
  turns: { turn: number; span: [number, number] }[];
}

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
  /** Says so in one sentence: the environment, the turn, the remedy. */
  context_reason?: string;
  /** The model was shown fewer turns than its window holds, for want of room in `max_model_len`. */
  context_shortened: boolean;
  /** Σ turn rewards, Σ format penalties, and their sum (before normalisation). */
  reward: number;
  penalty: number;
  score: number;
  /** Return in the environment's own scale: Σ `raw_reward` where it is reported, else `reward`. */
  episodic_return: number;
  turns: PlayedTurn[];
  final_state: string;
  /** The whole conversation, whatever of it the model was shown at a time. */
  messages: ChatMessage[];
  /** At least one where there is a turn; every turn is in exactly one of them. */
  samples: RolloutSample[];
  /** Per-episode metrics, keys without tag. */
  metrics: Record<string, number>;
  /** The environment failed: the episode is not trained on. */
  error?: EnvironmentFailure;
}

/** A turn without the place of its tokens, which its sample knows. */
export type PlayedTurn = Omit<EpisodeTurn, 'span'>;

export interface RolloutBatch {
  mode: 'train' | 'val';
  step: number;
  episodes: RolloutEpisode[];
  /** Aggregated, keys without the `train/` or `val-env/` in front. */
  metrics: Record<string, number>;
  /** Seconds in which the generator waited for environments. */
  environmentSeconds: number;
}

/** Whether there is something to train on: the environment did not fail and a token was sampled. */
export const isTrainable = ({ error, turns }: RolloutEpisode): boolean => !error && turns.length > 0;

/** Sampled tokens of the episode's turns. */
export const sampledTokens = ({ samples }: Pick<RolloutEpisode, 'samples'>): number =>
  samples.reduce((sum, { turns }) => sum + turns.reduce((n, { span: [from, to] }) => n + to - from, 0), 0);

/** 1 where a token of the sample's turns was sampled. */
export function sampledMask({ ids, turns }: Pick<RolloutSample, 'ids' | 'turns'>): Uint8Array {
  const mask = new Uint8Array(ids.length);
  for (const { span } of turns) mask.fill(1, ...span);
  return mask;
}

/** The episode as it came out. `finishes[i]` says how the answer of turn i ended. */
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
