// An engine whose model is on a server that speaks the Tinker REST API. The loop, the losses and the environments run
// here; the server samples, scores and trains. Losses are computed here and sent as a surrogate (surrogate.ts).
// Invariants: rollouts use only the newest published version, and nothing is sampled between a gradient and the next
// publication (on some servers a published version is the model in training); ids are checked before they are sent; a
// request that changes weights is sent once. Cannot do: see `refused` in tinker-limits.ts.
import pMap from 'p-map';
import { UserError } from '../../common/user-error';
import { weightedPolicyLoss, weightedPolicyLossGradient, type PolicySequence } from '../../algorithms/policy-loss';
import type { NamedTensor, ServerState, WhichPolicy } from '../../engine/engine';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../engine/generation-calls';
import type { LoadOptions, LoadedModel } from '../../engine/load-options';
import type { OptimizerOptions, PolicyLossOptions, UpdateMetrics } from '../../engine/loss-options';
import type { RemoteEngine } from '../../engine/remote-engine';
import { RunStopped } from '../../engine/run-stopped';
import type { PassBudget, TrainingSample, WeightedSample } from '../../engine/training-samples';
import { StoppableUnits, type WorkUnits } from '../../engine/work-units';
import { checkIds } from '../tokenizer/vocabulary';
import { adapterTensors } from './adapter-archive';
import { probeServer, unloadModel, type ServerFacts } from './server-probe';
import { surrogateData } from './surrogate';
import { TinkerConnection, type ConnectionOptions } from './tinker-connection';
import { TinkerRows } from './tinker-rows';
import {
  capabilitiesSchema,
  createdSchema,
  datumOf,
  forwardSchema,
  loadedSchema,
  modelInput,
  optimizedSchema,
  publishedSchema,
  sampledSchema,
  savedSchema,
  sessionSchema,
} from './tinker-wire';

export interface TinkerSettings extends Omit<ConnectionOptions, 'signal' | 'onOutage'> {
  /** The server's name of the base model; null if it offers only one. */
  baseModel: string | null;
  /** Size of the local tokenizer's vocabulary and maximum sequence length, from the model folder. */
  vocabSize: number;
  maxPositions: number;
  /** Decodes ids, for stop strings. */
  decode(ids: readonly number[]): string;
  /** Reports the reason of an outage when it begins, and null when it ends. */
  onOutage(reason: string | null): void;
}

/** A sample without the numbers of its loss. */
type Masked = Pick<TrainingSample, 'ids' | 'mask'>;

/** Maximum tokens of one request; larger batches are sent in several. */
const requestTokens = 2 ** 17;
/** Maximum scoring requests in flight. */
const scoringRequests = 4;
/** Maximum bytes of an adapter's archive. */
const archiveBytes = 2 ** 32;
/** Seeds must fit into 31 bits. */
const seedMask = 0x7fffffff;
/** LoRA's alpha of SkyRL's JAX backend, used if a server does not report its own. */
const usualAlpha = 32;

export class TinkerEngine implements RemoteEngine<ServerState> {
  onTokens: (sampled: number) => void = () => undefined;
  onUnits: (done: number, of: number) => void = () => undefined;

  private readonly connection: TinkerConnection;
  private readonly closed = new AbortController();
  private readonly rows: TinkerRows;
  private readonly units = new StoppableUnits((done, of) => this.onUnits(done, of));
  private readonly interrupted = new AbortController();
  private session = '';
  private models = 0;
  private requests = 0;
  private base = '';
  private rank = 0;
  private actor = '';
  private reference: string | null = null;
  private facts!: ServerFacts;
  /** Number of optimizer steps since loading; identifies the actor's weights. */
  private version = 0;
  /** Optimizer steps since `remember`. */
  private steps = 0;
  private published: { version: number; session: string } | null = null;
  /** Log-probs that were read, by the sample's ids; valid for one version of the weights. */
  private readonly known = new WeakMap<Int32Array, { version: number; logprobs: Float32Array }>();
  private watched: { row: string; onTokens: (ids: number[], logprobs: number[]) => void } | null = null;
  /** Tokens sampled by the running calls of `generate`, and their number. */
  private sampled = { tokens: 0, calls: 0 };

