// The agent proxy (RAGEN's LLMAgentProxy): plays a batch of episodes turn by turn. Episodes that become ready at about
// the same time are generated in one batch. If the environments are fast, this batch contains all unfinished episodes.
// With `async_rollout`, a slow environment delays only its own episode, and an engine on a server gets large batches in
// parts, so that the engine has work while environments and prompts are computed. Training and validation use the same
// code with different groups, seeds and sampling parameters. If too many episodes fail
// (workbench.max_failed_episodes_share), the batch ends with FailedBatch. Invariant: an episode's tokens depend only on
// the weights and on (seed, step, env_id, turn), not on the other episodes of the batch.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { parted } from '../../common/lists';
import { withMarks } from '../../common/picture-mark';
import { counted } from '../../common/numbers';
import { UserError } from '../../common/user-error';
import { abortable } from '../../node/abortable';
import type { GeneratedRow } from '../../engine/generation-calls';
import type { LoadedEnvironment, RoleDescription } from '../../protocol/environment-link';
import { callOf } from '../../../envs/api/model-calls';
import { generateRows, type AskedRow } from './asked-rows';
import { CallContext, type CallPrompt } from './call-context';
import { EpisodeContext } from './context-manager';
import type { PromptIds } from './played-context';
import { ownTurns, RolesContext, rowOf, rowsOf } from './roles-context';
import { type PromptTokenizer } from './prompt-tokenizer';
import type { EnvironmentPool } from '../../environments/client/environment-pool';
import { EpisodeJudging } from './episode-judging';
import { EpisodeQueue } from './episode-queue';
import { EnvironmentStateManager, failTurn, isDone, isOwnTurn } from './environment-state-manager';
import type { EpisodeEntry, TurnInput } from './environment-state-manager';
import type { SeedState } from './group-layout';
import { IdleGeneratorClock } from './idle-generator-clock';
import { finishedEpisode, type RolloutBatch } from './rollout-batch';
import { measureRollout } from './rollout-metrics';
import { summaryProblem } from '../rewards/role-checks';
import { deriveSeed } from './seeds';
import { systemMessage } from './system-message';
import { plainSyntax, type ToolSyntax } from '../../models/tokenizer/tool-syntax';
import { parseToolResponse, responsePrefix, toolDemand, type EpisodeTools } from './tool-protocol';
import { formatDemand } from './prompt-format';
import { parseResponse, tagProtocol } from './turn-protocol';
import type { TurnPrompt } from './turn-protocol';
import type { TextGenerator, AgentProxyOptions, RolloutRequest, PlayedSoFar } from './rollout-request';
import type { RolePlayer, RolloutPlayers } from './role-player';
import { samplingFor, FailedBatch } from './rollout-request';
import { RolloutProgress } from './rollout-progress';
import { leastGatheringMs, gatheringShare, inWaves, firstGatheringMs } from './episode-waves';
import { episodeContext } from './episode-context';

/** An episode in progress, with a context that builds its prompts. */
interface OpenEpisode extends PlayedSoFar {
  context: EpisodeContext | CallContext | RolesContext;
  /** The models behind APIs that play roles of the episode, by role. */
  players: Map<string, RolePlayer>;
}

export class AgentProxy {
  private readonly managers: Record<'train' | 'val', EnvironmentStateManager>;
  /** How the model writes tool calls; determined when the first environment with tools is played. */
  private syntax: ToolSyntax | undefined;

