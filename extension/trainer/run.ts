// One run: engine, tokenizer, environments and agent proxy for its configuration, and the journal that writes its
// folder. The caller holds the run's lease, so two trainers never write one folder. A resume rolls back to a
// checkpoint, including the logs, and then gives the same numbers as an uninterrupted run.
import { randomBytes } from 'node:crypto';
import { abortable } from './abortable';
import { presentConfig, settingsOf } from './stored-config';
import type { RunConfig } from './config/schema';
import { passBudget } from './pass-budget';
import type { EngineState, LoadedModel } from './engine/engine';
import { nothingSeen } from './early-stops';
import type { Watch } from './early-stops';
import { startEngine } from './engine/remote-engine';
import type { RemoteEngine } from './engine/remote-engine';
import { nothingWatched } from './diagnostics/alarms';
import type { WatchState } from './diagnostics/alarms';
import { nothingDiagnosed } from './diagnostics/collapse-metrics';
import type { CollapseState } from './diagnostics/collapse-metrics';
import { FailureReporter } from './failure-reporter';
import { installation } from './installation';
import type { Journal } from './journal';
import { LiveEnvironments } from './live-environments';
import { LiveSettings } from './live-settings';
import { gibibytes } from '../protocol/numbers';
import { memoryForRun } from './machine-memory';
import type { ChatTokenizer } from './models/chat-tokenizer';
import { planMemory } from './models/memory-plan';
import type { PlanInput } from './models/memory-plan';
import { modelFiles } from './models/model-files';
import { readTokenizer } from './models/model-folder';
import { adapterWeightsName } from './models/peft-adapter';
import { RunStopped } from './engine/run-stopped';
import { AgentProxy, FailedBatch } from './rollout/agent-proxy';
import type { AgentProxyOptions, RolloutRequest } from './rollout/agent-proxy';
import type { EnvGroups, SeedState } from './rollout/group-layout';
import type { RolloutBatch } from './rollout/rollout-batch';
import { deriveSeed } from './rollout/seeds';
import { generationPrefix, turnProtocol } from './rollout/turn-protocol';
import type { RunControl } from './run-control';
import { requireSameModel } from './model-checksum';
import { optimizerStateFiles, readMoments } from './optimizer-state';
import { keepTokenizer, runModelFolder } from './run-model';
import { planInput, readsModel, usesCritic, usesReference, weightsLoaded } from './run-plan';
import { nothingSkipped } from './skipped-steps';
import type { SkippedSteps } from './skipped-steps';
import { trainingSuccess } from './step-metrics';
import { noTimeSpent } from './step-times';
import type { TimeSpent } from './step-times';
import { readBlob, readFloats, writeCheckpoint } from './store/checkpoint';
import type { StoredCheckpoint } from './store/checkpoint';
import type { RunSeal } from './store/manifest-seal';
import type { RunFolder } from './store/run-folder';

/** State kept between steps besides weights and optimizer; stored in checkpoints. */
export interface TrainerState {
  /** Finished steps. */
  step: number;
  /** Counters of the early-stop rules. */
  watch: Watch;
  /** Coefficient of the KL penalty in the reward. */
  klCoefficient: number;
  /** State of the collapse diagnosis and of the alarms. */
  collapse: CollapseState;
  alarms: WatchState;
  /** Recent steps with non-finite numbers. */
  skipped: SkippedSteps;
  /** The run's time by activity. */
  spent: TimeSpent;
  /**
   * Metrics of the newest step while its validation is missing: the run was stopped during it, and a resume runs it
   * again.
   */
  unvalidated?: Record<string, number>;
}

/** Inputs to open a run. */
export interface OpenOptions {
  folder: RunFolder;
  /** Base folder for relative paths of the configuration. */
  workspace: string;
  /** The checkpoint to continue from; null for a new run. */
  checkpoint: StoredCheckpoint | null;
  control: RunControl;
  journal: Journal;
  /** Settings that change on resume, by key. */
  settings?: Readonly<Record<string, number>>;
}

