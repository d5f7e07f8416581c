// Implementation of Engine: actor, reference policy and critic with their sessions, on one provider. Runs in a worker
// thread (engine-worker.ts), because onnxruntime's run() blocks its thread. Trains all weights, or adapters over a base
// that stays in its files. Actor, reference policy (the base without adapters) and critic share this base.
import type { Scores } from './policy';
import type {
  CriticLossOptions,
  GradientAnalysis,
  OptimizerOptions,
  PolicyLossOptions,
  UpdateMetrics,
} from '../engine/loss-options';
import type {
  BareSample,
  CriticSample,
  InspectedSample,
  PassBudget,
  PictureAttributions,
  ShownFeatures,
  ShownPicture,
  WeightedSample,
} from '../engine/training-samples';
import type { Engine, LocalState, NamedTensor, WhichPolicy } from '../engine/engine';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../engine/generation-calls';
import type { LoadOptions, LoadedModel } from '../engine/load-options';
import { UserError } from '../common/user-error';
import { autoCandidates, chooseProvider, providerStates, resolveDevice } from '../engine/session/devices';
import { RandomStream } from '../engine/sampling/random-stream';
import { StoppableUnits } from '../engine/work-units';
import type { WorkUnits } from '../engine/work-units';
import type { Provider, SessionOptions } from '../engine/session/session';
import type { Critic } from './decoder/critic';
import { CrossScoring } from './cross-scoring';
import { EngineUndo } from './engine-undo';
import type { RowWatch } from './generation/decoding';
import { featureGradient } from './feature-gradient';
import { analyseGradients } from './gradient-analysis';
import { loadAdapted, loadFrozen, loadTrained } from './load-models';
import type { LoadedPolicies } from './load-models';
import { readEncoderConfig, readsPictures, readTokenizer } from './weights/model-folder';
import type { PictureUse } from './pictured-check';
import type { ImageFeatures } from './policy';
import type { OpenPictures } from './vision/open-pictures';
import { attributionMaps } from './vision/picture-attribution';
import type { PictureFeatures, Showing } from './vision/picture-features';
import { selfCheck, selfCheckApart } from './self-check';
import { checkIds } from './tokenizer/vocabulary';
import { Weights } from './weights/weights';

const loaderOf = ({ frozen, lora, adapterFolder }: LoadOptions) =>
  frozen ? loadFrozen : lora || adapterFolder !== null ? loadAdapted : loadTrained;

export class PolicyEngine implements Engine<LocalState> {
  private loaded?: LoadedPolicies;
  private session: SessionOptions = { threads: 0 };
  private modelFolder = '';
  /** Generation calls whose pictures are being encoded, so that the generator does not know them yet. */
  private readonly beginning = new Set<Promise<unknown>>();
  private crossScoring?: CrossScoring;

  private readonly units: StoppableUnits;
  /** Receives finished rows of running `generate` calls: rows whose last token has been sampled. */
  onRows?: (rows: readonly string[]) => void;

  /**
   * `onTokens` receives the number of tokens sampled so far during generation; `onUnits` receives the progress of all
   * other calls.
   */
  constructor(
    private readonly onTokens?: (sampled: number) => void,
    onUnits?: (done: number, of: number) => void,
    private readonly undo = new EngineUndo(),
  ) {
    this.units = new StoppableUnits(onUnits);
  }

  /**
   * Makes all calls for rollout, scoring and training throw RunStopped, both those in progress and later ones. Weights
   * and moments remain readable.
   */
  stop(): void {
    this.units.stop();
    this.loaded?.generator.stop();
  }