  constructor(private readonly settings: TinkerSettings) {
    this.rows = new TinkerRows(settings.decode);
    this.connection = new TinkerConnection({ ...settings, signal: this.closed.signal });
  }

  async load({ lora, seed, critic, modelFolder }: LoadOptions): Promise<LoadedModel> {
    if (!lora) throw refusal('lora.rank', 0, 'set lora.rank above 0: the server trains adapters');
    if (critic) throw refusal('algorithm.adv_estimator', 'gae', 'choose an estimator without a critic, such as grpo');
    const { url, vocabSize, maxPositions } = this.settings;
    const offered = (await this.connection.get('get_server_capabilities', capabilitiesSchema)).supported_models.map(
      ({ model_name }) => model_name,
    );
    this.base = chosenModel(this.settings.baseModel, offered, url);
    this.modelFolder = modelFolder;
    this.rank = lora.rank;
    const start = { tags: ['ragen'], user_metadata: null, sdk_version: sdkVersion, type: 'create_session' };
    this.session = (await this.connection.post('create_session', start, sessionSchema)).session_id;
    this.connection.keepAlive(this.session);
    const scratch = await this.createModel(seed);
    this.facts = await probeServer(this.connection, scratch.id, url);
    await unloadModel(this.connection, scratch.id);
    const { id, alpha } = await this.createModel(seed);
    this.actor = id;
    const { samples, tokens } = this.facts.reduction;
    return {
      parameters: 0,
      trained: 0,
      maxPositions,
      vocabSize,
      provider: 'tinker',
      deviceCheck: `${url} (${this.base}), whose losses are a ${samples} over samples and a ${tokens} over tokens`,
      lora: { rank: lora.rank, alpha, dropout: 0, targets: 'all-linear' },
    };
  }

  private modelFolder = '';

  private async createModel(seed: number): Promise<{ id: string; alpha: number }> {
    const { result, modelId } = await this.connection.later(
      'create_model',
      {
        session_id: this.session,
        model_seq_id: this.models++,
        base_model: this.base,
        lora_config: {
          rank: this.rank,
          seed: seed & seedMask,
          train_unembed: false,
          train_attn: true,
          train_mlp: true,
        },
        type: 'create_model',
      },
      createdSchema,
    );
    const id = modelId ?? result.model_id;
    if (id === undefined) throw new UserError(`engine: ${this.settings.url} created a model without an id`);
    return { id, alpha: result.lora_config?.alpha ?? usualAlpha };
  }