/** The trainer's part of a checkpoint's manifest, besides step and seeds. */
interface SavedState {
  watch?: Watch;
  kl_coef?: number;
  collapse?: CollapseState;
  alarms?: WatchState;
  skipped?: SkippedSteps;
  spent?: TimeSpent;
  /** Environment versions by tag that the steps ran. */
  environments?: Record<string, string>;
  actor_updates: number;
  critic_updates: number;
  wall_s: number;
  success: number | null;
  validated: number | null;
  unvalidated?: Record<string, number>;
}

/** The batch for which greedy episodes are played. */
interface Greedy {
  step: number;
  round: number;
  layout: EnvGroups;
  /** Seed of the batch's first group. */
  seed: number;
}

/** Maximum delay of a timer in milliseconds, about 25 days. */
const longestWait = 2 ** 31 - 1;

export class Run {
  /** Success rate of the newest validation, 0…1. */
  private validated: number | null = null;
  /** The step of the newest complete checkpoint. */
  private saved = 0;
  private proxy: AgentProxy;
  private readonly seal: RunSeal;
  /** Seeds at the beginning of the current step. */
  private before: SeedState | undefined;
  private readonly diagnoses: Parameters<Journal['diagnosis']>[] = [];
  /** A stop interrupted optimizer steps that cannot be undone: the weights belong to no step. */
  private halfway = false;

  private constructor(
    /** Settings of the current step and pending changes. */
    readonly settings: LiveSettings,
    readonly folder: RunFolder,
    readonly journal: Journal,
    readonly control: RunControl,
    readonly engine: RemoteEngine,
    readonly environments: LiveEnvironments,
    private readonly openProxy: (
      config: RunConfig,
      changed?: Pick<AgentProxyOptions, 'seed' | 'es_manager'>,
    ) => AgentProxy,
    private readonly modelFolder: string,
    readonly model: LoadedModel,
    readonly tokenizer: ChatTokenizer,
  ) {
    this.proxy = openProxy(this.config);
    const { id, manifest } = folder.verifySeal();
    this.seal = { id, manifest };
  }

  /** The configuration of the current step. */
  get config(): RunConfig {
    return this.settings.config;
  }

