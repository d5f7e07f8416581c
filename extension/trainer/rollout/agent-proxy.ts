// The agent proxy (RAGEN's LLMAgentProxy): plays a whole batch of episodes turn by turn, those together that are ready together. Where all
// environments are fast these are all that live; a slow one holds up no other, unless `async_rollout` is off. One code path serves
// training and validation; they differ in groups, seeds and sampling alone.
// Invariant: an episode's tokens are a function of the weights and (seed, step, env_id, turn), whatever is beside it in the batch.
import type { EnvironmentFailure, LoadedEnvironment } from '../../protocol/environment-link';
import { appendAll } from '../../protocol/lists';
import type { EpisodeTurn } from '../../protocol/run-folder';
import { UserError } from '../../protocol/user-error';
import { abortable } from '../abortable';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../engine/engine';
import { EpisodeContext, type PromptTokenizer } from './context-manager';
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

/** The engine's generation, with a row's keys and values cached until it is released. */
export interface Generator {
  /** Answers in the order of `rows`; calls overlap. `onTokens` may hear how many tokens the calls in hand have sampled so far. */
  generate(
    rows: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<GeneratedRow[]>;
  release(rows: readonly string[]): void | Promise<void>;
}

/** Somebody who looks on. It changes nothing, and what it is shown is the rollout's own: to be read at once. */
export interface RolloutObserver {
  /** A rollout begins with these episodes; nothing is known of them yet but who they are. */
  begun(at: Pick<RolloutRequest, 'mode' | 'step'>, all: readonly PlayedSoFar[]): void;
  /** These are reset, or their turn is over. */
  ready(some: readonly PlayedSoFar[]): void;
  /** These are asked for an answer; the generator hears of them next. */
  asked(some: readonly PlayedSoFar[]): void;
  /** The rollout is over. */
  ended(): void;
}

/** How tokens are drawn; `top_k` −1 or 0, `top_p` 1, `min_p` 0 and `repetition_penalty` 1 are off. */
interface Sampling {
  temperature: number;
  top_p: number;
  top_k: number;
  min_p: number;
  repetition_penalty: number;
  do_sample: boolean;
}

/** What the proxy reads of the configuration, under its keys. */
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
  rollout: Sampling & { max_model_len: number; response_length: number; stop: string[]; val_kwargs: Sampling };
  es_manager: { format_penalty: number; train: EnvGroups; val: EnvGroups };
  custom_envs: Record<string, TagSettings & { env_instruction?: string | null; max_tokens?: number | null }>;
  /** `workbench.async_rollout`: episodes that are ready do not wait for the others. */
  async_rollout: boolean;
  /** `workbench.max_failed_episodes_share`: with a larger share of failed episodes the batch fails. */
  max_failed_episodes_share: number;
  stop_token_ids: number[];
  observer?: RolloutObserver;
}

/** What shapes an episode's context. */
export type ContextSettings = Pick<AgentProxyOptions, 'agent_proxy' | 'enable_response_mask' | 'ragen'> & {
  rollout: Pick<AgentProxyOptions['rollout'], 'max_model_len' | 'response_length'>;
};

export interface RolloutRequest {
  mode: 'train' | 'val';
  step: number;
  /** Which batch of the step, from 0: its groups and episodes are counted on from those of the batches before. */
  round?: number;
  /** What is loaded now, one for each tag. */
  environments: readonly LoadedEnvironment[];
  /** Forces the seed of the first group. */
  seed?: number;
  /** Plays these episodes of the batch (by env_id) alone; each comes out as it would beside the others. */
  only?: ReadonlySet<number>;
  /** Honoured at once, whatever is waited for; the rollout rejects with the signal's reason and leaves no trace. */
  signal?: AbortSignal;
  /** Share of the rollout that is done, 0…1, never falling, and what of it is over. */
  onProgress?: (fraction: number, played: PlayedParts) => void;
  /** An episode was ended by its environment's failure. */
  onFailure?: (episode: { id: string; tag: string; seed: number; failure: EnvironmentFailure }) => void;
}

/** An episode being played. */
export interface PlayedSoFar {
  entry: EpisodeEntry;
  context: EpisodeContext;
  finishes: EpisodeTurn['finish'][];
}

/** How far a rollout is. */
export interface PlayedParts {
  /** Episodes that are over, of all, and turns that are over. */
  episodes: number;
  of: number;
  turns: number;
}

