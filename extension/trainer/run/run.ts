// One run during training or evaluation: engine, tokenizer, environments and journal. Related files: open-run.ts
// (opening a run), batch-player.ts (playing batches), training-checkpoints.ts (saving and restoring), trainer-state.ts
// (state between steps), journal.ts (logs) and run-control.ts (pause and stop requests).
import type { RunConfig } from '../config/schema';
import type { LoadedModel } from '../../engine/load-options';
import { shownPictures } from '../plan/planned-pictures';
import { passBudget } from './pass-budget';
import type { RemoteEngine } from '../../engine/remote-engine';
import type { Journal } from './journal';
import type { LiveEnvironments } from '../live/live-environments';
import type { LivePlugins } from '../plugins/live-plugins';
import type { PendingSettings } from '../live/pending-settings';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { SeedState } from '../rollout/group-layout';
import type { RunControl } from './run-control';
import { usesCritic, usesReference } from '../plan/memory-input';
import { stepRollouts, type StepRollouts } from '../loop/rollout-pipeline';
import { SystemUse } from '../loop/system-use';
import { trainingSuccess } from '../loop/metric-statistics';
import type { RunFolder } from '../store/run-folder';
import type { JudgePanel } from '../rewards/judge-panel';
import type { RolePlayers } from '../rollout/role-players';
import type { Teacher } from '../distillation/teacher';
import type { Timeline } from '../timeline/timeline';
import { BatchPlayer } from './batch-player';
import { TrainingCheckpoints } from './training-checkpoints';
import type { OpenProxy } from './batch-player';
import type { TrainerState } from './trainer-state';

export class Run {
  readonly batches: BatchPlayer;
  readonly rollouts: StepRollouts;
  readonly checkpoints: TrainingCheckpoints;
  readonly systemUse = new SystemUse();
  /** Success rate of the newest validation, 0…1; null before the first validation. */
  validated: number | null = null;
  /** Seed counter at the beginning of the current step. */
  private before: SeedState | undefined;
  private readonly diagnoses: Parameters<Journal['diagnosis']>[] = [];
  /**
   * True if a stop interrupted optimizer steps that cannot be undone. The weights are then not those of any finished
   * step.
   */
  halfway = false;

  constructor(
    /** Current settings and pending changes. */
    readonly settings: PendingSettings,
    readonly folder: RunFolder,
    readonly journal: Journal,
    readonly control: RunControl,
    readonly engine: RemoteEngine,
    readonly environments: LiveEnvironments,
    /** The plug-ins that the configuration names. */
    readonly plugins: LivePlugins,
    openProxy: OpenProxy,
    private readonly modelFolder: string,
    readonly model: LoadedModel,
    readonly tokenizer: ChatTokenizer,
    readonly timeline: Timeline,
    private readonly judges?: JudgePanel,
    private readonly players?: RolePlayers,
    /** The teacher of on-policy distillation; undefined without one. */
    readonly teacher?: Teacher,
  ) {
    this.batches = new BatchPlayer(this, openProxy);
    this.rollouts = stepRollouts(this);
    environments.firstStepOfEdits = () => {
      const { ahead } = this.rollouts;
      return ahead ? (ahead.playing ?? ahead.next) : journal.status.step + 1;
    };
    this.checkpoints = new TrainingCheckpoints(this, modelFolder);
  }

  /** The configuration of the current step. */
  get config(): RunConfig {
    return this.settings.config;
  }

  get usesReference(): boolean {
    return usesReference(this.config);
  }

  get usesCritic(): boolean {
    return usesCritic(this.config);
  }