  async load(options: LoadOptions): Promise<LoadedModel> {
    const { device, deviceKey: asked = 'workbench.device', threads } = options;
    const states = await providerStates();
    chooseProvider(device, states, asked);
    const bytes = bytesAsked(options);
    if (device === 'webgpu' && bytes)
      throw new UserError(
        `${asked} is webgpu, which does not support ${bytes}=int8: set ${asked}=cpu or ${bytes}=none`,
      );
    const candidates = autoCandidates(states).filter(other => other !== 'webgpu' || !bytes);
    const shown = pictureUse(options);
    const { provider, about } = await resolveDevice(device, asked, candidates, other =>
      device === 'auto' ? selfCheckApart(other, threads, { shown }) : checkedOnce(other, threads, shown),
    );
    if (options.precision === 'float16') {
      const { passed, about } = await selfCheck(provider, threads, { precision: 'float16', shown });
      if (!passed)
        throw new UserError(
          `workbench.precision is float16, but the check of float16 on ${provider} failed (${about}): set workbench.precision=float32`,
        );
    }
    this.session = { threads, provider };
    this.crossScoring = undefined;
    const decode = lazyDecoder(options.modelFolder);
    this.loaded = await loaderOf(options)(options, this.session, decode);
    this.undo.forget();
    this.modelFolder = options.modelFolder;
    return { ...this.loaded.model, provider, deviceCheck: about };
  }

