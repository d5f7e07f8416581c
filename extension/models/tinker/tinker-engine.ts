// An engine whose model is on a server that speaks the Tinker REST API. The training loop and the environments run on
// this machine; the server samples, scores and trains. Losses and their gradients are computed on this machine, and the
// server receives a surrogate loss with the same gradients (surrogate.ts). `generate` samples only from the newest
// published version. Nothing is sampled between a gradient and the next publication, because on some servers training
// changes the published version too. `versions` exists only for servers on which published versions do not change. Ids
// are checked before they are sent. A request that changes weights is sent only once. trainer/config/engine-checks.ts
// rejects configurations that the protocol does not support.
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../../common/user-error';
import type { NamedTensor, ServerState, WhichPolicy } from '../../engine/engine';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { LoadOptions, LoadedModel } from '../../engine/load-options';
import type { CriticLossOptions, OptimizerOptions, PolicyLossOptions, UpdateMetrics } from '../../engine/loss-options';
import type { PublishedVersions } from '../../engine/published-versions';
import type { RemoteEngine } from '../../engine/remote-engine';
import type { CriticSample, PassBudget, WeightedSample } from '../../engine/training-samples';
import { unwatched, type WorkUnits } from '../../engine/work-units';
import { checkIds } from '../tokenizer/vocabulary';
import { ActorVersions } from './actor-versions';
import { loadModels, requireAdapters, requireFitting, type LoadedModels, type LoadSettings } from './loaded-models';
import { pairScores } from './pair-scores';
import { RowSampling } from './row-sampling';
import { sampledLoss } from './sampled-loss';
import type { ServerCritic } from './server-critic';
import { ServerDisk } from './server-disk';
import type { MaskedSample, ServerModel } from './server-model';
import type { ServerFacts } from './server-probe';
import { SampleRequests } from './server-session';
import { StoppableCalls } from './stoppable-calls';
import { TinkerConnection } from './tinker-connection';

export interface TinkerSettings extends LoadSettings {
  /** Size of the vocabulary and maximum sequence length, both read from the local model folder. */
  vocabSize: number;
  maxPositions: number;
  /**
   * Number of published versions that stay on the server's disk: the newest version, and earlier versions from which
   * rows may still be sampled.
   */
  keptVersions: number;
  /** Receives a warning for the user. A warning does not affect the run. */
  onWarning(sentence: string): void;
  /** Decodes ids, for stop strings. */
  decode(ids: readonly number[]): string;
}

/** Maximum milliseconds for unloading the models at the end. */
const unloadMs = 3000;

export class TinkerEngine implements RemoteEngine<ServerState> {
  onTokens: (sampled: number) => void = () => undefined;
  onRows: (rows: readonly string[]) => void = () => undefined;
  onUnits: (done: number, of: number) => void = () => undefined;

  private readonly connection: TinkerConnection;
  private readonly disk: ServerDisk;
  private readonly published: ActorVersions;
  private readonly calls = new StoppableCalls((done, of) => this.onUnits(done, of));
  private readonly requests: SampleRequests;
  private readonly sampling: RowSampling;
  private loadedModels?: LoadedModels;
  /** All models that this engine has created on the server. */
  private readonly created = new Set<ServerModel>();
  private reference?: Promise<ServerModel>;
  /** Number of optimizer steps since `remember` was called. */
  private steps = 0;
  /** Counter that makes the names of saved states distinct. */
  private saves = 0;

  constructor(private readonly settings: TinkerSettings) {
    const { url } = settings;
    this.connection = new TinkerConnection(settings);
    this.disk = new ServerDisk(this.connection, reason =>
      settings.onWarning(`${url} does not delete old weights (${reason}), so they stay on its disk`),
    );
    this.published = new ActorVersions(this.disk, settings.keptVersions);
    this.requests = new SampleRequests(this.connection, url);
    this.sampling = new RowSampling(this.requests, this.calls, {
      ...{ connections: settings.connections, decode: settings.decode },
      onTokens: sampled => this.onTokens(sampled),
      onRows: rows => this.onRows(rows),
    });
  }

  async load(options: LoadOptions): Promise<LoadedModel> {
    const { vocabSize, maxPositions, url } = this.settings;
    const adapters = requireAdapters(options.lora);
    const models = await loadModels(this.connection, this.settings, options, this.created, (...about) =>
      this.requests.draw(...about),
    );
    this.loadedModels = models;
    // The reference policy is created here, so that a server without room for another adapter is noticed before the
    // first step.
    if (options.referenceFolder !== null) await this.referenceModel();
    const { samples, tokens } = models.facts.reduction;
    return {
      parameters: 0,
      trained: 0,
      maxPositions,
      vocabSize,
      provider: 'tinker',
      deviceCheck: `${url} (${models.base}), whose losses are a ${samples} over samples and a ${tokens} over tokens`,
      lora: { rank: adapters.rank, alpha: models.actor.model.alpha, dropout: 0, targets: adapters.targets },
    };
  }

  generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]> {
    return this.generateBy(null, rows, sampling);
  }

  get versions(): PublishedVersions | null {
    if (!this.loadedModels?.facts.keepsVersions) return null;
    return {
      publish: () => this.calls.result(this.publish()),
      generate: (version, rows, sampling) => this.generateBy(version, rows, sampling),
    };
  }

  /**
   * Samples responses from a published version. If `version` is null, samples from the current weights, which are
   * published first if necessary.
   */
  private async generateBy(
    version: string | null,
    rows: GenerationRow[],
    sampling: SamplingOptions,
  ): Promise<GeneratedRow[]> {
    this.calls.units.check();
    this.checkIds(rows.map(({ append }) => append));
    const { actor } = this.models;
    return this.sampling.generate(rows, sampling, () =>
      version === null
        ? { session: this.publish(), logprobs: async sample => (await actor.model.logprobs([sample], unwatched))[0] }
        : // A forward pass uses the current weights, so it cannot compute the log-probs of an older version. This is not
          // needed, because `version` is set only for servers that always return log-probs (server-probe.ts).
          { session: Promise.resolve(version), logprobs: null },
    );
  }

  /**
   * Publishes the actor's weights for sampling, unless this version has already been published. Returns the id of the
   * sampling session that uses this version.
   */
  private publish(): Promise<string> {
    const { model, updates } = this.models.actor;
    return this.published.publish(model, updates);
  }

  /** Deletes the saved states at these addresses from the server's disk. */
  async discard(states: readonly string[]): Promise<void> {
    for (const address of states) await this.disk.remove(address);
  }

  async release(rows: string[]): Promise<void> {
    this.sampling.release(rows);
  }

  watch(row: string | null, onTokens: (ids: number[], logprobs: number[]) => void = () => undefined): void {
    this.sampling.watch(row, onTokens);
  }

  async score(which: WhichPolicy, samples: MaskedSample[]): Promise<{ logprobs: Float32Array[] }> {
    this.checkIds(samples.map(({ ids }) => ids));
    const { units } = this.calls;
    const { actor } = this.models;
    const read =
      which === 'actor' ? actor.score(samples, units) : (await this.referenceModel()).logprobs(samples, units);
    return { logprobs: await this.calls.result(read) };
  }

  /**
   * Returns the reference policy: a model that is never trained. Because its adapter is new and has no effect, the
   * reference policy is equal to the base model.
   */
  private referenceModel(): Promise<ServerModel> {
    return (this.reference ??= this.models.create(0));
  }

  async crossScore(prompts: Int32Array[], texts: Int32Array[]): Promise<Float64Array[]> {
    this.checkIds([...prompts, ...texts]);
    const { model } = this.models.actor;
    const read = (pairs: MaskedSample[]): Promise<Float32Array[]> => model.logprobs(pairs, this.calls.units);
    return this.calls.result(pairScores(prompts, texts, read));
  }

  async update(
    samples: WeightedSample[],
    _budget: PassBudget,
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    const logprobs = await this.currentLogprobs(samples);
    const { gradients, metrics } = sampledLoss(samples, logprobs, loss);
    return { ...metrics, ...(await this.optimize(samples, logprobs, gradients, optimizer)) };
  }

  async trainSupervised(samples: MaskedSample[], _budget: PassBudget, optimizer: OptimizerOptions): Promise<number> {
    const logprobs = await this.currentLogprobs(samples);
    const total = samples.reduce((sum, { mask }) => sum + mask.reduce((count, bit) => count + bit, 0), 0);
    const gradients = samples.map(({ mask }) => Float64Array.from(mask, bit => -bit / total));
    await this.optimize(samples, logprobs, gradients, optimizer);
    return -logprobs.reduce((sum, values) => sum + values.reduce((all, value) => all + value, 0), 0) / total;
  }

  /** Returns the samples' log-probs under the current weights, from the cache if possible. */
  private async currentLogprobs(samples: readonly MaskedSample[]): Promise<readonly Float32Array[]> {
    this.checkIds(samples.map(({ ids }) => ids));
    const { actor } = this.models;
    return actor.knownLogprobs(samples) ?? this.untilStep(units => actor.model.logprobs(samples, units));
  }

  /**
   * Makes a call. If the run is stopped, interrupts the call, unless the current training step has already begun an
   * optimizer step.
   */
  private untilStep<T>(call: (units: WorkUnits) => Promise<T>): Promise<T> {
    return this.steps > 0 ? call(this.calls.units.unstoppable) : this.calls.result(call(this.calls.units));
  }

  /**
   * Makes one optimizer step with a gradient. If the gradient is not finite, the weights stay unchanged and the metric
   * `skipped` is 1, as in the local engine. A stop does not interrupt an optimizer step that has begun.
   */
  private async optimize(
    samples: readonly MaskedSample[],
    logprobs: readonly Float32Array[],
    gradients: readonly Float64Array[],
    optimizer: OptimizerOptions,
  ): Promise<{ grad_norm: number; lr: number; skipped: number }> {
    const { actor } = this.models;
    const data = actor.surrogate(samples, logprobs, gradients);
    if (!data) return { grad_norm: NaN, lr: optimizer.lr, skipped: 1 };
    this.beginStep();
    const grad_norm = await actor.step(data, optimizer, this.calls.units.unstoppable);
    return { grad_norm, lr: optimizer.lr, skipped: 0 };
  }

  /**
   * Counts an optimizer step. @throws RunStopped if the run was stopped before the first optimizer step of the training
   * step
   */
  private beginStep(): void {
    if (this.steps === 0) this.calls.units.check();
    this.steps++;
  }

  async inspect(): Promise<never> {
    throw new UserError('engine: a Tinker server returns no complete distributions: inspect with the local engine');
  }

  async attributePictures(): Promise<never> {
    throw new UserError('engine: a model on a Tinker server reads text only: use the local engine for pictures');
  }

  async analyseGradients(): Promise<never> {
    throw new UserError('engine: a Tinker server returns no gradients: set trainer.gradient_analysis_mode=false');
  }

  async values(samples: MaskedSample[]): Promise<Float32Array[]> {
    this.checkIds(samples.map(({ ids }) => ids));
    return this.calls.result(this.critic.values(samples, this.calls.units));
  }

  async updateCritic(
    samples: CriticSample[],
    _budget: PassBudget,
    loss: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    const { critic } = this;
    const values = await this.untilStep(units => critic.values(samples, units));
    this.beginStep();
    return critic.update(samples, values, loss, optimizer);
  }

  async restoreCritic(): Promise<never> {
    throw new UserError(
      'engine: a critic on a Tinker server has no weights on this machine: resume the run, which loads its saved state',
    );
  }

  async tryLongest(): Promise<never> {
    throw new UserError('engine: a Tinker server plans its own memory: set workbench.try_longest_batch=false');
  }

  async remember(): Promise<void> {
    this.steps = 0;
  }

  async rollBack(): Promise<boolean> {
    return this.steps === 0;
  }

  async state(): Promise<ServerState> {
    const { actor, base } = this.models;
    const path = await actor.model.save(this.checkpointName);
    const saved = await this.models.critic?.save(this.checkpointName);
    const { url } = this.settings;
    return { server: { path, url, base, updates: actor.updates, ...(saved && { critic: saved }) } };
  }

  async restore({ server }: ServerState): Promise<void> {
    const { actor, critic } = this.models;
    requireFitting(server, this.models);
    await actor.load(server.path, server.updates);
    if (critic && server.critic) await critic.load(server.critic);
    this.published.forget();
  }

  async parameters(): Promise<NamedTensor[]> {
    const { tensors, copy } = await this.models.actor.model.parameters(this.checkpointName);
    await this.disk.remove(copy);
    return tensors;
  }

  private readonly checkpointName = (): string => `v${this.models.actor.updates}-${(this.saves++).toString(36)}`;

  /**
   * Makes rollout and scoring calls throw RunStopped. An optimizer step that has begun is finished if the server
   * answers. If the server does not answer, the optimizer step also throws RunStopped, and `rollBack` cannot undo the
   * step.
   */
  interrupt(): void {
    this.calls.stop();
    this.connection.interrupt();
  }

  /** Unloads the models to free the server's memory. Gives up if the server does not answer in time. */
  async stop(): Promise<void> {
    const unload = async (): Promise<void> => {
      // The critic is unloaded last, because SkyRL ends all models when a critic is unloaded.
      const critic = this.loadedModels?.critic?.model;
      const last = [...this.created].sort((a, b) => Number(a === critic) - Number(b === critic));
      // If the server refuses to unload one model, the others are unloaded nevertheless.
      for (const model of last) await model.unload().catch(() => undefined);
      await this.published.removeAll();
    };
    await Promise.race([unload(), sleep(unloadMs, undefined, { ref: false })]);
    await this.connection.close();
  }

  private checkIds(sequences: readonly ArrayLike<number>[]): void {
    checkIds(sequences, this.settings.vocabSize, this.models.modelFolder);
  }

  /** The properties of the server, as measured when the run connected. */
  get facts(): ServerFacts {
    return this.models.facts;
  }

  private get critic(): ServerCritic {
    const { critic } = this.models;
    if (!critic) throw new Error('engine: no critic was loaded');
    return critic;
  }

  private get models(): LoadedModels {
    if (!this.loadedModels) throw new Error('engine: no model is loaded');
    return this.loadedModels;
  }
}