  /**
   * Computes the gradient of an engine pass of maximum size and discards the gradient (workbench.try_longest_batch). If
   * memory is insufficient, the run therefore fails at its start instead of later, when it trains on long episodes.
   */
  async tryLongest(): Promise<void> {
    const { actor, rollout } = this.config.actor_rollout_ref;
    const { engine, try_longest_batch } = this.config.workbench;
    if (!try_longest_batch || engine !== 'local') return; // a server plans its own memory
    this.follow('the longest pass');
    const [picture] = shownPictures(this.config, this.modelFolder)
      .filter(({ shown }) => shown > 0)
      .sort((a, b) => b.tokens - a.tokens);
    const { tokens, imageTokens, seconds } = await this.engine.tryLongest(
      passBudget(this.config, actor.ppo_micro_batch_size_per_gpu, actor.ppo_mini_batch_size),
      rollout.max_model_len,
      picture && { width: picture.width, height: picture.height },
    );
    const encoded = imageTokens > 0 ? ` and the encoding of a picture (${imageTokens} image tokens)` : '';
    const held = process.resourceUsage().maxRSS / 2 ** 20;
    this.journal.event(
      'longest_batch',
      `the longest pass (${tokens} tokens)${encoded} took ${seconds.toFixed(1)} s; the trainer's peak memory so far is ${held.toFixed(1)} GiB`,
    );
  }

  /**
   * Shows the progress of the following engine calls.
   * @param what label of the calls
   * @param part index of the call within its phase, and total number of calls in this phase
   */
  follow(what: string, part = { index: 0, of: 1 }): void {
    const { index, of: parts } = part;
    const which = parts > 1 ? `${what} ${index + 1} of ${parts}` : what;
    this.engine.onUnits = (done, of) =>
      this.journal.progress((index + done / of) / parts, `${which}: pass ${done + 1} of ${of}`);
  }

  /** Queues a diagnosis of the current step; it is written together with the step. */
  keepDiagnosis(...found: Parameters<Journal['diagnosis']>): void {
    this.diagnoses.push(found);
  }

  async writeDiagnoses(): Promise<void> {
    for (const found of this.diagnoses.splice(0)) await this.journal.diagnosis(...found);
  }

  /**
   * Begins a step: saves the seed counter, the weights and the optimizer's moments, so that `undo` can restore them.
   */
  async begin(): Promise<void> {
    this.before = this.rollouts.seeds;
    this.diagnoses.length = 0;
    await this.engine.remember();
  }

  /**
   * Restores the state that the run had at the beginning of a stopped step, so that a resume repeats the step. If the
   * weights cannot be restored, `halfway` is set and no further checkpoint is written.
   */
  async undo(): Promise<void> {
    await this.rollouts.discard(this.before);
    this.halfway = !(await this.engine.rollBack());
  }

  /**
   * Applies the changes of settings that the user made with the resume; called before the next step. Writes a
   * checkpoint, so that later resumes keep the changes.
   */
  async changeSettings(state: TrainerState, values: Readonly<Record<string, number>>): Promise<void> {
    this.applySettings(state);
    if (this.settings.request(values).changes.length === 0) return;
    this.applySettings(state);
    if (state.step > 0) await this.checkpoints.write(state);
  }

  /**
   * Applies the pending changes of settings between two steps.
   * @param begins whether the next step begins now
   */
  applySettings(state: TrainerState, begins = false): void {
    const changes = this.settings.apply(state.step + 1, begins);
    if (changes.length === 0) return;
    for (const { key, from, to } of changes) {
      this.journal.event('setting', `${key} ${from} → ${to}${this.delay(key, state.step + 1)}`, { key, from, to });
      if (key === 'algorithm.kl_ctrl.kl_coef') state.klCoefficient = to;
    }
    this.journal.update({ total_steps: this.config.trainer.total_training_steps });
    this.rollouts.applySettings();
    this.checkpoints.outdate(); // an existing checkpoint of this step lacks the changes
  }

  /**
   * Returns text that names the first step to which a changed rollout setting applies. Returns an empty text if this is
   * step `step`, that is, if no rollout of step `step` or of a later step has begun with the old value.
   */
  private delay(key: string, step: number): string {
    const first = this.rollouts.ahead?.next ?? step;
    return key.startsWith('actor_rollout_ref.rollout.') && first > step ? `, from the rollout of step ${first}` : '';
  }

  /** Shows the result of a validation in the status. */
  showValidation(success: number | null): void {
    this.validated = success;
    this.journal.update({ success, success_of: 'val' });
  }

  /**
   * Shows a finished step in the status. The success rate is that of the newest validation or, before the first
   * validation, that of the step's training episodes.
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

  async close(): Promise<void> {
    await this.timeline.close();
    this.judges?.close();
    this.players?.close();
    await this.teacher?.close();
    await this.engine.stop();
    await this.environments.stop();
    await this.plugins.stop();
  }
}
