// An engine whose model is on a server that speaks the Tinker REST API. The training loop and the environments run on
// this machine; the server samples, scores and trains. Losses and their gradients are computed on this machine, and the
// server receives a surrogate loss with the same gradients (surrogate.ts). Invariants: `generate` samples only from the
// newest published version, and nothing is sampled between a gradient and the next publication. On some servers,
// training also changes the published version. `versions` exists only for servers on which published versions do not
// change. Ids are checked before they are sent. A request that changes weights is sent only once.
// trainer/config/engine-checks.ts rejects configurations that the protocol does not support.
import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { observedCalls } from '../../common/observed-calls';
import { UserError } from '../../common/user-error';
import type { NamedTensor, ServerState, WhichPolicy } from '../../engine/engine';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { LoadOptions, LoadedModel } from '../../engine/load-options';
import type { CriticLossOptions, OptimizerOptions, PolicyLossOptions, UpdateMetrics } from '../../engine/loss-options';
import type { PublishedVersions } from '../../engine/published-versions';
import type { RemoteEngine } from '../../engine/remote-engine';
import { RunStopped } from '../../engine/run-stopped';
import type { CriticSample, PassBudget, WeightedSample } from '../../engine/training-samples';
import { StoppableUnits, unwatched, type WorkUnits } from '../../engine/work-units';
import { checkIds } from '../tokenizer/vocabulary';
import { loadModels, requireAdapters, type LoadedModels, type LoadSettings } from './loaded-models';
import { RequestSlots, samplingSlots } from './request-slots';
import { sampledLoss } from './sampled-loss';
import { ReadNumbers } from './read-numbers';
import type { ServerCritic } from './server-critic';
import { ServerDisk } from './server-disk';
import { seedMask, type MaskedSample, type ServerModel } from './server-model';
import type { ServerFacts } from './server-probe';
import { surrogateData } from './surrogate';
import { TinkerConnection } from './tinker-connection';
import { hasLogprobs, TinkerRows } from './tinker-rows';
import { modelInput, sampledSchema, type SampledSequence } from './tinker-wire';

export interface TinkerSettings extends LoadSettings {
  /** Size of the vocabulary and maximum sequence length, both read from the local model folder. */
  vocabSize: number;
  maxPositions: number;
  /**
   * Number of published versions that stay on the server's disk: the newest version, and earlier versions from which
   * rows may still be sampled.
   */
  keptVersions: number;
  /** Receives a warning for the user; the run continues unchanged. */
  onWarning(sentence: string): void;
  /** Decodes ids, for stop strings. */
  decode(ids: readonly number[]): string;
  /** Called when a request begins. Returns a function that is called when the request's result has arrived. */
  onRequest?(path: string): () => void;
}

/** Maximum milliseconds for unloading the models at the end. */
const unloadMs = 3000;
/** Methods of the connection that send a request. */
const requestMethods: ReadonlySet<string> = new Set<keyof TinkerConnection>([
  'get',
  'post',
  'later',
  'submit',
  'download',
]);
type Submitted = ReturnType<TinkerConnection['submit']>;
const resultOf = async (submitted: Submitted): Promise<unknown> => (await submitted).result;

export class TinkerEngine implements RemoteEngine<ServerState> {
  onTokens: (sampled: number) => void = () => undefined;
  onRows: (rows: readonly string[]) => void = () => undefined;
  onUnits: (done: number, of: number) => void = () => undefined;

  private readonly connection: TinkerConnection;
  /**
   * Limits the number of rows that are sampled at the same time. Each such row occupies one HTTP connection until its
   * response has arrived.
   */
  private readonly sampling: RequestSlots;
  private readonly interrupted = new AbortController();
  private readonly rows: TinkerRows;
  private readonly disk: ServerDisk;
  /** Sampling sessions whose weights are on the server's disk, oldest first. */
  private readonly onDisk: string[] = [];
  private readonly units = new StoppableUnits((done, of) => this.onUnits(done, of));
  private loadedModels?: LoadedModels;
  /** All models that this engine has created on the server. */
  private readonly created = new Set<ServerModel>();
  private reference?: Promise<ServerModel>;
  /** Number of optimizer steps of the actor so far; serves as the version of its weights. */
  private version = 0;
  /** Number of optimizer steps since `remember` was called. */
  private steps = 0;
  private published: { version: number; session: Promise<string> } | null = null;
  /** Log-probs that the server has returned for the actor, by sample. */
  private readonly known = new ReadNumbers();
  private watched: { row: string; onTokens: (ids: number[], logprobs: number[]) => void } | null = null;
  /** Number of running calls of `generate`, and number of tokens that these calls have sampled. */
  private sampled = { tokens: 0, calls: 0 };
  /** Counter whose values make sampling requests and the names of saved states distinct. */
  private requests = 0;

