// Opens a run: locates its model, reports the required memory, starts the engine, loads the environments, and restores
// the checkpoint to continue from. The caller must hold the run's lease, so that only one trainer writes to the folder.
import { openJudges } from './run-judges';
import { openRolePlayers } from './run-role-players';
import type { JudgePanel } from '../rewards/judge-panel';
import type { RolePlayers } from '../rollout/role-players';
import { openTeacher } from '../distillation/open-teacher';
import type { Teacher } from '../distillation/teacher';
import { Run } from './run';
import { abortable } from '../../node/abortable';
import { presentConfig } from './stored-config';
import type { RunConfig } from '../config/schema';
import { openEngine, requireSameEngine, serverRows } from './run-engine';
import { installation } from '../../node/installation';
import type { Journal } from './journal';
import { requireRoleSettings } from '../rewards/role-checks';
import { LivePlugins } from '../plugins/live-plugins';
import { memoryOf } from '../plugins/plugin-memory';
import { LiveEnvironments } from '../live/live-environments';
import { PendingSettings } from '../live/pending-settings';
import { gibibytes } from '../../common/numbers';
import { memoryForRun } from '../../node/machine-memory';
import { brokenLimits, reasonClause, unmeasured } from '../../run-data/engine-limits';
import { exceedsMemory, type PlannedMemory } from '../../run-data/memory-shortage';
import { planMemory } from '../../models/memory/memory-plan';
import type { PlanInput } from '../../models/memory/plan-input';
import { readTokenizer } from '../../models/weights/model-folder';
import { RunStopped } from '../../engine/run-stopped';
import type { RemoteEngine } from '../../engine/remote-engine';
import { UserError } from '../../common/user-error';
import { AgentProxy } from '../rollout/agent-proxy';
import type { TextGenerator } from '../rollout/rollout-request';
import { deriveSeed } from '../rollout/seeds';
import { responsePrefix } from '../rollout/tool-protocol';
import { tagProtocol, turnProtocol } from '../rollout/turn-protocol';
import type { RunControl } from './run-control';
import { requireSameModel } from '../../models/weights/model-checksum';
import { keepTokenizer, runModelFolder } from './run-model';
import { planInput, readsModel, usesCritic, usesReference, weightsLoaded } from '../plan/memory-input';
import { observedPictures, pictureOptions, pixelLimits } from './run-pictures';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { RunFolder } from '../store/run-folder';
import { Timeline } from '../timeline/timeline';
import { TimelineWriter } from '../timeline/timeline-writer';
import type { TrainerState } from './trainer-state';
import type { OpenProxy } from './batch-player';
import { firstState } from './trainer-state';

/** The inputs of `openRun`. */
export interface OpenOptions {
  folder: RunFolder;
  /** Base folder for relative paths of the configuration. */
  workspace: string;
  /** The checkpoint to continue from; null if the run has none. */
  checkpoint: StoredCheckpoint | null;
  control: RunControl;
  journal: Journal;
  /** Whether the run has returned to its checkpoint within this process. */
  returned?: boolean;
}

