// The inputs of a rollout: the request, the part of the configuration that the agent proxy reads, the generator, and
// the observer.
import type { SamplingCuts } from '../../engine/sampling/host-sampler';
import type { EnvironmentFailure, LoadedEnvironment } from '../../protocol/environment-link';
import { UserError } from '../../common/user-error';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { RolloutJudges } from '../rewards/judge-panel';
import type { PlayedContext } from './played-context';
import type { EpisodeEntry, TagSettings } from './environment-state-manager';
import type { EnvGroups } from './group-layout';
import type { ObservedPictures } from './observed-pictures';
import type { RolloutPlayers } from './role-player';
import type { Remember } from './remembered-window';
import type { ContextWindowMode } from './response-mask';
import type { TurnProtocol } from './turn-protocol';
import type { RolloutCounts } from './rollout-counts';

/** The engine's text generation. A row's keys and values stay cached until the row is released. */
export interface TextGenerator {
  /**
   * Number of rows that one call of `generate` should have. A wave with more rows is generated in several calls. While
   * one call samples, the prompts and environments of the other calls can be computed. By default, a wave is generated
   * in one call.
   */
  readonly rowsPerCall?: number;
  /**
   * Returns one response per row, in the order of `rows`. Calls may overlap. `onTokens` receives the number of tokens
   * that the running calls have sampled so far. `weights` names the published version of the weights that is used; by
   * default, the current weights are used.
   */
  generate(
    rows: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
    weights?: string,
  ): Promise<GeneratedRow[]>;
  release(rows: readonly string[]): void | Promise<void>;
}

/**
 * Observer of a rollout. Its methods receive the objects that the rollout itself uses. The methods must
 * not change these objects, and must read them before they return.
 */
export interface RolloutObserver {
  /** Called when a rollout begins; the environments are not reset yet. */
  begun(at: Pick<RolloutRequest, 'mode' | 'step'>, all: readonly PlayedSoFar[]): void;
  /** Called after these episodes were reset or finished a turn. */
  ready(some: readonly PlayedSoFar[]): void;
  /** Called before the generator samples a response for these episodes. */
  asked(some: readonly PlayedSoFar[]): void;
  /** Called when the rollout has ended, normally or with an error. */
  ended(): void;
}

/** The part of the configuration that the agent proxy reads. */
export interface AgentProxyOptions {
  seed: { train: number; val: number };
  agent_proxy: TurnProtocol & {
    max_turn: number;
    context_window_mode: ContextWindowMode;
    max_context_window: number | null;
  };
  enable_response_mask: boolean;
  /** Whether masks are built and prompts shortened exactly as in RAGEN (`workbench.compat: ragen`). */
  ragen: boolean;
  rollout: SamplingCuts & { max_model_len: number; response_length: number; stop: string[]; val_kwargs: SamplingCuts };
  es_manager: { format_penalty: number; train: EnvGroups; val: EnvGroups };
  custom_envs: Record<string, TagSettings & { env_instruction?: string | null; max_tokens?: number | null }>;
  /** `workbench.async_rollout`: if true, episodes advance independently instead of in lock step. */
  async_rollout: boolean;
  /** `workbench.max_failed_episodes_share`: the batch fails if a larger share of its episodes fails. */
  max_failed_episodes_share: number;
  stop_token_ids: number[];
  /** The context memory of the workspace, for `single_turn`; by default, the built-in summaries are used. */
  remember?: Remember;
  observer?: RolloutObserver;
  /** Receives the pictures of observations; without it, a run ends when an environment returns pictures. */
  pictures?: Pick<ObservedPictures, 'admit'>;
  /** The judges of the tags; without them, components that judges score are missing. */
  judges?: { openRollout(): RolloutJudges };
  /** The models that play roles; without them, the policy plays all roles. */
  players?: { openRollout(): RolloutPlayers };
}

/** The options on which an episode's context depends. */
export type ContextSettings = Pick<AgentProxyOptions, 'agent_proxy' | 'enable_response_mask' | 'ragen' | 'remember'> & {
  rollout: Pick<AgentProxyOptions['rollout'], 'max_model_len' | 'response_length'>;
};

export interface RolloutRequest {
  mode: 'train' | 'val';
  step: number;
  /**
   * Number of the batch within the step, from 0. Ids of groups and episodes continue from the previous batches of the
   * step.
   */
  round?: number;
  /** Layout of the batch; by default that of `es_manager`. The number of groups must be the same. */
  groups?: EnvGroups;
  /** The loaded environments, one per tag. */
  environments: readonly LoadedEnvironment[];
  /**
   * Seed of the first group. By default, training uses the next seed of its sequence, and validation uses its fixed
   * seed.
   */
  seed?: number;
  /**
   * The env_ids of the episodes to play; by default, all episodes of the batch are played. An episode gives the same
   * results as if the full batch were played.
   */
  only?: ReadonlySet<number>;
  /** Name of the published version of the weights that the rollout uses; by default, it uses the current weights. */
  weights?: string;
  /**
   * Aborts the rollout immediately, even while an environment call is pending. The rollout rejects with the signal's
   * reason, and the seed counter stays unchanged.
   */
  signal?: AbortSignal;
  /**
   * Receives the finished share of the rollout (0…1, never decreasing) and the counts of finished episodes and turns.
   */
  onProgress?: (fraction: number, played: RolloutCounts) => void;
  /** Called when an environment failure has ended an episode. */
  onFailure?: (episode: { id: string; tag: string; seed: number; failure: EnvironmentFailure }) => void;
}

/** An episode in progress. */
export interface PlayedSoFar {
  entry: EpisodeEntry;
  context: PlayedContext;
}

/**
 * Thrown if more episodes of a batch failed than the configuration allows. The seed counter is unchanged, so the batch
 * can be played again.
 */
export class FailedBatch extends UserError {}

/** Returns the sampling options of a mode. Validation has separate temperature and truncation parameters. */
export function samplingFor(mode: 'train' | 'val', { rollout, stop_token_ids }: AgentProxyOptions): SamplingOptions {
  const { temperature, top_p, top_k, min_p, repetition_penalty, do_sample } =
    mode === 'val' ? rollout.val_kwargs : rollout;
  return {
    temperature,
    top_p,
    top_k,
    min_p,
    repetition_penalty,
    do_sample,
    max_new_tokens: rollout.response_length,
    stop_token_ids,
    stop: rollout.stop,
    max_model_len: rollout.max_model_len,
  };
}