/** More episodes of a batch failed than a configuration allows: it leaves no trace and may be played again. */
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

  /** Seed counter of training, for checkpoints; validation has none to keep. */
  get state(): SeedState {
    return this.managers.train.state;
  }

  restore(state: SeedState): void {
    this.managers.train.restore(state);
  }

  /**
   * Plays one batch to its end.
   * @throws FailedBatch when too many environments failed; UserError when no prompt fits into the model's context
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
      manager.restore(before); // the same batch is played again when the caller tries again
      const cleanUp = this.cleanUp(manager, entries).catch(() => undefined); // the first error is the one that tells
      if (!request.signal?.aborted) await cleanUp; // an environment that is left behind may not answer
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
    let failure: { error: unknown } | undefined; // the first ends the rollout, when what is in hand has come back
    const goOn = (): void => {
      request.signal?.throwIfAborted();
      if (failure) throw failure.error;
    };

    const playTurns = async (ready: readonly EpisodeEntry[]): Promise<void> => {
      request.signal?.throwIfAborted(); // whoever looks on has been told of the end
      this.options.observer?.ready(ready.map(entry => byEntry.get(entry)!));
      this.reportFailures(ready, all, request);
      await this.generator.release(ready.filter(isDone).map(({ id }) => id));
      progress(0);
      goOn();
      const open = ready.filter(entry => !isDone(entry) && entry.history.length < max_turn);
      const asked = open.map(entry => byEntry.get(entry)!);
      const rows = await this.promptAll(asked, request);
      const living = asked.filter(({ entry }) => !isDone(entry));
      if (living.length === 0) return;
      this.options.observer?.asked(living);
      const start = performance.now();
      const generated = await clock.generation(() => this.generator.generate(rows, sampling, progress));
      goOn();
      const refused = new Set(living.filter((_, i) => generated[i].failed).map(({ entry }) => entry));
      const inputs = living.map((episode, i) => this.readAnswer(episode, generated[i]));
      const ms = gathering(Math.max(leastGatheringMs, (performance.now() - start) * gatheringShare));
      await inWaves(
        living.length,
        ms,
        tell => clock.environment(() => manager.step(inputs, tell)),
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
    goOn();
    await inWaves(
      all.length,
      gathering(firstGatheringMs),
      tell => clock.environment(() => manager.reset(entries, tell)),
      playWave,
    );
    goOn();
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

  /** The next prompt of each episode; one that does not fit ends its episode. Rows that begin anew are let go of first. */
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

  /** Tells of episodes that have failed now, and gives up when they are too many to go on. */
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

  /** Why a turn's prompt, of `tokens` tokens at least, does not fit. */
  private noRoom({ tag, seed, member }: EpisodeEntry, turn: number, tokens = 0): string {
    const { max_model_len, response_length } = this.options.rollout;
    return `environment ${tag} shows too much in turn ${turn} at seed ${seed}, member ${member}: the prompt has ${tokens} tokens, and actor_rollout_ref.rollout.max_model_len ${max_model_len} must hold it with an answer of response_length ${response_length}: raise max_model_len, lower response_length, or have the environment show less`;
  }

  /** Refuses a batch in which no episode's first prompt left room for an answer. */
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

/** What comes within this share of the time that its answers took is waited for, since many rows are generated faster together. */
const gatheringShare = 1 / 20;
/** Milliseconds that are waited in any case; and at the beginning, where nothing was generated yet. */
const leastGatheringMs = 2;
const firstGatheringMs = 50;

/**
 * Has episodes played on in waves, in the order of their env_ids: those that are ready within `gatherMs` of the first go together.
 * `ask` tells of `count` episodes as they are ready. Ends when all waves have.
 */
async function inWaves(
  count: number,
  gatherMs: number,
  ask: (tell: (ready: EpisodeEntry[]) => void) => Promise<void>,
  play: (wave: EpisodeEntry[]) => Promise<void>,
): Promise<void> {
  const waves: Promise<void>[] = [];
  const ready: EpisodeEntry[] = [];
  let told = 0;
  let timer: NodeJS.Timeout | undefined;
  const go = () => {
    clearTimeout(timer);
    timer = undefined;
    waves.push(play(ready.splice(0).sort((a, b) => a.env_id - b.env_id)));
  };
  try {
    await ask(entries => {
      appendAll(ready, entries);
      told += entries.length;
      if (told === count) go();
      else if (gatherMs < Infinity) timer ??= setTimeout(go, gatherMs);
    });
  } finally {
    clearTimeout(timer);
    await Promise.all(waves);
  }
}

/** The context of an episode under `agent_proxy.context_window_mode`; `environment` is the environment's name, which has a memory of its own or not. */
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

/** Sampling of a mode: validation has its own temperature and cuts. */
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

/** Reports the share that is done: turns played of all that could be, a finished episode counting whole, plus tokens of the turn in hand. */
function progressReporter(
  all: readonly PlayedSoFar[],
  max_turn: number,
  max_new_tokens: number,
  onProgress: RolloutRequest['onProgress'],
): (sampled: number) => void {
  let reported = 0;
  return sampled => {
    const played = all.reduce((sum, { entry }) => sum + (isDone(entry) ? 1 : entry.history.length / max_turn), 0);
    const inHand = sampled / max_new_tokens / max_turn;
    reported = Math.max(reported, Math.min((played + inHand) / all.length, 1));
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
