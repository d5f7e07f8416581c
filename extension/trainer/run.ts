// One run, assembled: engine, tokenizer, environments and agent proxy for its configuration, and the pen that writes its folder.
// Opening takes the run's lease first, so that two trainers never write one folder; a resume goes back to a checkpoint, the logs
// included, and from there gives the same numbers as a run that was never interrupted.
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import type { LoadedEnvironment } from '../protocol/environment-link';
import { storedConfig } from './stored-config';
import type { RunConfig } from './config/schema';
import type { EngineState, LoadOptions, LoadedModel, PassBudget } from './engine/engine';
import { nothingSeen } from './early-stops';
import type { Watch } from './early-stops';
import { startEngine } from './engine/remote-engine';
import type { RemoteEngine } from './engine/remote-engine';
import { nothingWatched } from './diagnostics/alarms';
import type { WatchState } from './diagnostics/alarms';
import { nothingDiagnosed } from './diagnostics/collapse-metrics';
import type { CollapseState } from './diagnostics/collapse-metrics';
import { installation } from './installation';
import type { Journal } from './journal';
import { gibibytes, memoryForRun } from './machine-memory';
import type { ChatTokenizer } from './models/chat-tokenizer';
import { planMemory } from './models/memory-plan';
import type { PlanInput } from './models/memory-plan';
import { modelFiles } from './models/model-files';
import { readTokenizer } from './models/model-folder';
import { adapterWeightsName } from './models/peft-adapter';
import { AgentProxy } from './rollout/agent-proxy';
import type { RolloutRequest } from './rollout/agent-proxy';
import type { EnvironmentProcess } from './rollout/environment-process';
import type { SeedState } from './rollout/group-layout';
import type { RolloutBatch } from './rollout/rollout-batch';
import { deriveSeed } from './rollout/seeds';
import type { RunControl } from './run-control';
import { RunStopped } from './run-control';
import { momentFiles, readMoments } from './moment-files';
import { logNotice, openEnvironments } from './run-environments';
import { runModelFolder } from './run-model';
import { newAdapters, planInput, usesCritic, usesReference } from './run-plan';
import { trainingSuccess } from './step-metrics';
import { readBlob, readFloats, writeCheckpoint } from './store/checkpoint';
import type { StoredCheckpoint } from './store/checkpoint';
import type { RunFolder } from './store/run-folder';

/** What a run must remember between steps besides weights and optimizer; it goes into checkpoints. */
export interface TrainerState {
  /** Steps finished. */
  step: number;
  /** What the rules of early stops have seen. */
  watch: Watch;
  /** Weight of the KL penalty in the reward. */
  klCoefficient: number;
  /** What the diagnosis of collapse and the watch over the run remember. */
  collapse: CollapseState;
  alarms: WatchState;
  /** Metrics of the newest step while its validation is missing: a stop fell into it, and a resume makes up for it. */
  unvalidated?: Record<string, number>;
}

/** What is asked of the world to open a run. */
export interface OpenOptions {
  folder: RunFolder;
  /** The workspace, from which relative paths of the configuration lead. */
  workspace: string;
  /** Go on from here. */
  checkpoint: StoredCheckpoint | null;
  control: RunControl;
  journal: Journal;
}

/** What a checkpoint's manifest holds of the trainer besides step and seeds. */
interface SavedState {
  watch?: Watch;
  kl_coef?: number;
  collapse?: CollapseState;
  alarms?: WatchState;
  actor_updates: number;
  critic_updates: number;
  wall_s: number;
  success: number | null;
  validated: number | null;
  unvalidated?: Record<string, number>;
}

export class Run {
  /** Success of the newest validation, 0…1. */
  private validated: number | null = null;
  /** The step that the newest checkpoint holds whole. */
  private saved = 0;

  private constructor(
    readonly config: RunConfig,
    readonly folder: RunFolder,
    readonly journal: Journal,
    readonly control: RunControl,
    readonly engine: RemoteEngine,
    private readonly environments: EnvironmentProcess,
    private readonly loaded: readonly LoadedEnvironment[],
    private readonly proxy: AgentProxy,
    private readonly modelFolder: string,
    readonly model: LoadedModel,
    readonly tokenizer: ChatTokenizer,
  ) {}