  static async open({
    folder,
    workspace,
    checkpoint,
    control,
    journal,
  }: OpenOptions): Promise<{ run: Run; state: TrainerState }> {
    const config = presentConfig(folder);
    const modelFolder = await runModelFolder(folder, workspace, control, journal);
    const tokenizer = readTokenizer(modelFolder, { variables: config.data.apply_chat_template_kwargs });
    await journal.retryUntilWritable(() => keepTokenizer(folder, modelFolder));
    const { rollout } = config.actor_rollout_ref;
    const plan = await planInput(config, modelFolder, workspace);
    reportPlan(plan, config, journal);
    const weights = weightsLoaded(config, modelFolder, workspace, checkpoint?.folder);
    if (readsModel(config, weights, modelFolder))
      await abortable(control.stopped, requireSameModel(folder, modelFolder));
    const engine = startEngine(installation.engineWorker);
    let environments: LiveEnvironments | undefined;
    try {
      control.stopped.addEventListener('abort', () => engine.interrupt(), { once: true });
      const loading = engine.load({
        ...weights,
        referenceFolder: usesReference(config) ? modelFolder : null,
        device: config.workbench.device,
        threads: config.workbench.threads,
        rolloutQuantization: config.workbench.rollout_quantization,
        baseQuantization: config.workbench.base_quantization,
        precision: config.workbench.precision,
        checkpointed: plan.checkpointed,
        moments: { actor: config.actor_rollout_ref.actor.optim.moments, critic: config.critic.optim.moments },
        critic: usesCritic(config),
        seed: deriveSeed('new-weights', config.seed.train),
        maxPositions: rollout.max_model_len,
        cacheFolder: installation.cache,
      });
      const model = await abortable(control.stopped, loading);
      if (model.deviceCheck !== null)
        journal.event('setting', `the model runs on ${model.provider}; tried ${model.deviceCheck}`);
      const { es_manager } = config;
      const trained = config.trainer.val_only ? [] : es_manager.train.env_configs.tags;
      const tags = [...trained, ...es_manager.val.env_configs.tags];
      const live = await LiveEnvironments.open(config, tags, { workspace, folder, journal }, control.stopped);
      environments = live;
      control.serveEnvironments(live);

      const generator = {
        generate: async (
          ...[rows, sampling, onTokens]: Parameters<ConstructorParameters<typeof AgentProxy>[0]['generate']>
        ) => {
          if (!(await control.gate())) throw new RunStopped();
          engine.onTokens = onTokens ?? (() => undefined);
          return engine.generate([...rows], sampling);
        },
        release: (rows: readonly string[]) => engine.release([...rows]),
      };
      const openProxy = (config: RunConfig, changed?: Pick<AgentProxyOptions, 'seed' | 'es_manager'>) =>
        new AgentProxy(generator, live.pool, tokenizer, {
          seed: config.seed,
          agent_proxy: turnProtocol(config),
          enable_response_mask: config.rollout_manager.use_loss_mask,
          ragen: config.workbench.compat === 'ragen',
          rollout: config.actor_rollout_ref.rollout,
          es_manager: config.es_manager,
          custom_envs: config.custom_envs,
          async_rollout: config.workbench.async_rollout,
          max_failed_episodes_share: config.workbench.max_failed_episodes_share,
          stop_token_ids: tokenizer.stopTokenIds,
          observer: control.live,
          ...changed,
        });
      control.live.connect({
        engine,
        tokenizer,
        prefix: generationPrefix(turnProtocol(config)),
        tags: [...new Set(tags)],
        maxTurn: config.agent_proxy.max_turn,
      });
      const settings = new LiveSettings(config);
      const run = new Run(settings, folder, journal, control, engine, live, openProxy, modelFolder, model, tokenizer);
      return { run, state: checkpoint ? await run.restore(checkpoint) : run.firstState() };
    } catch (error) {
      await engine.stop();
      await environments?.stop();
      throw error;
    }
  }

  get usesReference(): boolean {
    return usesReference(this.config);
  }

  get usesCritic(): boolean {
    return usesCritic(this.config);
  }

  /**
   * Computes the longest possible gradient and discards it (workbench.try_longest_batch), so that a lack of memory
   * shows before the first step instead of when long episodes appear.
   */
  async tryLongest(): Promise<void> {
    const { actor, rollout } = this.config.actor_rollout_ref;
    if (!this.config.workbench.try_longest_batch) return;
    this.follow('the longest pass');
    const { tokens, seconds } = await this.engine.tryLongest(
      passBudget(this.config, actor.ppo_micro_batch_size_per_gpu, actor.ppo_mini_batch_size),
      rollout.max_model_len,
    );
    const held = process.resourceUsage().maxRSS / 2 ** 20;
    this.journal.event(
      'longest_batch',
      `the longest pass, ${tokens} tokens, took ${seconds.toFixed(1)} s; the trainer's peak memory so far is ${held.toFixed(1)} GiB`,
    );
  }

  /**
   * Shows the progress of the following engine calls: `what` they do, and which `part` of the phase they are if there
   * are several.
   */
  follow(what: string, part = { index: 0, of: 1 }): void {
    const { index, of: parts } = part;
    const which = parts > 1 ? `${what} ${index + 1} of ${parts}` : what;
    this.engine.onUnits = (done, of) =>
      this.journal.progress((index + done / of) / parts, `${which}: pass ${done + 1} of ${of}`);
  }

  /** Keeps a diagnosis of the current step until the step is written. */
  keepDiagnosis(...found: Parameters<Journal['diagnosis']>): void {
    this.diagnoses.push(found);
  }

