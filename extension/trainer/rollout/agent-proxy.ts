// The agent proxy (RAGEN's LLMAgentProxy): plays a batch of episodes turn by turn, batching episodes that are ready at
// the same time. With fast environments these are all unfinished episodes; a slow environment delays no other, unless
// `async_rollout` is off. Training and validation share this code and differ only in groups, seeds and sampling.
// Invariant: an episode's tokens depend only on the weights and (seed, step, env_id, turn), not on the rest of the
// batch.
import type { EnvironmentFailure, LoadedEnvironment } from '../../protocol/environment-link';
import type { SamplingCuts } from '../engine/sampling';
import { appendAll } from '../../protocol/lists';
import type { EpisodeTurn } from '../../protocol/run-folder';
import { UserError } from '../../protocol/user-error';
import { abortable } from '../abortable';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../engine/engine';
import { EpisodeContext } from './context-manager';
import type { PromptTokenizer } from './prompt-tokenizer';
import { ChatWindow, MemoryWindow, windowTurns, withoutOldestMessages, withoutOldestTurn } from './context-window';
import type { EnvironmentPool } from './environment-pool';
import {
  EnvironmentStateManager,
  isDone,
  type EpisodeEntry,
  type TagSettings,
  type TurnInput,
} from './environment-state-manager';
import type { EnvGroups, SeedState } from './group-layout';
import { IdleGeneratorClock } from './idle-generator-clock';
import { finishedEpisode, type RolloutBatch } from './rollout-batch';
import { alfWorldMemory, simpleMemory } from './memories';
import { maskRule, type ContextWindowMode } from './response-mask';
import { measureRollout } from './rollout-metrics';
import { deriveSeed } from './seeds';
import { systemMessage } from './system-message';
import { generationPrefix, parseResponse, type TurnPrompt, type TurnProtocol } from './turn-protocol';

/** The engine's text generation; it caches a row's keys and values until the row is released. */
export interface Generator {
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

/** Progress counts of a rollout. */
export interface PlayedParts {
  /** Finished episodes, all episodes, and finished turns. */
  episodes: number;
  of: number;
  turns: number;
}

/**
 * More episodes of a batch failed than the configuration allows. The state is unchanged; the batch may be played again.
 */
export class FailedBatch extends UserError {}

export class AgentProxy {
  private readonly managers: Record<'train' | 'val', EnvironmentStateManager>;

  constructor(
    private readonly generator: Generator,
    pool: EnvironmentPool,
    private readonly tokenizer: PromptTokenizer,
    private readonly options: AgentProxyOptions,
  ) {
    const manager = (mode: 'train' | 'val'): EnvironmentStateManager =>
      new EnvironmentStateManager(pool, {
        mode,
        seed: options.seed[mode],
        groups: options.es_manager[mode],
        custom_envs: options.custom_envs,
        format_penalty: options.es_manager.format_penalty,
      });
    this.managers = { train: manager('train'), val: manager('val') };
  }

  /** Training's seed counter, for checkpoints; validation has none to save. */
  get state(): SeedState {
    return this.managers.train.state;
  }

  restore(state: SeedState): void {
    this.managers.train.restore(state);
  }

  /**
   * Plays one batch to its end.
   * @throws FailedBatch if too many environments failed; UserError if no prompt fits into the model's context
   */
  async rollout(request: RolloutRequest): Promise<RolloutBatch> {
    const { mode, step } = request;
    const manager = this.managers[mode];
    const before = manager.state;
    const laidOut = manager.layOut(step, request.environments, request.seed, request.round);
    const entries = laidOut.filter(({ env_id }) => request.only?.has(env_id) ?? true);
    const playing = entries.map(entry => ({ entry, context: this.openContext(entry), finishes: [] }));
    this.options.observer?.begun({ mode, step }, playing);
    const clock = new IdleGeneratorClock();
    try {
      await abortable(request.signal, this.play(manager, playing, request, clock));
    } catch (error) {
      manager.restore(before); // so that a retry plays the same batch
      const cleanUp = this.cleanUp(manager, entries).catch(() => undefined); // report the first error, not a later one
      if (!request.signal?.aborted) await cleanUp; // after an abort an environment may never answer
      throw error;
    } finally {
      this.options.observer?.ended();
    }
    await this.cleanUp(manager, entries);
    const episodes = playing.map(({ entry, context, finishes }) => finishedEpisode(request, entry, context, finishes));
    const metrics = measureRollout(episodes, this.options.es_manager[mode].group_size);
    return { mode, step, episodes, metrics, environmentSeconds: clock.seconds };
  }