  static async open({
    folder,
    workspace,
    checkpoint,
    control,
    journal,
  }: OpenOptions): Promise<{ run: Run; state: TrainerState }> {
    const config = storedConfig(folder);
    const modelFolder = await runModelFolder(folder, workspace, control, journal);
    const tokenizer = readTokenizer(modelFolder, { variables: config.data.apply_chat_template_kwargs });
    const { rollout } = config.actor_rollout_ref;
    const plan = await planInput(config, modelFolder, workspace);
    tellPlan(plan, config, journal);
    const engine = startEngine(installation.engineWorker);
    let environments: EnvironmentProcess | undefined;
    try {
      const model = await engine.load({
        ...adaptation(config, modelFolder, workspace, checkpoint?.folder),
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
      if (model.deviceCheck !== null)
        journal.event('setting', `the model runs on ${model.provider}; tried ${model.deviceCheck}`);
      const { es_manager } = config;
      const trained = config.trainer.val_only ? [] : es_manager.train.env_configs.tags;
      const tags = [...trained, ...es_manager.val.env_configs.tags];
      const opened = await openEnvironments(config, tags, workspace, logNotice);
      environments = opened.environments;
      const { loaded } = opened;
      for (const { version, bundle } of loaded) await folder.keepEnvironment(version, bundle);

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
      const proxy = new AgentProxy(generator, environments, tokenizer, {
        seed: config.seed,
        agent_proxy: config.agent_proxy,
        enable_response_mask: config.rollout_manager.use_loss_mask,
        ragen: config.workbench.compat === 'ragen',
        rollout,
        es_manager,
        custom_envs: config.custom_envs,
        max_failed_episodes_share: config.workbench.max_failed_episodes_share,
        stop_token_ids: tokenizer.stopTokenIds,
      });
      const run = new Run(config, folder, journal, control, engine, environments, loaded, proxy, modelFolder, model, tokenizer); // prettier-ignore
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
   * Takes the longest gradient that can occur and throws it away (workbench.try_longest_batch): too little memory shows before the first
   * step instead of after a hundred, when long episodes come.
   */
  async tryLongest(): Promise<void> {
    const { actor, rollout } = this.config.actor_rollout_ref;
    if (!this.config.workbench.try_longest_batch) return;
    const { tokens, seconds } = await this.engine.tryLongest(
      passBudget(this.config, actor.ppo_micro_batch_size_per_gpu, actor.ppo_mini_batch_size),
      rollout.max_model_len,
    );
    const held = process.resourceUsage().maxRSS / 2 ** 20;
    this.journal.event(
      'longest_batch',
      `the longest pass, ${tokens} tokens, took ${seconds.toFixed(1)} s; the trainer has held at most ${held.toFixed(1)} GiB`,
    );
  }

  /** Where training has come in its seeds. */
  get seeds(): SeedState {
    return this.proxy.state;
  }

  restoreSeeds(state: SeedState): void {
    this.proxy.restore(state);
  }

  /** Plays one batch of episodes, the `round`-th of its step from 0. A stop or an error leaves no trace of it. */
  async rollout(mode: 'train' | 'val', step: number, round = 0): Promise<RolloutBatch> {
    const { seed, es_manager, workbench } = this.config;
    const further = mode === 'val' && round > 0 && workbench.compat !== 'ragen'; // where RAGEN plays the same groups again
    let told = false;
    return this.proxy.rollout({
      mode,
      step,
      round,
      ...(further && { seed: seed.val + round * es_manager.val.env_groups }),
      environments: this.loaded,
      onProgress: fraction => this.journal.progress(fraction),
      onFailure: ({ tag, seed, failure }) => {
        if (!told)
          this.journal.event('environment_error', failure.message, { tag, seed, kind: failure.kind, at: failure.at });
        told = true;
      },
    });
  }

  /** Plays some episodes of a validation, for an evaluation, which tells its progress itself. */
  async playValidation(part: Required<Pick<RolloutRequest, 'round' | 'seed' | 'only'>>): Promise<RolloutBatch> {
    return this.proxy.rollout({
      ...part,
      mode: 'val',
      step: 0,
      environments: this.loaded,
      onFailure: ({ tag, seed, failure: { message, kind, at } }) =>
        this.journal.event('environment_error', message, { tag, seed, kind, at }),
    });
  }

  /** Shows a finished validation in the status. */
  showValidation(success: number | null): void {
    this.validated = success;
    this.journal.update({ success });
  }

  /** Shows a finished step in the status: with the success of the newest validation, or of training where there was none. */
  progress(step: number, metrics: Readonly<Record<string, number>>): void {
    const total = this.config.trainer.total_training_steps;
    this.journal.update({
      step,
      phase: 'idle',
      reward: metrics['train/charts/avg_episode_return'] ?? metrics['charts/avg_episode_return'] ?? null,
      tokens_per_s: metrics['perf/throughput'],
      eta_s: (total - step) * metrics['perf/time_per_step'],
      success: this.validated ?? trainingSuccess(metrics),
    });
  }

  /** Writes a checkpoint of `state`: weights by name, moments, counters, and how far the logs go. */
  async checkpoint(state: TrainerState): Promise<string> {
    const { folder, journal, config } = this;
    const phase = journal.status.phase;
    journal.update({ phase: 'checkpoint' });
    const engine = await this.engine.state();
    const files = await modelFiles(this.engine, this.model, this.modelFolder, config.model_path);
    const { actor, critic } = engine;
    await journal.sync();
    const path = await writeCheckpoint(
      folder.path,
      {
        step: state.step,
        offsets: journal.offsets,
        streams: {},
        seed_counter: this.proxy.state.seed_counter,
        state: {
          watch: state.watch,
          kl_coef: state.klCoefficient,
          collapse: state.collapse,
          alarms: state.alarms,
          actor_updates: actor.step,
          critic_updates: critic?.step ?? 0,
          wall_s: journal.wallSeconds,
          success: journal.status.success,
          validated: this.validated,
          ...(state.unvalidated && { unvalidated: state.unvalidated }),
        },
      },
      {
        ...files,
        ...momentFiles('actor', actor),
        ...(critic && { 'critic.weights': critic.weights, ...momentFiles('critic', critic) }),
      },
      config.workbench.keep_checkpoints,
    );
    const name = journal.relative(path);
    journal.event('checkpoint', `checkpoint ${name}`, { folder: name });
    journal.update({ phase });
    this.control.checkpointed(name);
    this.saved = state.unvalidated ? 0 : state.step;
    return path;
  }

  /** The checkpoint at the end of a run, unless there is nothing new or nothing at all to keep. */
  async lastCheckpoint(state: TrainerState): Promise<void> {
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
    };
  }

  private async restore(checkpoint: StoredCheckpoint): Promise<TrainerState> {
    const { step, seed_counter } = checkpoint.manifest;
    const saved = checkpoint.manifest.state as unknown as SavedState;
    const { actor_updates, critic_updates, unvalidated } = saved;
    const first = this.firstState(); // a checkpoint of an earlier version lacks what came later
    const { watch = first.watch, collapse = first.collapse, alarms = first.alarms } = saved;
    const { kl_coef: klCoefficient = first.klCoefficient } = saved;
    this.validated = saved.validated;
    const state: EngineState = { actor: await readMoments(checkpoint, 'actor', actor_updates) };
    if (this.usesCritic)
      state.critic = {
        ...(await readMoments(checkpoint, 'critic', critic_updates)),
        weights: await readFloats(checkpoint, 'critic.weights'),
      };
    // Against its checksum: the engine has loaded this file.
    await readBlob(checkpoint, this.model.lora ? adapterWeightsName : 'model.safetensors');
    await this.engine.restore(state);
    this.proxy.restore({ seed_counter });
    this.saved = unvalidated ? 0 : step;
    return { step, watch, klCoefficient, collapse, alarms, ...(unvalidated && { unvalidated }) };
  }
}

/** A token that only those who may read the lease know. */
export const newToken = (): string => randomBytes(24).toString('hex');

/** Writes down what the run is planned to hold, and warns where that is more than there is. A model on a GPU holds most of it there. */
function tellPlan(input: PlanInput, config: RunConfig, journal: Journal): void {
  const { device } = config.workbench;
  if (device === 'webgpu' || device === 'cuda') return;
  const { peak } = planMemory(input);
  const available = memoryForRun();
  const data = { planned: peak.bytes, available, phase: peak.phase };
  const [planned, free] = [gibibytes(peak.bytes), gibibytes(available)];
  journal.event('memory_plan', `on the CPU the trainer will hold at most ${planned} (${peak.phase}) of ${free}`, data);
  if (peak.bytes > available)
    journal.event(
      'warning',
      `memory: on the CPU the trainer may come to hold ${planned} in its ${peak.phase}, but ${free} can be had: if it ends for want of memory, ask ragen doctor with the same configuration what would fit`,
      data,
    );
}

/** What one pass of the engine may hold: as many tokens as so many of the longest episodes. */
export function passBudget({ actor_rollout_ref }: RunConfig, episodes: number, rows: number): PassBudget {
  const { actor, rollout } = actor_rollout_ref;
  return { maxTokens: Math.min(episodes * rollout.max_model_len, actor.ppo_max_token_len_per_gpu), maxRows: rows };
}

/** What is loaded: the model with all its weights, a checkpoint's where there is one, or the model under adapters. */
function adaptation(
  config: RunConfig,
  modelFolder: string,
  workspace: string,
  checkpoint: string | undefined,
): Pick<LoadOptions, 'modelFolder' | 'adapterFolder' | 'lora'> {
  const { model } = config.actor_rollout_ref;
  const first = model.lora_adapter_path === null ? null : resolve(workspace, model.lora_adapter_path);
  if (model.lora_rank === 0 && first === null)
    return { modelFolder: checkpoint ?? modelFolder, adapterFolder: null, lora: null };
  return { modelFolder, adapterFolder: checkpoint ?? first, lora: newAdapters(config) };
}