  async writeDiagnoses(): Promise<void> {
    for (const found of this.diagnoses.splice(0)) await this.journal.diagnosis(...found);
  }

  /** Begins a step that `undo` can revert: saves seeds, weights and moments. */
  async begin(): Promise<void> {
    this.before = this.seeds;
    this.diagnoses.length = 0;
    await this.engine.remember();
  }

  /** Reverts a stopped step, so that a resume repeats it. If that is impossible, no further checkpoint is written. */
  async undo(): Promise<void> {
    if (this.before) this.restoreSeeds(this.before);
    this.halfway = !(await this.engine.rollBack());
  }

  /** Training's position in its seed sequence. */
  get seeds(): SeedState {
    return this.proxy.state;
  }

  restoreSeeds(state: SeedState): void {
    this.proxy.restore(state);
  }

  /**
   * Applies setting changes on resume, before the next step, and writes a checkpoint with them, so that later resumes
   * keep them.
   */
  async changeSettings(state: TrainerState, values: Readonly<Record<string, number>>): Promise<void> {
    this.takeSettings(state);
    if (this.settings.ask(values).changes.length === 0) return;
    this.takeSettings(state);
    if (state.step > 0) await this.checkpoint(state);
  }

  /** Applies the pending setting changes between steps. `begins`: the next step begins now. */
  takeSettings(state: TrainerState, begins = false): void {
    const changes = this.settings.take(state.step + 1, begins);
    if (changes.length === 0) return;
    for (const { key, from, to } of changes) {
      this.journal.event('setting', `${key} ${from} → ${to}`, { key, from, to });
      if (key === 'algorithm.kl_ctrl.kl_coef') state.klCoefficient = to;
    }
    this.journal.update({ total_steps: this.config.trainer.total_training_steps });
    const seeds = this.proxy.state;
    this.proxy = this.openProxy(this.config);
    this.proxy.restore(seeds);
    this.saved = 0; // an existing checkpoint of this step lacks the changes
  }

  /**
   * Plays one batch of episodes, number `round` (from 0) of its step. A stop or an error leaves the state unchanged.
   */
  async rollout(mode: 'train' | 'val', step: number, round = 0): Promise<RolloutBatch> {
    const { seed, es_manager, workbench } = this.config;
    const further = mode === 'val' && round > 0 && workbench.compat !== 'ragen'; // RAGEN plays the same groups again
    const from = further ? { seed: seed.val + round * es_manager.val.env_groups } : {};
    return this.play(this.proxy, { mode, step, round, ...from });
  }

  /** Plays a batch for analysis only, on prompts of its own; training's seeds stay unchanged. */
  async rolloutAside(step: number, round: number, train: EnvGroups): Promise<RolloutBatch> {
    const { seed, es_manager } = this.config;
    const own = deriveSeed('rollout-aside', seed.train, step) % 2 ** 30; // base of the group seeds
    const proxy = this.openProxy(this.config, { seed: { ...seed, train: own }, es_manager: { ...es_manager, train } });
    return this.play(proxy, { mode: 'train', step, round, seed: own + round * train.env_groups });
  }

  /**
   * Plays one episode per group of the training batch whose first group has `seed`, with greedy decoding (ReMax's
   * baseline), as the group's first member. Training's seeds stay unchanged.
   */
  async rolloutGreedy({ step, round, layout, seed }: Greedy): Promise<RolloutBatch> {
    const { actor_rollout_ref, es_manager } = this.config;
    const rollout = { ...actor_rollout_ref.rollout, do_sample: false };
    const config = { ...this.config, actor_rollout_ref: { ...actor_rollout_ref, rollout } };
    const train = { ...layout, group_size: 1 };
    const proxy = this.openProxy(config, { seed: this.config.seed, es_manager: { ...es_manager, train } });
    return this.play(proxy, { mode: 'train', step, round, seed });
  }