  async generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]> {
    this.units.check();
    this.checkIds(rows.map(({ append }) => append));
    const begin = (given: GenerationRow[]): Promise<GeneratedRow[]> =>
      this.models.generator.generate(given, sampling, this.onTokens, this.onRows);
    if (!rows.some(({ shows = [] }) => shows.length > 0)) return begin(rows);
    const beginning = this.showing(rows).then(given => ({ answer: begin(given) }));
    this.beginning.add(beginning);
    try {
      return await (
        await beginning
      ).answer;
    } finally {
      this.beginning.delete(beginning);
    }
  }

  /** Reports the tokens of one row while they are sampled. With null, stops the reports. */
  watch(watched: RowWatch | null): void {
    this.loaded?.generator.watch(watched);
  }

  /** Frees the cached data of rows after all calls that were made before and use them. */
  async release(rows: string[]): Promise<void> {
    await Promise.allSettled(this.beginning);
    await this.models.generator.release(rows);
  }

  async score(
    which: WhichPolicy,
    samples: BareSample[],
    budget: PassBudget,
    temperature: number,
    withSquares = false,
  ): Promise<Scores> {
    const policy = which === 'actor' ? this.models.actor : this.models.reference;
    if (!policy) throw new Error('engine: no reference policy was loaded');
    this.checkIds(samples.map(({ ids }) => ids));
    const { samples: shown, images } = await this.shown(samples, which === 'actor' ? 'pictures' : 'frozenPictures');
    return policy.score(shown, budget, temperature, this.units, { withSquares, images });
  }

  async inspect(
    samples: BareSample[],
    budget: PassBudget,
    temperature: number,
    top: number,
  ): Promise<InspectedSample[]> {
    this.checkIds(samples.map(({ ids }) => ids));
    const { samples: shown, images } = await this.shown(samples);
    return this.models.actor.inspect(shown, budget, temperature, top, this.units, images);
  }

  async attributePictures(sample: BareSample, budget: PassBudget, temperature: number): Promise<PictureAttributions> {
    this.checkIds([sample.ids]);
    const { shows = [] } = sample;
    const { pictures, values, layouts } = await this.pictures('pictures').ofShowings({ ...sample, shows });
    const shown = { ...sample, pictures };
    const { actor } = this.models;
    const { logprob, gradient } = await featureGradient(
      actor,
      this.session,
      shown,
      budget,
      temperature,
      values,
      this.units,
    );
    return { logprob, pictures: attributionMaps(layouts, values.data as Float32Array, gradient, values.dims[1]) };
  }

  async crossScore(
    prompts: Int32Array[],
    texts: Int32Array[],
    budget: PassBudget,
    temperature: number,
    shows?: (readonly ShownPicture[])[],
  ): Promise<Float64Array[]> {
    const { network, bank } = this.models.actor;
    this.checkIds([...prompts, ...texts]);
    this.crossScoring ??= new CrossScoring(network, bank, this.session);
    const { samples, images } = await this.shown(prompts.map((ids, i) => ({ ids, shows: shows?.[i] })));
    const pictures = images && { features: images.values, shown: samples.map(sample => sample.pictures) };
    return this.crossScoring.sums(prompts, texts, budget, temperature, this.units, pictures);
  }

  async update(
    samples: WeightedSample[],
    budget: PassBudget,
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<UpdateMetrics> {
    this.checkIds(samples.map(({ ids }) => ids));
    const { samples: shown, images } = await this.shown(samples);
    return this.models.actor.update(shown, budget, loss, optimizer, seed, this.updateUnits, images);
  }

  /** Work units of an update. A stop interrupts the update only if all optimizer steps made so far can be reverted. */
  private get updateUnits(): WorkUnits {
    return this.undo.isTooLate ? this.units.unstoppable : this.units;
  }

  async analyseGradients(
    buckets: WeightedSample[][][],
    budget: PassBudget,
    loss: PolicyLossOptions,
    seed: number,
  ): Promise<GradientAnalysis> {
    const { samples, images } = await this.shown(buckets.flat(2));
    let next = 0;
    const shown = buckets.map(batches => batches.map(batch => batch.map(() => samples[next++])));
    return analyseGradients(this.models.actor, shown, budget, loss, seed, undefined, this.units, images);
  }

  async values(samples: BareSample[], budget: PassBudget): Promise<Float32Array[]> {
    const { samples: shown, images } = await this.shown(samples, 'frozenPictures');
    return this.critic.values(shown, budget, this.units, images);
  }

  async updateCritic(
    samples: CriticSample[],
    budget: PassBudget,
    loss: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    const { samples: shown, images } = await this.shown(samples, 'frozenPictures');
    return this.critic.update(shown, budget, loss, optimizer, this.updateUnits, images);
  }

  async trainSupervised(
    samples: BareSample[],
    budget: PassBudget,
    optimizer: OptimizerOptions,
    seed: number,
  ): Promise<number> {
    this.checkIds(samples.map(({ ids }) => ids));
    const { samples: shown, images } = await this.shown(samples);
    return this.models.actor.trainSupervised(shown, budget, optimizer, seed, this.units, images);
  }

  /** Runs a pass with as many rows of `length` tokens as the budget allows, without shared prefixes, and encodes a picture. */
  async tryLongest(
    { maxTokens, maxRows }: PassBudget,
    length: number,
    picture?: { width: number; height: number },
  ): Promise<{ tokens: number; imageTokens: number; seconds: number }> {
    const { actor } = this.models;
    const rows = Math.max(1, Math.min(maxRows, Math.floor(maxTokens / length)));
    const { vocabSize } = actor.network.config;
    const stream = new RandomStream(0);
    const samples = Array.from({ length: rows }, () => ({
      ids: Int32Array.from({ length }, () => stream.integer(vocabSize)),
      mask: new Uint8Array(length).fill(1, 1),
    }));
    const start = performance.now();
    await actor.tryGradient(samples, { maxTokens: Math.max(maxTokens, length), maxRows }, this.units);
    const imageTokens = (picture && (await this.models.pictures?.tryEncoding(picture))) ?? 0;
    return { tokens: rows * length, imageTokens, seconds: (performance.now() - start) / 1000 };
  }

  async remember(): Promise<void> {
    const { actor, critic } = this.models;
    await this.undo.remember(critic ? [actor.bank, critic.bank] : [actor.bank]);
  }

  async rollBack(): Promise<boolean> {
    return this.undo.rollBack();
  }

  async state(): Promise<LocalState> {
    const { actor, critic } = this.models;
    return {
      actor: await actor.bank.moments(),
      ...(critic && {
        critic: { ...(await critic.bank.moments()), weights: (await critic.bank.read()).flat.slice() },
      }),
    };
  }

  async restore(state: LocalState): Promise<void> {
    const { actor, critic } = this.models;
    await actor.bank.restoreMoments(state.actor);
    if (!critic || !state.critic) return;
    await this.restoreCritic(state.critic.weights);
    await critic.bank.restoreMoments(state.critic);
  }

  async restoreCritic(weights: Float32Array): Promise<void> {
    const { bank } = this.critic;
    const { specs, flat } = await bank.read();
    if (flat.length !== weights.length)
      throw new UserError(
        `checkpoint: the saved critic has ${weights.length} parameters, but the model's critic has ${flat.length}: resume with the model from which the checkpoint was saved`,
      );
    await bank.write(new Weights(specs, weights));
  }

  async parameters(): Promise<NamedTensor[]> {
    const weights = await this.models.actor.bank.read();
    return weights.specs.map(({ name, dims }) => ({ name, dims, data: weights.view(name).slice() }));
  }

  /**
   * Returns the samples with what their tokens show, and the features of their pictures: as the policy sees them, or as
   * the reference policy and the critic see them.
   */
  private async shown<S extends Showing>(
    samples: readonly S[],
    as: keyof OpenPictures = 'pictures',
  ): Promise<{ samples: (S & { pictures?: ShownFeatures })[]; images?: ImageFeatures }> {
    if (samples.every(({ shows = [] }) => shows.length === 0)) return { samples: [...samples] };
    return this.pictures(as).ofSamples(samples);
  }

  /** Returns the rows with what their new ids show. */
  private async showing(rows: GenerationRow[]): Promise<GenerationRow[]> {
    const { generator } = this.models;
    const found = await this.pictures('pictures').ofRows(
      rows.map(({ append, shows }) => ({ ids: append, shows })),
      rows.map(({ row }) => generator.nextPosition(row)),
    );
    return rows.map((row, i) => ({ ...row, pictures: found[i] }));
  }

  private pictures(as: keyof OpenPictures): PictureFeatures {
    const { [as]: pictures } = this.models;
    if (pictures) return pictures;
    throw new UserError(
      `engine: the conversation shows pictures, which the model in ${this.modelFolder} does not read: use a vision-language model`,
    );
  }

  /**
   * Throws a UserError for an id without an embedding row. onnxruntime's error would contain only internal node names.
   */
  private checkIds(sequences: readonly ArrayLike<number>[]): void {
    checkIds(sequences, this.models.actor.network.config.vocabSize, this.modelFolder);
  }

  private get models(): LoadedPolicies {
    if (!this.loaded) throw new Error('engine: no model is loaded');
    return this.loaded;
  }

  private get critic(): Critic {
    const { critic } = this.models;
    if (!critic) throw new Error('engine: no critic was loaded');
    return critic;
  }
}