  private async play(
    manager: EnvironmentStateManager,
    all: PlayedSoFar[],
    request: RolloutRequest,
    clock: IdleGeneratorClock,
  ): Promise<void> {
    const { agent_proxy, async_rollout } = this.options;
    const { max_turn } = agent_proxy;
    const sampling = samplingFor(request.mode, this.options);
    const progress = progressReporter(all, max_turn, sampling.max_new_tokens, request.onProgress);
    const byEntry = new Map(all.map(episode => [episode.entry, episode]));
    const gathering = (ms: number): number => (async_rollout ? ms : Infinity);
    let failure: { error: unknown } | undefined; // the first one ends the rollout once the calls in progress return
    const checkContinue = (): void => {
      request.signal?.throwIfAborted();
      if (failure) throw failure.error;
    };

    const playTurns = async (ready: readonly EpisodeEntry[]): Promise<void> => {
      request.signal?.throwIfAborted(); // the observer was already notified of the end
      this.options.observer?.ready(ready.map(entry => byEntry.get(entry)!));
      this.reportFailures(ready, all, request);
      await this.generator.release(ready.filter(isDone).map(({ id }) => id));
      progress(0);
      checkContinue();
      const open = ready.filter(entry => !isDone(entry) && entry.history.length < max_turn);
      const asked = open.map(entry => byEntry.get(entry)!);
      const rows = await this.promptAll(asked, request);
      const living = asked.filter(({ entry }) => !isDone(entry));
      if (living.length === 0) return;
      this.options.observer?.asked(living);
      const start = performance.now();
      const generated = await clock.generation(() => this.generator.generate(rows, sampling, progress));
      checkContinue();
      const refused = new Set(living.filter((_, i) => generated[i].failed).map(({ entry }) => entry));
      const inputs = living.map((episode, i) => this.readAnswer(episode, generated[i]));
      const ms = gathering(Math.max(leastGatheringMs, (performance.now() - start) * gatheringShare));
      await inWaves(
        living.length,
        ms,
        report => clock.environment(() => manager.step(inputs, report)),
        wave => {
          for (const entry of wave) if (refused.has(entry)) Object.assign(entry, { truncated: true, success: false });
          return playWave(wave);
        },
      );
    };
    const playWave = async (wave: readonly EpisodeEntry[]): Promise<void> => {
      try {
        await playTurns(wave);
      } catch (error) {
        failure ??= { error };
      }
    };
    const entries = all.map(({ entry }) => entry);
    checkContinue();
    await inWaves(
      all.length,
      gathering(firstGatheringMs),
      report => clock.environment(() => manager.reset(entries, report)),
      playWave,
    );
    checkContinue();
    this.requireRoom(all);
    request.onProgress?.(1, playedParts(all, max_turn));
  }

  private openContext({ environment, tag, max_actions_per_traj }: EpisodeEntry): EpisodeContext {
    const { agent_proxy, custom_envs } = this.options;
    const system = systemMessage(environment, {
      env_instruction: custom_envs[tag].env_instruction,
      max_actions_per_traj,
      max_actions_per_turn: agent_proxy.max_actions_per_turn,
      action_sep: agent_proxy.action_sep,
      answer_tag: agent_proxy.answer_tag,
    });
    return episodeContext(this.tokenizer, this.options, system, environment.name);
  }

  /**
   * The next prompt of each episode; a prompt that does not fit ends its episode. Rows that start over are released
   * first.
   */
  private async promptAll(all: readonly PlayedSoFar[], { mode, step }: RolloutRequest): Promise<GenerationRow[]> {
    const rows: GenerationRow[] = [];
    const renewed: string[] = [];
    for (const { entry, context } of all) {
      const turn = entry.history.length + 1;
      const ids = context.prompt(this.turnPrompt(entry, turn), entry.history);
      if (ids) {
        const seed = deriveSeed(`${mode}-sampling`, this.options.seed[mode], step, entry.env_id, turn);
        rows.push({ row: entry.id, append: ids.append, seed });
        if (ids.fresh && turn > 1) renewed.push(entry.id);
      } else {
        entry.context_full = entry.truncated = true;
        entry.context_reason = this.noRoom(entry, turn, context.refused);
      }
    }
    if (renewed.length > 0) await this.generator.release(renewed);
    return rows;
  }

  private turnPrompt(entry: EpisodeEntry, turn: number): TurnPrompt {
    return {
      turn,
      state: entry.state,
      actions_left: entry.max_actions_per_traj - entry.num_actions,
      warn: entry.manager_invalid_action,
      max_tokens: this.options.custom_envs[entry.tag].max_tokens ?? this.options.rollout.response_length,
    };
  }

  private readAnswer({ entry, context, finishes }: PlayedSoFar, generated: GeneratedRow): TurnInput {
    const raw = context.accept(generated);
    finishes.push(generated.finish);
    return { entry, raw, response: parseResponse(raw, this.options.agent_proxy, entry.environment.whole_answer) };
  }

  /** Reports episodes that have just failed. @throws FailedBatch if too many have failed */
  private reportFailures(ready: readonly EpisodeEntry[], all: readonly PlayedSoFar[], request: RolloutRequest): void {
    const failed = ready.filter(({ error }) => error);
    for (const { id, tag, seed, error } of failed) if (error) request.onFailure?.({ id, tag, seed, failure: error });
    const failures = all.flatMap(({ entry }) => entry.error ?? []);
    const { max_failed_episodes_share: share } = this.options;
    if (failures.length > share * all.length)
      throw new FailedBatch(
        `${(failed[0]?.error ?? failures[0]).message} (${failures.length} of ${all.length} episodes failed; workbench.max_failed_episodes_share is ${share})`,
      );
  }