  /**
   * Plays a batch. If too many episodes fail, the run waits; when someone resumes it, the batch is played again with
   * the environments loaded then.
   */
  private async play(
    proxy: AgentProxy,
    request: Pick<RolloutRequest, 'mode' | 'step' | 'round' | 'seed'>,
  ): Promise<RolloutBatch> {
    for (;;) {
      try {
        return await this.playOnce(proxy, request);
      } catch (error) {
        if (!(error instanceof FailedBatch)) throw error;
        if (!(await this.control.wait(`${error.message}, then resume the run`, longestWait))) throw new RunStopped();
        this.control.resumeAfterWait();
      }
    }
  }

  private async playOnce(
    proxy: AgentProxy,
    request: Pick<RolloutRequest, 'mode' | 'step' | 'round' | 'seed'>,
  ): Promise<RolloutBatch> {
    const failures = new FailureReporter(this.journal);
    try {
      return await proxy.rollout({
        ...request,
        environments: this.environments.current,
        signal: this.control.stopped,
        onProgress: (fraction, { episodes, of, turns }) =>
          this.journal.progress(fraction, `${episodes} of ${of} episodes, ${turns} turns`),
        onFailure: failed => failures.see(failed),
      });
    } finally {
      failures.end();
    }
  }

  /** Plays some validation episodes for an evaluation, which reports progress itself. */
  async playValidation(part: Required<Pick<RolloutRequest, 'round' | 'seed' | 'only'>>): Promise<RolloutBatch> {
    return this.proxy.rollout({
      ...part,
      mode: 'val',
      step: 0,
      environments: this.environments.current,
      signal: this.control.stopped,
      onFailure: ({ tag, seed, failure: { message, kind, at } }) =>
        this.journal.event('environment_error', message, { tag, seed, kind, at }),
    });
  }

  /** Shows the result of a validation in the status. */
  showValidation(success: number | null): void {
    this.validated = success;
    this.journal.update({ success, success_of: 'val' });
  }

  /**
   * Shows a finished step in the status, with the success rate of the newest validation, or of training if there was
   * none.
   */
  progress(step: number, metrics: Readonly<Record<string, number>>): void {
    const total = this.config.trainer.total_training_steps;
    this.journal.update({
      step,
      phase: 'idle',
      reward: metrics['train/charts/avg_episode_return'] ?? metrics['charts/avg_episode_return'] ?? null,
      tokens_per_s: metrics['perf/throughput'],
      eta_s: (total - step) * metrics['perf/time_per_step'],
      success: this.validated ?? trainingSuccess(metrics),
      success_of: this.validated === null ? 'train' : 'val',
    });
  }

  /** Writes a checkpoint of `state`: weights, moments, counters and log offsets. Returns its folder. */
  async checkpoint(state: TrainerState): Promise<string> {
    const { folder, journal, config } = this;
    const phase = journal.status.phase;
    journal.update({ phase: 'checkpoint' });
    const engine = await this.engine.state();
    const files = await modelFiles(this.engine, this.model, this.modelFolder, config.model_path);
    const { actor, critic } = engine;
    await journal.sync();
    const about = {
      step: state.step,
      offsets: journal.offsets,
      streams: {},
      seed_counter: this.proxy.state.seed_counter,
      run: this.seal,
      log_chain: journal.logChain,
      state: {
        settings: settingsOf(this.config),
        watch: state.watch,
        kl_coef: state.klCoefficient,
        collapse: state.collapse,
        alarms: state.alarms,
        skipped: state.skipped,
        spent: state.spent,
        environments: this.environments.versions,
        actor_updates: actor.step,
        critic_updates: critic?.step ?? 0,
        wall_s: journal.wallSeconds,
        success: journal.status.success,
        validated: this.validated,
        ...(state.unvalidated && { unvalidated: state.unvalidated }),
      },
    };
    const blobs = {
      ...files,
      ...optimizerStateFiles('actor', actor),
      ...(critic && { 'critic.weights': critic.weights, ...optimizerStateFiles('critic', critic) }),
    };
    const path = await journal.retryUntilWritable(() =>
      writeCheckpoint(folder.path, about, blobs, config.workbench.keep_checkpoints),
    );
    const name = journal.relative(path);
    journal.event('checkpoint', `checkpoint ${name}`, { folder: name });
    journal.update({ phase });
    this.control.checkpointed(name);
    this.saved = state.unvalidated ? 0 : state.step;
    return path;
  }