  async generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]> {
    this.units.check();
    this.checkIds(rows.map(({ append }) => append));
    const prompts = rows.map(row => this.rows.append(row));
    const sampler = await this.publish();
    this.sampled.calls++;
    try {
      return await this.stoppable(
        pMap(rows, async ({ row, seed }, i) => {
          this.units.check();
          const { result } = await this.connection.later(
            'asample',
            {
              ...sampler,
              seq_id: this.requests++,
              num_samples: 1,
              prompt: modelInput(prompts[i]),
              sampling_params: samplingParams(sampling, prompts[i].length, seed),
              type: 'sample',
            },
            sampledSchema,
          );
          const generated = this.rows.accept(row, result.sequences, sampling);
          this.sampled.tokens += generated.ids.length;
          this.onTokens(this.sampled.tokens);
          if (this.watched?.row === row) this.watched.onTokens(generated.ids, generated.logprobs);
          return generated;
        }),
      );
    } finally {
      if (--this.sampled.calls === 0) this.sampled.tokens = 0;
    }
  }

  /** Publishes the actor's weights for sampling, unless the newest version is. */
  private async publish(): Promise<{ sampling_session_id: string }> {
    if (this.published?.version !== this.version) {
      const { result } = await this.connection.later(
        'save_weights_for_sampler',
        {
          model_id: this.actor,
          sampling_session_seq_id: this.version,
          seq_id: this.requests++,
          type: 'save_weights_for_sampler',
        },
        publishedSchema,
      );
      this.published = { version: this.version, session: result.sampling_session_id };
    }
    return { sampling_session_id: this.published.session };
  }

  async release(rows: string[]): Promise<void> {
    this.rows.release(rows);
  }

  watch(row: string | null, onTokens: (ids: number[], logprobs: number[]) => void = () => undefined): void {
    this.watched = row === null ? null : { row, onTokens };
  }

  async score(which: WhichPolicy, samples: Masked[]): Promise<{ logprobs: Float32Array[] }> {
    const model = which === 'actor' ? this.actor : await this.referenceModel();
    const logprobs = await this.stoppable(this.forward(model, samples, this.units));
    if (which === 'actor')
      samples.forEach(({ ids }, i) => this.known.set(ids, { version: this.version, logprobs: logprobs[i] }));
    return { logprobs };
  }

  /** A model that is never trained, whose new adapter changes nothing: the base. */
  private async referenceModel(): Promise<string> {
    this.reference ??= (await this.createModel(0)).id;
    return this.reference;
  }

  /** Returns the log-probs at the masked tokens; 0 where mask = 0. */
  private async forward(model_id: string, samples: readonly Masked[], units: WorkUnits): Promise<Float32Array[]> {
    this.checkIds(samples.map(({ ids }) => ids));
    const found = samples.map(({ ids }) => new Float32Array(ids.length));
    const masked = [...samples.keys()].filter(i => samples[i].mask.includes(1));
    let done = 0;
    const parts = inRequests(masked, i => samples[i].ids.length);
    await pMap(
      parts,
      async part => {
        units.next(done, parts.length);
        const data = part.map(i => {
          const { ids, mask } = samples[i];
          const none = new Float32Array(ids.length);
          return datumOf(ids, mask, none, none);
        });
        const { result } = await this.connection.later(
          'forward',
          { model_id, forward_input: { data, loss_fn: 'cross_entropy' }, seq_id: this.requests++ },
          forwardSchema,
        );
        part.forEach((i, k) => found[i].set(readLogprobs(result.loss_fn_outputs.at(k), samples[i], this.settings.url)));
        done++;
      },
      { concurrency: scoringRequests },
    );
    return found;
  }

  async inspect(): Promise<never> {
    throw new UserError('engine: a Tinker server returns no complete distributions: inspect with the local engine');
  }

  async crossScore(prompts: Int32Array[], texts: Int32Array[]): Promise<Float64Array[]> {
    const pairs = texts.flatMap(text =>
      prompts.map((prompt): Masked => {
        const ids = new Int32Array(prompt.length + text.length);
        ids.set(prompt);
        ids.set(text, prompt.length);
        return { ids, mask: new Uint8Array(ids.length).fill(1, prompt.length) };
      }),
    );
    const logprobs = await this.stoppable(this.forward(this.actor, pairs, this.units));
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
    const sequences = samples.map((sample, i): PolicySequence => {
      const { mask, old_logprobs, ref_logprobs, advantages } = sample;
      return {
        logprobs: logprobs[i],
        old_logprobs,
        advantages,
        mask,
        // Where no distribution is known, a token's −log π estimates its entropy without bias.
        entropies: Float32Array.from(logprobs[i], value => -value),
        ...(loss.use_kl_loss && { ref_logprobs }),
      };
    });
    const weights = samples.map(sample => sample.weights);
    const gradients = weightedPolicyLossGradient(sequences, weights, loss);
    addEntropyBonus(gradients, sequences, weights, loss.entropy_coeff);
    const { pg_loss, entropy, kl_loss, pg_clipfrac, pg_clipfrac_lower, ppo_kl } = weightedPolicyLoss(
      sequences,
      weights,
      loss,
    );
    const step = await this.optimize(samples, logprobs, gradients, optimizer);
    return {
      pg_loss,
      entropy_loss: entropy,
      ...(loss.use_kl_loss && { kl_loss, kl_coef: loss.kl_loss_coef }),
      entropy_estimate: meanAtMask(sequences),
      pg_clipfrac,
      pg_clipfrac_lower,
      ppo_kl,
      ...step,
    };
  }

  async trainSupervised(samples: Masked[], _budget: PassBudget, optimizer: OptimizerOptions): Promise<number> {
    const logprobs = await this.currentLogprobs(samples);
    const total = samples.reduce((sum, { mask }) => sum + mask.reduce((count, bit) => count + bit, 0), 0);
    const gradients = samples.map(({ mask }) => Float64Array.from(mask, bit => -bit / total));
    await this.optimize(samples, logprobs, gradients, optimizer);
    return -logprobs.flatMap(values => [...values]).reduce((sum, value) => sum + value, 0) / total;
  }

  /** Log-probs under the current weights: those read before, unless the weights have changed since. */
  private async currentLogprobs(samples: readonly Masked[]): Promise<Float32Array[]> {
    const read = samples.map(({ ids }) => this.known.get(ids));
    if (read.every(entry => entry?.version === this.version)) return read.map(entry => entry!.logprobs);
    const units = this.steps > 0 ? this.units.unstoppable : this.units;
    const scored = this.forward(this.actor, samples, units);
    return this.steps > 0 ? scored : this.stoppable(scored);
  }

  /** Sends the gradient of a mini-batch and makes one optimizer step; not interrupted by a stop. */
  private async optimize(
    samples: readonly Masked[],
    logprobs: readonly Float32Array[],
    gradients: readonly Float64Array[],
    { lr, betas, eps, weight_decay, grad_clip }: OptimizerOptions,
  ): Promise<{ grad_norm: number; lr: number; skipped: number }> {
    const sent = [...samples.keys()].filter(i => samples[i].mask.includes(1));
    const at = <T>(values: readonly T[]): T[] => sent.map(i => values[i]);
    const data = surrogateData(at(samples), at(logprobs), at(gradients), this.facts.reduction);
    if (this.steps === 0) this.units.check();
    this.steps++;
    const parts = inRequests(data, ({ model_input }) => model_input.chunks[0].tokens.length);
    for (const [k, part] of parts.entries()) {
      this.units.unstoppable.next(k, parts.length);
      await this.connection.later(
        'forward_backward',
        {
          model_id: this.actor,
          forward_backward_input: { data: part, loss_fn: 'importance_sampling' },
          seq_id: this.requests++,
        },
        forwardSchema,
        'once',
      );
    }
    const [beta1, beta2] = betas;
    const { result } = await this.connection.later(
      'optim_step',
      {
        model_id: this.actor,
        adam_params: { learning_rate: lr, beta1, beta2, eps, weight_decay, grad_clip_norm: grad_clip },
        seq_id: this.requests++,
        type: 'optim_step',
      },
      optimizedSchema,
      'once',
    );
    this.version++;
    return { grad_norm: result.metrics?.[this.facts.gradientNorm] ?? NaN, lr, skipped: 0 };
  }

  async analyseGradients(): Promise<never> {
    throw new UserError('engine: a Tinker server returns no gradients: set trainer.gradient_analysis_mode=false');
  }

  async values(): Promise<never> {
    throw new UserError('engine: this server has no critic: choose an estimator without one, such as grpo');
  }

  updateCritic(): Promise<never> {
    return this.values();
  }

  restoreCritic(): Promise<never> {
    return this.values();
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
    const { result } = await this.connection.later(
      'save_weights',
      { model_id: this.actor, path: this.checkpointName(), type: 'save_weights' },
      savedSchema,
    );
    return { server: { path: result.path, url: this.settings.url, base: this.base, updates: this.version } };
  }

  async restore({ server }: ServerState): Promise<void> {
    const body = { model_id: this.actor, path: server.path, type: 'load_weights' };
    await this.connection.later('load_weights', body, loadedSchema);
    this.version = server.updates;
  }

  async parameters(): Promise<NamedTensor[]> {
    const name = this.checkpointName();
    const body = { model_id: this.actor, path: name, type: 'save_weights_for_sampler' };
    await this.connection.later('save_weights_for_sampler', body, savedSchema);
    const archive = `training_runs/${this.actor}/checkpoints/${name}/archive`;
    return adapterTensors(await this.connection.download(archive, archiveBytes), this.settings.url);
  }

  private readonly checkpointName = (): string => `v${this.version}-${(this.requests++).toString(36)}`;

  /** Makes rollout and scoring calls throw RunStopped; a step whose gradient was sent is finished. */
  interrupt(): void {
    this.units.stop();
    this.interrupted.abort();
  }

  async stop(): Promise<void> {
    this.closed.abort();
    await this.connection.close();
  }

  /** The result of a call, or RunStopped as soon as the run is stopped. */
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
    checkIds(sequences, this.settings.vocabSize, this.modelFolder);
  }
}

