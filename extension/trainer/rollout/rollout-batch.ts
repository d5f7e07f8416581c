// The result of a rollout: complete episodes with the tokens that the model saw and sampled, and the metrics of the
// batch. Used by training, validation, the run folder and the diagnostics.
// Training uses the samples of an episode: in mode `full`, one sample for the complete chat plus one each time the chat
// was shortened. In the windowed modes, there is one sample per turn. Scores, groups, filter and metrics refer to
// episodes, regardless of the number of samples of an episode.
import type { EpisodeTurn } from '../../run-data/episode';
import type { RoleReturn } from '../../run-data/role-return';
import type { Judgement } from '../../run-data/judgement';
import type { EnvironmentFailure } from '../../protocol/environment-link';
import type { PlayedContext } from './played-context';
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import { roleReturns } from './role-credit';
import type { RolloutSample } from './rollout-sample';
import type { EpisodeEntry } from './environment-state-manager';
import { weightedSum } from '../rewards/reward-plan';

export interface RolloutEpisode {
  /** The id, such as `train-000012-g003-m05`. */
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
  /** True if the episode ended because its next prompt did not fit into `max_model_len`. */
  context_full: boolean;
  /** One sentence that names the environment, the turn and a remedy; present if `context_full` is true. */
  context_reason?: string;
  /** True if some prompts show fewer turns than the window allows, because of `max_model_len`. */
  context_shortened: boolean;
  /** Sum of the turn rewards, and of the rewards of roles that had no turn. */
  reward: number;
  /** Sum of the format penalties. */
  penalty: number;
  /**
   * Weighted sum of the reward components of all turns and of the episode; undefined if the tag has no components.
   */
  component_reward?: number;
  /** Weighted sum of the reward components of the complete episode; a part of `component_reward`. */
  end_reward?: number;
  /** Values of the reward components of the complete episode, before weights. */
  components?: Record<string, number>;
  /** Judgements of the complete episode, by reward component; undefined without judges. */
  judgements?: Record<string, Judgement[]>;
  /** `reward` + `penalty` + `component_reward`, before normalisation. */
  score: number;
  /**
   * Return on the environment's own scale: the sum of `raw_reward` if the environment reports `raw_reward`, otherwise
   * `reward`.
   */
  episodic_return: number;
  /** What each role has earned, in the order of their declaration; undefined without roles. */
  roles?: Record<string, RoleReturn>;
  turns: PlayedTurn[];
  final_state: string;
  /** Names of the final state's pictures; absent if it has none. */
  final_pictures?: (string | null)[];
  /** The complete conversation, including messages that were outside the model's window in some turns. */
  messages: (ChatMessage & { name?: string })[];
  /** Every turn of the policy is in exactly one sample. */
  samples: RolloutSample[];
  /** Metrics of the episode; the keys do not include the tag. */
  metrics: Record<string, number>;
  /**
   * Describes the failure of the environment; undefined if the environment did not fail. Episodes with a failure are
   * not trained on.
   */
  error?: EnvironmentFailure;
}

/** A turn without the position of its tokens; the sample of the turn stores this position. */
export type PlayedTurn = Omit<EpisodeTurn, 'span'>;

export interface RolloutBatch {
  mode: 'train' | 'val';
  step: number;
  episodes: RolloutEpisode[];
  /** Metrics of the batch; the keys do not include the prefix `train/` or `val-env/`. */
  metrics: Record<string, number>;
  /** Seconds in which the generator was idle because it waited for environments. */
  environmentSeconds: number;
}

/** Whether the episode can be trained on: it did not fail, and the policy had at least one turn. */
export const isTrainable = ({ error, samples }: RolloutEpisode): boolean => !error && samples.length > 0;

/** Returns the score of an episode. Without components, nothing is added, so the score keeps its bits. */
export const scoreOf = ({
  reward,
  penalty,
  component_reward,
}: Pick<RolloutEpisode, 'reward' | 'penalty' | 'component_reward'>): number =>
  component_reward === undefined ? reward + penalty : reward + penalty + component_reward;

/** Returns the return of an episode on the environment's own scale. */
export function episodicReturn({
  reward,
  turns,
}: {
  reward: number;
  turns: readonly Pick<PlayedTurn, 'info'>[];
}): number {
  const raw = turns.map(({ info }) => info.raw_reward).filter(value => typeof value === 'number');
  return raw.length > 0 ? raw.reduce((sum, value) => sum + value, 0) : reward;
}

/** Returns the number of sampled tokens in all turns of the episode. */
export const sampledTokens = ({ samples }: Pick<RolloutEpisode, 'samples'>): number =>
  samples.reduce((sum, { turns }) => sum + turns.reduce((n, { span: [from, to] }) => n + to - from, 0), 0);

/** Returns the weighted sums of the components that the turns and the episode have so far; empty without components. */
export function componentRewards({
  rewards,
  history,
  components = {},
}: Pick<EpisodeEntry, 'rewards' | 'history' | 'components'>): Pick<RolloutEpisode, 'component_reward' | 'end_reward'> {
  if (!rewards) return {};
  const end_reward = weightedSum(rewards, components);
  const component_reward = history.reduce((sum, turn) => sum + (turn.component_reward ?? 0), end_reward);
  return { component_reward, end_reward };
}

/** Builds the record of a finished episode. */
export function finishedEpisode(
  at: { mode: 'train' | 'val'; step: number },
  entry: EpisodeEntry,
  context: Pick<PlayedContext, 'messages' | 'shortened' | 'samples'>,
): RolloutEpisode {
  const unplayed = Object.values(entry.roles ?? {}).reduce((sum, { waiting }) => sum + waiting, 0);
  const reward = entry.history.reduce((sum, turn) => sum + turn.reward, unplayed);
  const earned = componentRewards(entry);
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
    ...earned,
    ...(entry.components && { components: entry.components }),
    ...(entry.judgements && { judgements: entry.judgements }),
    score: scoreOf({ reward, penalty: entry.penalty, ...earned }),
    episodic_return: episodicReturn({ reward, turns: entry.history }),
    ...(entry.roles && { roles: roleReturns(entry.roles, entry.history, earned.end_reward) }),
    turns: [...entry.history],
    final_state: entry.state,
    ...(entry.pictures.length > 0 && { final_pictures: entry.pictures.map(({ name }) => name) }),
    messages: [...context.messages],
    samples: context.samples(),
    metrics: {},
    error: entry.error,
  };
}