  constructor(private readonly settings: TinkerSettings) {
    this.rows = new TinkerRows(settings.decode);
    const { connections, url, onRequest } = settings;
    this.connection = observedCalls(
      new TinkerConnection(settings),
      (method, [path]) => (requestMethods.has(method) ? onRequest?.(String(path)) : undefined),
      (method, returned) => (method === 'submit' ? resultOf(returned as Submitted) : returned),
    );
    this.disk = new ServerDisk(this.connection, reason =>
      settings.onWarning(`${url} does not delete old weights (${reason}), so they stay on its disk`),
    );
    this.sampling = new RequestSlots(samplingSlots(connections));
  }

  async load(options: LoadOptions): Promise<LoadedModel> {
    const { vocabSize, maxPositions, url } = this.settings;
    const adapters = requireAdapters(options.lora);
    const models = await loadModels(this.connection, this.settings, options, this.created, (...about) =>
      this.draw(...about),
    );
    this.loadedModels = models;
    if (options.referenceFolder !== null) await this.referenceModel(); // a limit of adapters is found before the first step
    const { samples, tokens } = models.facts.reduction;
    return {
      parameters: 0,
      trained: 0,
      maxPositions,
      vocabSize,
      provider: 'tinker',
      deviceCheck: `${url} (${models.base}), whose losses are a ${samples} over samples and a ${tokens} over tokens`,
      lora: { rank: adapters.rank, alpha: models.actor.alpha, dropout: 0, targets: adapters.targets },
    };
  }

  generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]> {
    return this.generateBy(null, rows, sampling);
  }

  get versions(): PublishedVersions | null {
    if (!this.loadedModels?.facts.keepsVersions) return null;
    return {
      publish: () => this.stoppable(this.publish()),
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
    this.units.check();
    this.checkIds(rows.map(({ append }) => append));
    const prompts = rows.map(row => this.rows.append(row));
    const session = version ?? (await this.stoppable(this.publish()));
    this.sampled.calls++;
    try {
      const one = async ({ row, seed }: GenerationRow, i: number): Promise<GeneratedRow> => {
        const params = samplingParams(sampling, prompts[i].length, seed);
        const sequence = await this.sampling.run(() => {
          this.units.check();
          return this.sample(session, prompts[i], params);
        });
        // A forward pass uses the current weights, so it cannot compute the log-probs of an older version. Servers for
        // which `version` is set always return log-probs (server-probe.ts).
        const complete = version === null ? await this.withLogprobs(prompts[i], sequence) : sequence;
        const generated = this.rows.accept(row, complete, sampling);
        this.sampled.tokens += generated.ids.length;
        this.onTokens(this.sampled.tokens);
        this.onRows([row]);
        if (this.watched?.row === row) this.watched.onTokens(generated.ids, generated.logprobs);
        return generated;
      };
      return await this.stoppable(pMap(rows, one, { concurrency: this.sampling.count }));
    } finally {
      if (--this.sampled.calls === 0) this.sampled.tokens = 0;
    }
  }

  /** Samples a response to a prompt from a published version. */
  private async sample(session: string, prompt: number[], sampling_params: object): Promise<SampledSequence> {
    const body = {
      sampling_session_id: session,
      seq_id: this.requests++,
      num_samples: 1,
      prompt: modelInput(prompt),
      sampling_params,
      type: 'sample',
    };
    const { result } = await this.connection.later('asample', body, sampledSchema);
    const [sequence] = result.sequences;
    if (!sequence)
      throw new UserError(
        `engine: ${this.settings.url} returned no sequence for a prompt: use a server of the Tinker API`,
      );
    return sequence;
  }

  /**
   * Returns the sequence with log-probs. If the server has not returned log-probs with the sample, a forward pass
   * computes them.
   */
  private async withLogprobs(prompt: readonly number[], sequence: SampledSequence): Promise<SampledSequence> {
    if (hasLogprobs(sequence)) return sequence;
    const ids = Int32Array.from([...prompt, ...sequence.tokens]);
    const mask = Uint8Array.from(ids, (_, i) => Number(i >= prompt.length));
    const [scored] = await this.models.actor.logprobs([{ ids, mask }], unwatched);
    return { ...sequence, logprobs: Array.from(scored.subarray(prompt.length)) };
  }

  /** Samples a response for the probe: a few tokens, always with the same seed. */
  private draw(session: string, prompt: number[]): Promise<SampledSequence> {
    return this.sample(session, prompt, { max_tokens: 4, seed: 1, temperature: 1, top_p: 1, top_k: -1, stop: [] });
  }

  /**
   * Publishes the actor's weights for sampling, unless this version has already been published. Returns the sampling
   * session.
   */
  private publish(): Promise<string> {
    if (this.published?.version !== this.version) {
      const session = this.models.actor.publish(this.version);
      session.then(
        newest => this.keepNewest(newest),
        () => (this.published = null),
      );
      this.published = { version: this.version, session };
    }
    return this.published.session;
  }

  /** Records that a version was published. Deletes the versions from which no row is sampled any more. */
  private keepNewest(newest: string): void {
    this.onDisk.push(newest);
    const old = this.onDisk.splice(0, Math.max(0, this.onDisk.length - this.settings.keptVersions));
    for (const session of old) void this.disk.removeVersion(session);
  }

  /** Deletes saved states from the server's disk, by their addresses. */
  async discard(states: readonly string[]): Promise<void> {
    for (const address of states) await this.disk.remove(address);
  }

  async release(rows: string[]): Promise<void> {
    this.rows.release(rows);
  }

  watch(row: string | null, onTokens: (ids: number[], logprobs: number[]) => void = () => undefined): void {
    this.watched = row === null ? null : { row, onTokens };
  }

  async score(which: WhichPolicy, samples: MaskedSample[]): Promise<{ logprobs: Float32Array[] }> {
    this.checkIds(samples.map(({ ids }) => ids));
    const model = which === 'actor' ? this.models.actor : await this.referenceModel();
    const logprobs = await this.stoppable(model.logprobs(samples, this.units));
    if (which === 'actor') this.known.keep(samples, this.version, logprobs);
    return { logprobs };
  }

  /**
   * Returns the reference policy: a model that is never trained. Its new adapter has no effect, so the model is equal
   * to the base.
   */
  private referenceModel(): Promise<ServerModel> {
    return (this.reference ??= this.models.create(0));
  }

  async crossScore(prompts: Int32Array[], texts: Int32Array[]): Promise<Float64Array[]> {
    this.checkIds([...prompts, ...texts]);
    const pairs = texts.flatMap(text =>
      prompts.map((prompt): MaskedSample => {
        const ids = new Int32Array(prompt.length + text.length);
        ids.set(prompt);
        ids.set(text, prompt.length);
        return { ids, mask: new Uint8Array(ids.length).fill(1, prompt.length) };
      }),
    );
    const logprobs = await this.stoppable(this.models.actor.logprobs(pairs, this.units));
    const sums = logprobs.map(values => values.reduce((sum, value) => sum + value, 0));
    return texts.map((_, row) => Float64Array.from(prompts, (_, column) => sums[row * prompts.length + column]));
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

  /**
   * Returns the samples' log-probs under the current weights. Uses cached log-probs if the weights have not changed
   * since.
   */
  private async currentLogprobs(samples: readonly MaskedSample[]): Promise<readonly Float32Array[]> {
    this.checkIds(samples.map(({ ids }) => ids));
    const { actor } = this.models;
    return this.known.get(samples, this.version) ?? this.untilStep(units => actor.logprobs(samples, units));
  }

  /** Makes a call. A stop interrupts the call, unless the current training step has already made an optimizer step. */
  private untilStep<T>(call: (units: WorkUnits) => Promise<T>): Promise<T> {
    return this.steps > 0 ? call(this.units.unstoppable) : this.stoppable(call(this.units));
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
    const { actor, facts } = this.models;
    const sent = [...samples.keys()].filter(i => samples[i].mask.includes(1));
    const at = <T>(values: readonly T[]): T[] => sent.map(i => values[i]);
    const data = surrogateData(at(samples), at(logprobs), at(gradients), facts.reduction);
    if (!data) return { grad_norm: NaN, lr: optimizer.lr, skipped: 1 };
    if (this.steps === 0) this.units.check();
    this.steps++;
    const metrics = await actor.step(data, optimizer, this.units.unstoppable);
    this.version++;
    return { grad_norm: metrics[facts.gradientNorm] ?? NaN, lr: optimizer.lr, skipped: 0 };
  }

  async inspect(): Promise<never> {
    throw new UserError('engine: a Tinker server returns no complete distributions: inspect with the local engine');
  }

  async analyseGradients(): Promise<never> {
    throw new UserError('engine: a Tinker server returns no gradients: set trainer.gradient_analysis_mode=false');
  }

  async values(samples: MaskedSample[]): Promise<Float32Array[]> {
    this.checkIds(samples.map(({ ids }) => ids));
    return this.stoppable(this.critic.values(samples, this.units));
  }

  async updateCritic(
    samples: CriticSample[],
    _budget: PassBudget,
    loss: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    const { critic } = this;
    const values = await this.untilStep(units => critic.values(samples, units));
    if (this.steps === 0) this.units.check();
    this.steps++;
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
    const path = await actor.save(this.checkpointName);
    const saved = await this.models.critic?.save(this.checkpointName);
    const { url } = this.settings;
    return { server: { path, url, base, updates: this.version, ...(saved && { critic: saved }) } };
  }

  async restore({ server }: ServerState): Promise<void> {
    const { base } = this.models;
    if (server.base !== base)
      throw new UserError(
        `config: workbench.engine_model is ${base}, but the checkpoint's adapter belongs to ${server.base}: set it to ${server.base}`,
      );
    const { actor, critic } = this.models;
    if (critic && !server.critic)
      throw new UserError(
        'config: algorithm.adv_estimator is gae, but the checkpoint has no critic: choose the estimator with which the checkpoint was trained',
      );
    await actor.load(server.path);
    if (critic && server.critic) await critic.load(server.critic);
    this.version = server.updates;
    this.published = null;
  }

  async parameters(): Promise<NamedTensor[]> {
    const { tensors, copy } = await this.models.actor.parameters(this.checkpointName);
    await this.disk.remove(copy);
    return tensors;
  }

  private readonly checkpointName = (): string => `v${this.version}-${(this.requests++).toString(36)}`;

  /**
   * Makes rollout and scoring calls throw RunStopped. An optimizer step that has begun is finished if the server
   * answers. If the server does not answer, this step throws RunStopped too, and `rollBack` cannot undo it.
   */
  interrupt(): void {
    this.units.stop();
    this.interrupted.abort();
    this.connection.interrupt();
  }

  /** Unloads the models to free the server's memory. Gives up if the server does not answer in time. */
  async stop(): Promise<void> {
    const unload = async (): Promise<void> => {
      const critic = this.loadedModels?.critic?.model; // last, because SkyRL then ends all models
      for (const model of this.created) if (model !== critic) await model.unload();
      await critic?.unload();
      await Promise.all(this.onDisk.splice(0).map(session => this.disk.removeVersion(session)));
    };
    await Promise.race([unload().catch(() => undefined), sleep(unloadMs, undefined, { ref: false })]);
    await this.connection.close();
  }

  /** Returns the result of a call. Throws RunStopped as soon as the run is stopped. */
  private async stoppable<T>(call: Promise<T>): Promise<T> {
    const { signal } = this.interrupted;
    let end = (): void => undefined;
    const stopped = new Promise<never>((_, reject) => {
      end = () => reject(new RunStopped());
      signal.addEventListener('abort', end, { once: true });
    });
    try {
      this.units.check();
      return await Promise.race([call, stopped]);
    } finally {
      call.catch(() => undefined);
      signal.removeEventListener('abort', end);
    }
  }

  private checkIds(sequences: readonly ArrayLike<number>[]): void {
    checkIds(sequences, this.settings.vocabSize, this.models.modelFolder);
  }

  /** The properties of the server that were measured when the run connected. */
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

/**
 * Returns the sampling options in the format of the API. Options that the API lacks, such as min_p, are rejected when
 * the configuration is checked.
 */
function samplingParams(sampling: SamplingOptions, length: number, seed: number): object {
  const { temperature, top_p, top_k, do_sample, max_new_tokens, max_model_len, stop_token_ids } = sampling;
  return {
    max_tokens: Math.max(1, Math.min(max_new_tokens, max_model_len - length)),
    seed: seed & seedMask,
    temperature: do_sample ? temperature : 0,
    top_p,
    top_k: top_k > 0 ? top_k : -1,
    stop: stop_token_ids,
  };
}