/** Version of the SDK whose protocol the requests follow. */
const sdkVersion = '0.24.1';

const refusal = (key: string, value: unknown, remedy: string): UserError =>
  new UserError(`config: ${key} is ${String(value)}, which workbench.engine=tinker does not support: ${remedy}`);

/** The base model to use. @throws UserError if it is not offered, or none is chosen among several */
function chosenModel(chosen: string | null, offered: readonly string[], url: string): string {
  if (chosen === null && offered.length === 1) return offered[0];
  if (chosen !== null && (offered.length === 0 || offered.includes(chosen))) return chosen;
  const models = offered.length > 0 ? offered.join(', ') : 'no model by name';
  throw new UserError(
    `config: workbench.engine_model is ${chosen}, but ${url} offers ${models}: set it to one of the server's models`,
  );
}

/** Sampling options in the API's form; cuts that it lacks are refused when the configuration is checked. */
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

/** Splits a batch into requests of at most `requestTokens` tokens, in order. */
function inRequests<T>(items: readonly T[], tokensOf: (item: T) => number): T[][] {
  const parts: T[][] = [];
  let tokens = Infinity;
  for (const item of items) {
    const length = tokensOf(item);
    if (tokens + length > requestTokens) {
      parts.push([]);
      tokens = 0;
    }
    parts.at(-1)!.push(item);
    tokens += length;
  }
  return parts;
}