  /** Why a turn's prompt, which has at least `tokens` tokens, does not fit. */
  private noRoom({ tag, seed, member }: EpisodeEntry, turn: number, tokens = 0): string {
    const { max_model_len, response_length } = this.options.rollout;
    return `environment ${tag} has too long an observation in turn ${turn} at seed ${seed}, member ${member}: the prompt of ${tokens} tokens and a response of response_length ${response_length} exceed actor_rollout_ref.rollout.max_model_len ${max_model_len}: raise max_model_len, lower response_length, or shorten the observation`;
  }

  /** Throws if not one episode's first prompt left room for a response. */
  private requireRoom(all: readonly PlayedSoFar[]): void {
    const full = all.find(({ entry }) => entry.context_full);
    if (full && all.every(({ entry }) => entry.history.length === 0))
      throw new UserError(`config: ${full.entry.context_reason}`);
  }

  private async cleanUp(manager: EnvironmentStateManager, entries: readonly EpisodeEntry[]): Promise<void> {
    await this.generator.release(entries.map(({ id }) => id));
    await manager.close(entries);
  }
}

/** Share of the generation time to wait for more episodes, since a larger batch generates faster. */
const gatheringShare = 1 / 20;
/** Minimum waiting time in milliseconds, and the waiting time before the first generation. */
const leastGatheringMs = 2;
const firstGatheringMs = 50;

/**
 * Plays episodes on in waves, in env_id order: those ready within `gatherMs` of the first go together. `ask` reports
 * all `count` episodes as they become ready. Resolves when all waves have ended.
 */
async function inWaves(
  count: number,
  gatherMs: number,
  ask: (report: (ready: EpisodeEntry[]) => void) => Promise<void>,
  play: (wave: EpisodeEntry[]) => Promise<void>,
): Promise<void> {
  const waves: Promise<void>[] = [];
  const ready: EpisodeEntry[] = [];
  let readyCount = 0;
  let timer: NodeJS.Timeout | undefined;
  const go = () => {
    clearTimeout(timer);
    timer = undefined;
    waves.push(play(ready.splice(0).sort((a, b) => a.env_id - b.env_id)));
  };
  try {
    await ask(entries => {
      appendAll(ready, entries);
      readyCount += entries.length;
      if (readyCount === count) go();
      else if (gatherMs < Infinity) timer ??= setTimeout(go, gatherMs);
    });
  } finally {
    clearTimeout(timer);
    await Promise.all(waves);
  }
}

/**
 * The context of an episode under `agent_proxy.context_window_mode`. `environment` is the environment's name: alfworld
 * has its own memory format in mode `single_turn`.
 */
export function episodeContext(
  tokenizer: PromptTokenizer,
  { agent_proxy, rollout, enable_response_mask, ragen }: ContextSettings,
  system: string,
  environment: string,
): EpisodeContext {
  const { context_window_mode: mode, max_context_window } = agent_proxy;
  const prefix = generationPrefix(agent_proxy);
  const turns = mode === 'full' ? Infinity : windowTurns(max_context_window);
  const shown = { system, prefix, protocol: agent_proxy, turns };
  const window =
    mode === 'single_turn'
      ? new MemoryWindow(tokenizer, shown, environment === 'alfworld' ? alfWorldMemory : simpleMemory)
      : new ChatWindow(tokenizer, shown, ragen ? withoutOldestMessages : withoutOldestTurn);
  return new EpisodeContext(tokenizer, window, {
    system,
    prefix,
    max_model_len: rollout.max_model_len,
    response_length: rollout.response_length,
    samplePerTurn: mode !== 'full',
    mask: maskRule({ mode, enable_response_mask, ragen }, tokenizer.turnMarker),
  });
}

/** Sampling options of a mode: validation has its own temperature and truncation parameters. */
function samplingFor(mode: 'train' | 'val', { rollout, stop_token_ids }: AgentProxyOptions): SamplingOptions {
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

/**
 * Returns a function that reports the finished share: played turns of all possible ones, with a finished episode
 * counted in full, plus the tokens of the current turn.
 */
function progressReporter(
  all: readonly PlayedSoFar[],
  max_turn: number,
  max_new_tokens: number,
  onProgress: RolloutRequest['onProgress'],
): (sampled: number) => void {
  let reported = 0;
  return sampled => {
    const played = all.reduce((sum, { entry }) => sum + (isDone(entry) ? 1 : entry.history.length / max_turn), 0);
    const generating = sampled / max_new_tokens / max_turn;
    reported = Math.max(reported, Math.min((played + generating) / all.length, 1));
    onProgress?.(reported, playedParts(all, max_turn));
  };
}

function playedParts(all: readonly PlayedSoFar[], max_turn: number): PlayedParts {
  const over = all.filter(({ entry }) => isDone(entry) || entry.history.length >= max_turn);
  return {
    episodes: over.length,
    of: all.length,
    turns: all.reduce((sum, { entry }) => sum + entry.history.length, 0),
  };
}
