// What a rollout is asked for and what it works with: the request, the part of the configuration that the agent proxy
// reads, the generator, and the observer.
import type { SamplingCuts } from '../../engine/sampling/sampling';
import type { EnvironmentFailure, LoadedEnvironment } from '../../protocol/environment-link';
import type { EpisodeTurn } from '../../run-data/episode';
import { UserError } from '../../common/user-error';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { EpisodeContext } from './context-manager';
import type { EpisodeEntry, TagSettings } from './environment-state-manager';
import type { EnvGroups } from './group-layout';
import type { ContextWindowMode } from './response-mask';
import type { TurnProtocol } from './turn-protocol';
import type { PlayedParts } from './played-parts';

/** The engine's text generation; it caches a row's keys and values until the row is released. */
export interface TextGenerator {
  /**
   * Returns responses in the order of `rows`; calls may overlap. `onTokens` receives the number of tokens sampled so
   * far by the running calls.
   */
  generate(
    rows: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<GeneratedRow[]>;
  release(rows: readonly string[]): void | Promise<void>;
}

/**
 * Observer of a rollout. It must not change anything, and must read what it is given at once, since it receives the
 * rollout's own objects.
 */
export interface RolloutObserver {
  /** A rollout begins with these episodes, which are not reset yet. */
  begun(at: Pick<RolloutRequest, 'mode' | 'step'>, all: readonly PlayedSoFar[]): void;
  /** These episodes were reset, or finished a turn. */
  ready(some: readonly PlayedSoFar[]): void;
  /** A response is requested for these episodes; the generator is called next. */
  asked(some: readonly PlayedSoFar[]): void;
  /** The rollout is over. */
  ended(): void;
}

/** The part of the configuration that the proxy reads, under its keys. */
export interface AgentProxyOptions {
  seed: { train: number; val: number };
  agent_proxy: TurnProtocol & {
    max_turn: number;
    context_window_mode: ContextWindowMode;
    max_context_window: number | null;
  };
  enable_response_mask: boolean;
  /** Mask and shorten as RAGEN does (workbench.compat). */
  ragen: boolean;
  rollout: SamplingCuts & { max_model_len: number; response_length: number; stop: string[]; val_kwargs: SamplingCuts };
  es_manager: { format_penalty: number; train: EnvGroups; val: EnvGroups };
  custom_envs: Record<string, TagSettings & { env_instruction?: string | null; max_tokens?: number | null }>;
  /** `workbench.async_rollout`: episodes that are ready do not wait for the others. */
  async_rollout: boolean;
  /** `workbench.max_failed_episodes_share`: a larger share of failed episodes fails the batch. */
  max_failed_episodes_share: number;
  stop_token_ids: number[];
  observer?: RolloutObserver;
}

/** The options that shape an episode's context. */
export type ContextSettings = Pick<AgentProxyOptions, 'agent_proxy' | 'enable_response_mask' | 'ragen'> & {
  rollout: Pick<AgentProxyOptions['rollout'], 'max_model_len' | 'response_length'>;
};

export interface RolloutRequest {
  mode: 'train' | 'val';
  step: number;
  /** Number of the batch within the step, from 0: group and episode ids continue from the previous batches. */
  round?: number;
  /** The loaded environments, one per tag. */
  environments: readonly LoadedEnvironment[];
  /** Overrides the seed of the first group. */
  seed?: number;
  /** Plays only these episodes of the batch (by env_id); each has the same result as in the full batch. */
  only?: ReadonlySet<number>;
  /**
   * Aborts the rollout at once, whatever it waits for; it rejects with the signal's reason and leaves the state
   * unchanged.
   */
  signal?: AbortSignal;
  /** Finished share of the rollout, 0…1, non-decreasing, and counts of finished episodes and turns. */
  onProgress?: (fraction: number, played: PlayedParts) => void;
  /** A failure of its environment ended an episode. */
  onFailure?: (episode: { id: string; tag: string; seed: number; failure: EnvironmentFailure }) => void;
}

/** An episode in progress. */
export interface PlayedSoFar {
  entry: EpisodeEntry;
  context: EpisodeContext;
  finishes: EpisodeTurn['finish'][];
}

/**
 * More episodes of a batch failed than the configuration allows. The state is unchanged; the batch may be played again.
 */
export class FailedBatch extends UserError {}

/** Sampling options of a mode: validation has its own temperature and truncation parameters. */
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