/** Opens a run: loads its model and its environments, and restores its checkpoint. */
export async function openRun({
  folder,
  workspace,
  checkpoint,
  control,
  journal,
  returned = false,
}: OpenOptions): Promise<{ run: Run; state: TrainerState }> {
  const config = presentConfig(folder);
  const modelFolder = await runModelFolder(folder, workspace, control, journal);
  const tokenizer = readTokenizer(modelFolder, {
    variables: config.data.apply_chat_template_kwargs,
    pixels: pixelLimits(config),
  });
  await journal.retryUntilWritable(() => keepTokenizer(folder, modelFolder));
  const { rollout } = config.actor_rollout_ref;
  const isLocal = config.workbench.engine === 'local';
  const plan = isLocal ? await planInput(config, modelFolder, workspace) : null;
  if (plan) reportPlan(plan, config, journal);
  const weights = weightsLoaded(config, modelFolder, workspace, checkpoint?.folder);
  if (isLocal && readsModel(config, weights, modelFolder))
    await abortable(control.stopped, requireSameModel(folder, modelFolder));
  requireSameEngine(config, checkpoint, journal);
  const { timeline_steps: steps, timeline_every: every } = config.workbench;
  const timeline = new Timeline(new TimelineWriter(folder, { steps, every }));
  if (!checkpoint) timeline.start();
  const engine = timeline.engine(
    await openEngine(config, modelFolder, tokenizer, journal, timeline, checkpoint !== null || returned),
  );
  let environments: LiveEnvironments | undefined;
  let plugins: LivePlugins | undefined;
  let judges: JudgePanel | undefined;
  let players: RolePlayers | undefined;
  let teacher: Teacher | undefined;
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
      checkpointed: plan?.checkpointed ?? false,
      moments: { actor: config.actor_rollout_ref.actor.optim.moments, critic: config.critic.optim.moments },
      critic: usesCritic(config),
      seed: deriveSeed('new-weights', config.seed.train),
      maxPositions: rollout.max_model_len,
      cacheFolder: installation.cache,
      pictures: pictureOptions(config, folder.path),
    });
    const model = await abortable(control.stopped, loading);
    if (!isLocal) requireAbilities(config, engine);
    if (model.deviceCheck !== null)
      journal.event('setting', `the model runs on ${model.provider}; result of the device check: ${model.deviceCheck}`);
    const { es_manager } = config;
    const trained = config.trainer.val_only ? [] : es_manager.train.env_configs.tags;
    const tags = [...trained, ...es_manager.val.env_configs.tags];
    const live = await timeline.time(0, 'open environments', () =>
      LiveEnvironments.open(config, tags, { workspace, folder, journal }, control.stopped),
    );
    environments = live;
    requireRoleSettings(live.current, config);
    control.serveEnvironments(live);
    plugins = await LivePlugins.open(config, { workspace, folder, journal });
    const remember = memoryOf(plugins.set);
    teacher = await openTeacher({ config, folder, workspace, modelFolder, control, journal });
    judges = openJudges({ config, tags, workspace, folder, journal });
    players = openRolePlayers({ config, tags, folder, journal });

    const sampler = timeline.generator({
      generate: (rows, sampling, _, weights) =>
        weights === undefined
          ? engine.generate([...rows], sampling)
          : engine.versions!.generate(weights, [...rows], sampling),
      release: rows => engine.release([...rows]),
    });
    const generator: TextGenerator = {
      ...(!isLocal && { rowsPerCall: serverRows }),
      generate: async (rows, sampling, onTokens, weights) => {
        // A rollout that is played ahead of its step finishes during a pause (rollout-pipeline.ts).
        if (weights === undefined && !(await control.gate())) throw new RunStopped();
        engine.onTokens = onTokens ?? (() => undefined);
        return sampler.generate(rows, sampling, undefined, weights);
      },
      release: sampler.release,
    };
    const pool = timeline.pool(live.pool);
    const observer = timeline.observer(control.live);
    const pictures = observedPictures(config, folder.path, tokenizer);
    const openProxy: OpenProxy = (config, changed) =>
      new AgentProxy(generator, pool, tokenizer, {
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
        observer,
        ...pictures,
        ...(judges && { judges }),
        ...(players && { players }),
        ...(remember && { remember }),
        ...changed,
      });
    control.live.connect({
      engine,
      tokenizer,
      prefix: environment =>
        responsePrefix(tagProtocol(turnProtocol(config), config.custom_envs[environment.tag]), environment),
      tags: [...new Set(tags)],
      maxTurn: config.agent_proxy.max_turn,
    });
    const settings = new PendingSettings(config);
    const run = new Run(
      settings,
      folder,
      journal,
      control,
      engine,
      live,
      plugins,
      openProxy,
      modelFolder,
      model,
      tokenizer,
      timeline,
      judges,
      players,
      teacher,
    );
    if (!checkpoint) return { run, state: firstState(run.config) };
    const state = await run.checkpoints.restore(checkpoint);
    timeline.continueAfter(state.step);
    return { run, state };
  } catch (error) {
    await timeline.close();
    await engine.stop();
    await environments?.stop();
    await plugins?.stop();
    judges?.close();
    players?.close();
    await teacher?.close();
    throw error;
  }
}

/** Throws a UserError if the configuration needs an ability that the server lacks, as measured when the run connected. */
function requireAbilities(config: RunConfig, engine: Pick<RemoteEngine, 'versions'>): void {
  const [broken] = brokenLimits(config, { ...unmeasured, keepsVersions: engine.versions !== null });
  if (!broken) return;
  const { key, reason, remedy } = broken.limit;
  const { engine_url } = config.workbench;
  throw new UserError(
    `config: ${key} is ${String(broken.value)}, which ${engine_url} does not support (${reasonClause(reason)}): ${remedy}`,
  );
}

/**
 * Writes the memory plan as an event, and a warning if the plan exceeds the available memory. Does nothing if the model
 * runs on a GPU, because most of the model is then in the GPU's memory.
 */
function reportPlan(input: PlanInput, config: RunConfig, journal: Journal): void {
  const { device } = config.workbench;
  if (device === 'webgpu' || device === 'cuda') return;
  const { peak } = planMemory(input);
  const available = memoryForRun();
  const data: PlannedMemory = { planned: peak.bytes, available, phase: peak.phase };
  const [planned, free] = [gibibytes(peak.bytes), gibibytes(available)];
  journal.event(
    'memory_plan',
    `on the CPU the trainer needs at most ${planned} (${peak.phase}), and ${free} is available`,
    data,
  );
  if (exceedsMemory(data))
    journal.event(
      'warning',
      `memory: on the CPU the trainer may need ${planned} in its ${peak.phase}, but ${free} is available: if the trainer runs out of memory, run ragen doctor with the same configuration to see what fits`,
      data,
    );
}