  /**
   * Writes the checkpoint at the end of a run, unless no step is finished or the newest checkpoint already holds it.
   */
  async lastCheckpoint(state: TrainerState): Promise<void> {
    if (this.halfway) {
      const sentence = `the run was stopped within the update of step ${state.step + 1}, which cannot be undone for a model of this size: a resume continues from the newest checkpoint`;
      return this.journal.event('warning', sentence, { step: state.step + 1 });
    }
    if (state.step > 0 && (state.step !== this.saved || this.control.checkpointRequested)) await this.checkpoint(state);
  }

  async close(): Promise<void> {
    await this.engine.stop();
    await this.environments.stop();
  }

  private firstState(): TrainerState {
    return {
      step: 0,
      watch: nothingSeen,
      klCoefficient: this.config.algorithm.kl_ctrl.kl_coef,
      collapse: nothingDiagnosed,
      alarms: nothingWatched,
      skipped: nothingSkipped,
      spent: noTimeSpent,
    };
  }

  private async restore(checkpoint: StoredCheckpoint): Promise<TrainerState> {
    const { step, seed_counter } = checkpoint.manifest;
    const saved = checkpoint.manifest.state as unknown as SavedState;
    const { actor_updates, critic_updates, unvalidated } = saved;
    const first = this.firstState(); // a checkpoint of an earlier version lacks newer keys
    const { watch = first.watch, collapse = first.collapse, alarms = first.alarms, skipped = first.skipped } = saved;
    const { kl_coef: klCoefficient = first.klCoefficient, spent = first.spent } = saved;
    this.validated = saved.validated;
    const state: EngineState = { actor: await readMoments(checkpoint, 'actor', actor_updates) };
    if (this.usesCritic)
      state.critic = {
        ...(await readMoments(checkpoint, 'critic', critic_updates)),
        weights: await readFloats(checkpoint, 'critic.weights'),
      };
    // Verifies the checksum of the file that the engine has loaded.
    await readBlob(checkpoint, this.model.lora ? adapterWeightsName : 'model.safetensors');
    await this.engine.restore(state);
    this.proxy.restore({ seed_counter });
    this.environments.compareWith(saved.environments ?? {});
    this.saved = unvalidated ? 0 : step;
    return { step, watch, klCoefficient, collapse, alarms, skipped, spent, ...(unvalidated && { unvalidated }) };
  }
}

/** Returns a new token; only users who may read the lease know it. */
export const newToken = (): string => randomBytes(24).toString('hex');

/**
 * Writes the memory plan as an event, and a warning if it exceeds the available memory. Skipped on a GPU, which holds
 * most of the model.
 */
function reportPlan(input: PlanInput, config: RunConfig, journal: Journal): void {
  const { device } = config.workbench;
  if (device === 'webgpu' || device === 'cuda') return;
  const { peak } = planMemory(input);
  const available = memoryForRun();
  const data = { planned: peak.bytes, available, phase: peak.phase };
  const [planned, free] = [gibibytes(peak.bytes), gibibytes(available)];
  journal.event(
    'memory_plan',
    `on the CPU the trainer needs at most ${planned} (${peak.phase}), and ${free} is available`,
    data,
  );
  if (peak.bytes > available)
    journal.event(
      'warning',
      `memory: on the CPU the trainer may need ${planned} in its ${peak.phase}, but ${free} is available: if it runs out of memory, run ragen doctor with the same configuration to see what fits`,
      data,
    );
}