const checks = new Map<string, ReturnType<typeof selfCheck>>();

/** Returns the result of a provider's self-check, which runs only once per process for the same use of pictures. */
function checkedOnce(provider: Provider, threads: number, shown: PictureUse | undefined): ReturnType<typeof selfCheck> {
  const key = JSON.stringify([provider, shown]);
  let check = checks.get(key);
  if (!check) checks.set(key, (check = selfCheck(provider, threads, { shown })));
  return check;
}

/** Returns how the model shows pictures; undefined if it reads text only, or if none are shown. */
function pictureUse({
  modelFolder,
  adapterFolder,
  pictures,
  generates = true,
  trainsEncoder,
}: LoadOptions): PictureUse | undefined {
  if (!pictures || !readsPictures(modelFolder)) return undefined;
  return { encoder: readEncoderConfig(modelFolder)!.kind, generates, trained: trainsEncoder ?? adapterFolder !== null };
}

/**
 * Returns the configuration key that requests 8-bit data; null if no key does. WebGPU's kernels do not support 8-bit
 * data.
 */
function bytesAsked({ rolloutQuantization, baseQuantization, moments }: LoadOptions): string | null {
  if (rolloutQuantization === 'int8') return 'workbench.rollout_quantization';
  if (baseQuantization === 'int8') return 'workbench.base_quantization';
  if (moments?.actor === 'int8') return 'actor_rollout_ref.actor.optim.moments';
  return moments?.critic === 'int8' ? 'critic.optim.moments' : null;
}

/**
 * Returns a function that decodes ids to text. Reads the tokenizer on first use, because a model may lack a tokenizer.
 */
function lazyDecoder(folder: string): (ids: readonly number[]) => string {
  let tokenizer: ReturnType<typeof readTokenizer> | undefined;
  return ids => (tokenizer ??= readTokenizer(folder)).decode(ids, { special: true });
}