/** The log-probs of a sample from a server's output, whose first entry belongs to token 1; 0 where mask = 0. */
function readLogprobs(
  output: { logprobs: { data: number[] } } | undefined,
  { ids, mask }: Masked,
  url: string,
): Float32Array {
  const data = output?.logprobs.data;
  if (data?.length !== ids.length - 1)
    throw new UserError(
      `engine: ${url} returned ${data?.length ?? 'no'} log-probs for ${ids.length - 1} targets: use a server of the Tinker API`,
    );
  return Float32Array.from(mask, (bit, token) => (bit ? data[token - 1] : 0));
}

/**
 * Adds the gradient of −coefficient · Σ weight · entropy as a score-function term, in place: with respect to log π of a
 * sampled token it is coefficient · weight · (log π − b), where b is the mean log-prob of the mini-batch's other tokens.
 */
function addEntropyBonus(
  gradients: readonly Float64Array[],
  sequences: readonly PolicySequence[],
  weights: readonly Float32Array[],
  coefficient: number,
): void {
  if (coefficient === 0) return;
  let [sum, count] = [0, 0];
  const each = (visit: (row: number, token: number) => void): void =>
    sequences.forEach(({ mask }, row) => mask.forEach((bit, token) => bit && visit(row, token)));
  each((row, token) => {
    sum += sequences[row].logprobs[token];
    count++;
  });
  each((row, token) => {
    const own = sequences[row].logprobs[token];
    const others = count > 1 ? (sum - own) / (count - 1) : 0;
    gradients[row][token] += coefficient * weights[row][token] * (own - others);
  });
}

/** Mean of the sequences' entropies over masked tokens. */
function meanAtMask(sequences: readonly PolicySequence[]): number {
  let [sum, count] = [0, 0];
  for (const { mask, entropies } of sequences)
    mask.forEach((bit, token) => {
      if (!bit) return;
      sum += entropies![token];
      count++;
    });
  return sum / Math.max(count, 1);
}