  constructor(
    private readonly generator: TextGenerator,
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
        ...(options.pictures && { pictures: options.pictures }),
      });
    this.managers = { train: manager('train'), val: manager('val') };
  }

  /** Training's seed counter, for checkpoints. Validation has no state, because its seeds are fixed. */
  get state(): SeedState {
    return this.managers.train.state;
  }

  restore(state: SeedState): void {
    this.managers.train.restore(state);
  }

  /**
   * Plays one batch to its end.
   * @throws FailedBatch if the environments of too many episodes failed; UserError if no episode's first prompt fits
   * into the model's context
   */
  async rollout(request: RolloutRequest): Promise<RolloutBatch> {
    const { mode, step } = request;
    const manager = this.managers[mode];
    const before = manager.state;
    const laidOut = manager.layOut(step, request.environments, request.seed, request.round, request.groups);
    const entries = laidOut.filter(({ env_id }) => request.only?.has(env_id) ?? true);
    const players = this.options.players?.openRollout();
    const playing = entries.map((entry): OpenEpisode => this.openEpisode(entry, players));
    this.options.observer?.begun({ mode, step }, playing);
    const clock = new IdleGeneratorClock();
    const judging = new EpisodeJudging(this.options.judges?.openRollout());
    try {
      await abortable(request.signal, this.play(manager, playing, { request, clock, judging }));
    } catch (error) {
      manager.restore(before); // a retry must play the same batch
      const cleanUp = this.cleanUp(manager, entries).catch(() => undefined); // only the first error is reported
      if (!request.signal?.aborted) await cleanUp; // after an abort, cleaning up may hang with an environment
      throw error;
    } finally {
      judging.end();
      players?.end();
      this.options.observer?.ended();
    }
    await this.cleanUp(manager, entries);
    const episodes = playing.map(({ entry, context }) => finishedEpisode(request, entry, context));
    const { group_size } = this.options.es_manager[mode];
    const metrics = measureRollout(episodes, group_size, tag => this.protocolOf(tag).enable_think);
    return { mode, step, episodes, metrics, environmentSeconds: clock.seconds };
  }

  private async play(
    manager: EnvironmentStateManager,
    all: OpenEpisode[],
    { request, clock, judging }: { request: RolloutRequest; clock: IdleGeneratorClock; judging: EpisodeJudging },
  ): Promise<void> {
    const { agent_proxy, async_rollout } = this.options;
    const { max_turn } = agent_proxy;
    const sampling = samplingFor(request.mode, this.options);
    const { max_new_tokens } = sampling;
    const progress = new RolloutProgress(all, { max_turn, max_new_tokens }, request.onProgress);
    const failed = new Set<EpisodeEntry>();
    const byEntry = new Map(all.map(episode => [episode.entry, episode]));
    const gathering = (ms: number): number => (async_rollout ? ms : Infinity);
    let failure: { error: unknown } | undefined; // the first error; it ends the rollout after the running calls
    const checkContinue = (): void => {
      request.signal?.throwIfAborted();
      if (failure) throw failure.error;
    };

    const playTurns = async (ready: readonly EpisodeEntry[]): Promise<void> => {
      request.signal?.throwIfAborted(); // the observer must not be called after its `ended`
      this.options.observer?.ready(ready.map(entry => byEntry.get(entry)!));
      this.reportFailures(ready, failed, all.length, request);
      await this.generator.release(ready.filter(isDone).flatMap(rowsOf));
      progress.changed(ready);
      checkContinue();
      const isOpen = (entry: EpisodeEntry): boolean => !isDone(entry) && entry.history.length < max_turn;
      const ended = ready.filter(entry => !isOpen(entry));
      judging.begin(ended);
      const open = ready.filter(isOpen);
      const given = open.filter(entry => !isOwnTurn(entry)).map(entry => byEntry.get(entry)!);
      const asked = open.filter(isOwnTurn).map(entry => byEntry.get(entry)!);
      const others = this.playOthers(given, manager, clock, gathering(leastGatheringMs), playWave);
      try {
        await playOwn(ended, asked);
      } finally {
        await others;
      }
    };
    /** Plays the turns of the policy. `ended` are the episodes that have just ended. */
    const playOwn = async (ended: readonly EpisodeEntry[], asked: readonly OpenEpisode[]): Promise<void> => {
      const rows = await this.promptAll(asked, request);
      const living = asked.filter(({ entry }) => !isDone(entry));
      this.reportFailures(
        asked.map(({ entry }) => entry).filter(entry => entry.error && !failed.has(entry)),
        failed,
        all.length,
        request,
      );
      begins.push(beginAfter([...ended, ...asked.map(({ entry }) => entry).filter(isDone)]));
      if (living.length === 0) return;
      this.options.observer?.asked(living);
      const start = performance.now();
      const generated = await clock.generation(() =>
        generateRows(this.generator, rows, sampling, tokens => progress.sampled(tokens), request.weights),
      );
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
      const playing: Promise<void>[] = [];
      for (const part of parted(wave, async_rollout ? this.generator.rowsPerCall : undefined)) {
        if (playing.length > 0) await yieldToEventLoop(); // sends the requests of the previous part
        playing.push(playTurns(part).catch((error: unknown) => void (failure ??= { error })));
      }
      await Promise.all(playing);
    };
    const entries = all.map(({ entry }) => entry);
    const queue = new EpisodeQueue(entries);
    const begins: Promise<void>[] = [];
    const begin = (some: readonly EpisodeEntry[]): Promise<void> =>
      inWaves(
        some.length,
        gathering(firstGatheringMs),
        report => clock.environment(() => manager.reset(some, report)),
        playWave,
      );
    /** Begins the episodes that waited for the end of these; an error ends the rollout. */
    const beginAfter = async (over: readonly EpisodeEntry[]): Promise<void> => {
      const limited = over.filter(({ environment, rewards }) => environment.at_once && !rewards?.scores.episode);
      try {
        if (limited.length > 0) await manager.close(limited); // an episode that max_turn has ended may still run
        const next = queue.after(over);
        if (next.length > 0 && !failure && !request.signal?.aborted) await begin(next);
      } catch (error) {
        failure ??= { error };
      }
    };
    checkContinue();
    try {
      await begin(queue.first);
    } finally {
      for (const begun of begins) await begun; // the list grows while later episodes begin
    }
    checkContinue();
    this.requireRoom(all);
    await clock.environment(() => Promise.all([manager.scoreEpisodes(entries), judging.settled(entries)]));
    checkContinue();
    this.reportFailures(
      entries.filter(entry => !failed.has(entry)),
      failed,
      all.length,
      request,
    );
    progress.ended(entries);
  }

  /**
   * Plays the turns of models behind APIs. An episode whose reply has come continues while others wait, as with slow
   * environments.
   */
  private async playOthers(
    given: readonly OpenEpisode[],
    manager: EnvironmentStateManager,
    clock: IdleGeneratorClock,
    gatherMs: number,
    playWave: (wave: readonly EpisodeEntry[]) => Promise<void>,
  ): Promise<void> {
    if (given.length === 0) return;
    const play = async (episode: OpenEpisode, report: (ready: EpisodeEntry[]) => void): Promise<void> => {
      const { entry, context, players } = episode;
      const [role, turn] = [entry.role!, entry.history.length + 1];
      const prompt = (context as RolesContext).prompt(role, this.turnPrompt(entry, turn), ownTurns(entry))!; // no limit
      const reply = await players.get(role)!.answer(prompt, turn);
      if (typeof reply === 'string') {
        failTurn(entry, reply);
        return report([entry]);
      }
      await manager.step([this.readAnswer(episode, { row: rowOf(entry), ...reply })], report);
    };
    await inWaves(
      given.length,
      gatherMs,
      report => clock.environment(async () => void (await Promise.all(given.map(each => play(each, report))))),
      playWave,
    );
  }

  private openEpisode(entry: EpisodeEntry, players: RolloutPlayers | undefined): OpenEpisode {
    const opened = new Map<string, RolePlayer>();
    const prefix = responsePrefix(this.protocolOf(entry.tag), entry.environment);
    for (const { name } of entry.environment.roles ?? []) {
      const player = players?.open(entry, name, prefix);
      if (player) opened.set(name, player);
    }
    return { entry, context: this.openContext(entry, opened), players: opened };
  }

  private openContext(entry: EpisodeEntry, players: ReadonlyMap<string, RolePlayer>): OpenEpisode['context'] {
    const { environment, tag } = entry;
    if (environment.model_calls) {
      const { max_model_len, response_length } = this.options.rollout;
      return new CallContext(this.tokenizer, { max_model_len, response_length, syntax: this.toolSyntax });
    }
    const { roles } = environment;
    if (!roles) return this.roleContext(entry);
    if (this.protocolOf(tag).context_window_mode === 'single_turn') throw new UserError(summaryProblem(environment));
    return new RolesContext(
      roles.map(({ name }) => name),
      role =>
        this.roleContext(
          entry,
          roles.find(({ name }) => name === role),
          players.get(role),
        ),
      role => !players.has(role),
    );
  }

  /** Creates the context of a role or, without roles, of the episode. */
  private roleContext(
    { environment, tag, max_actions_per_traj }: EpisodeEntry,
    role?: RoleDescription,
    player?: RolePlayer,
  ): EpisodeContext {
    const { custom_envs } = this.options;
    const agent_proxy = this.protocolOf(tag);
    const tools = this.toolsOf(environment);
    const system = systemMessage(environment, {
      env_instruction: custom_envs[tag].env_instruction ?? role?.instruction,
      max_actions_per_traj,
      max_actions_per_turn: role ? 1 : agent_proxy.max_actions_per_turn,
      action_sep: agent_proxy.action_sep,
      answer_tag: agent_proxy.answer_tag,
      format: agent_proxy.prompt_format && formatDemand(agent_proxy.prompt_format, environment.state_forms),
      tools: tools && toolDemand(tools, agent_proxy),
    });
    const settings = { ...this.options, agent_proxy };
    if (!player) return episodeContext(this.tokenizer, settings, system, environment.name, tools);
    const rollout = { ...settings.rollout, max_model_len: Infinity }; // the service limits the context
    return episodeContext(player.numbers, { ...settings, rollout }, system, environment.name, tools);
  }

  /** Returns the turn protocol of a tag. */
  private protocolOf(tag: string): AgentProxyOptions['agent_proxy'] {
    return tagProtocol(this.options.agent_proxy, this.options.custom_envs[tag]);
  }

  /** Returns the tools of an environment and how the model writes calls; undefined if the environment has no tools. */
  private toolsOf({ tools }: LoadedEnvironment): EpisodeTools | undefined {
    return tools && { tools, syntax: this.toolSyntax };
  }

  /** How the model writes tool calls. */
  private get toolSyntax(): ToolSyntax {
    const { tool_format = 'auto' } = this.options.agent_proxy;
    return (this.syntax ??= this.tokenizer.toolSyntax?.(tool_format) ?? plainSyntax);
  }

  /**
   * Returns the next prompt of each episode. If a prompt does not fit into the context, its episode ends. If the tokens
   * that the engine has cached for an episode are not the beginning of the next prompt, the cached tokens are released.
   */
  private async promptAll(all: readonly OpenEpisode[], { mode, step }: RolloutRequest): Promise<AskedRow[]> {
    const rows: AskedRow[] = [];
    const renewed: string[] = [];
    for (const { entry, context } of all) {
      const turn = entry.history.length + 1;
      const own = ownTurns(entry);
      const called = context instanceof CallContext;
      if (context instanceof EpisodeContext && this.options.remember)
        await context.prepare(this.turnPrompt(entry, turn), entry.history);
      const ids: CallPrompt | (PromptIds & { limits?: undefined }) | null = called
        ? this.callPrompt(entry, context)
        : context instanceof RolesContext
          ? context.prompt(entry.role!, this.turnPrompt(entry, turn), own)
          : context.prompt(this.turnPrompt(entry, turn), entry.history);
      if (ids) {
        const seed = deriveSeed(`${mode}-sampling`, this.options.seed[mode], step, entry.env_id, turn);
        const { append, shows } = ids;
        rows.push({ row: { row: rowOf(entry), append, seed, ...(shows && { shows }) }, limits: ids.limits });
        if (ids.fresh && own.length > 0) renewed.push(rowOf(entry));
      } else if (!entry.error) {
        entry.context_full = entry.truncated = true;
        entry.context_reason = this.noRoom(entry, turn, context.refused);
      }
    }
    if (renewed.length > 0) await this.generator.release(renewed);
    return rows;
  }

  /**
   * Returns the prompt of the call that an episode's program has made, and shows the call's new messages as the state.
   * Returns null if the prompt does not fit into the context, or if the call cannot be rendered; the episode then fails.
   */
  private callPrompt(entry: EpisodeEntry, context: CallContext): CallPrompt | null {
    const fail = (message: string): null => {
      Object.assign(entry, { error: { kind: 'bad_value', message }, truncated: true });
      return null;
    };
    const where = `environment ${entry.tag} (seed ${entry.seed}, member ${entry.member})`;
    const call = callOf(entry.state);
    if (!call)
      return fail(
        `${where} declares modelCalls, but returned an observation that is no call: return callObservation(…)`,
      );
    try {
      const prompt = context.prompt(call);
      entry.state = prompt?.added ?? '';
      return prompt;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return fail(`${where} sent a conversation that cannot be rendered (${error.message})`);
    }
  }

  private turnPrompt(entry: EpisodeEntry, turn: number): TurnPrompt {
    const calls = entry.history.at(-1)?.calls;
    return {
      turn,
      state: withMarks(entry.state, entry.pictures),
      actions_left: entry.max_actions_per_traj - entry.num_actions,
      warn: entry.manager_invalid_action,
      max_tokens: this.options.custom_envs[entry.tag].max_tokens ?? this.options.rollout.response_length,
      ...(calls && { results: calls.map(({ result }) => result) }),
    };
  }

  private readAnswer({ entry, context }: OpenEpisode, generated: GeneratedRow): TurnInput {
    const raw = context.accept(generated);
    if (context instanceof CallContext)
      return { entry, raw, response: context.reply.response, finish: generated.finish };
    const tools = this.toolsOf(entry.environment);
    const agent_proxy = this.protocolOf(entry.tag);
    const response = tools
      ? parseToolResponse(raw, agent_proxy, tools)
      : parseResponse(raw, agent_proxy, entry.environment.whole_answer);
    return { entry, raw, response, finish: generated.finish };
  }

  /**
   * Reports episodes that have just failed, and adds them to `failed`.
   * @throws FailedBatch if too many of the batch's `count` episodes have failed
   */
  private reportFailures(
    ready: readonly EpisodeEntry[],
    failed: Set<EpisodeEntry>,
    count: number,
    request: RolloutRequest,
  ): void {
    const now = ready.filter(({ error }) => error);
    for (const entry of now) {
      const { id, tag, seed, error } = entry;
      failed.add(entry);
      if (error) request.onFailure?.({ id, tag, seed, failure: error });
    }
    const { max_failed_episodes_share: share } = this.options;
    const [first] = [...now, ...failed];
    if (failed.size > share * count)
      throw new FailedBatch(
        `${first.error?.message} (${failed.size} of ${count} episodes failed; workbench.max_failed_episodes_share is ${share})`,
      );
  }

  /**
   * Returns the error message for a prompt that does not fit into the context. `tokens` is the length of the prompt.
   * Image tokens of the newest state are named, because they need another remedy.
   */
  private noRoom({ tag, seed, member, pictures }: EpisodeEntry, turn: number, tokens = 0): string {
    const { max_model_len, response_length } = this.options.rollout;
    const shown = pictures.reduce((sum, picture) => sum + (this.tokenizer.pictures?.tokens(picture) ?? 0), 0);
    const which = `${tokens} tokens${shown > 0 ? `, of which ${shown} are image tokens of the state's ${counted(pictures.length, 'picture')},` : ''}`;
    const remedy = `${shown > 0 ? 'lower data.max_pixels, ' : ''}raise max_model_len, lower response_length, or shorten the observation`;
    return `environment ${tag} returned an observation that is too long (turn ${turn}, seed ${seed}, member ${member}), because the prompt of ${which} and a response of response_length ${response_length} exceed actor_rollout_ref.rollout.max_model_len ${max_model_len}: ${remedy}`;
  }

  /**
   * Throws a UserError if no episode could play a turn and the first prompt of an episode left no room for a response.
   */
  private requireRoom(all: readonly PlayedSoFar[]): void {
    const full = all.find(({ entry }) => entry.context_full);
    if (full && all.every(({ entry }) => entry.history.length === 0))
      throw new UserError(`config: ${full.entry.context_reason}`);
  }

  private async cleanUp(manager: EnvironmentStateManager, entries: readonly EpisodeEntry[]): Promise<void> {
    await this.generator.release(entries.flatMap(rowsOf));
    await manager.close(entries);
  }
}
