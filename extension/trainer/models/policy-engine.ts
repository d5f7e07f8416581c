// The engine behind the training loop: actor, reference and critic with their sessions, on one provider. It lives in a worker
// thread (engine/worker.ts), because onnxruntime's run() blocks the thread that calls it.
import { createHash } from 'node:crypto';
import type {
  CriticLossOptions,
  CriticSample,
  Engine,
  EngineState,
  GeneratedRow,
  GenerationRow,
  LoadOptions,
  LoadedModel,
  NamedTensor,
  NetworkState,
  OptimizerOptions,
  PolicyLossOptions,
  SamplingOptions,
  TrainingSample,
  UpdateMetrics,
  WeightedSample,
  WhichPolicy,
} from '../engine/engine';
import { RandomStream } from '../engine/random-stream';
import { Critic, criticWeights } from './critic';
import { Generator } from './generator';
import { readDecoder } from './model-folder';
import { Policy } from './policy';
import { Weights } from './weights';

export class PolicyEngine implements Engine {
  private loaded?: { actor: Policy; generator: Generator; reference?: Policy; critic?: Critic };

  /** `onTokens` hears, during a generation, how many tokens it has sampled. */
  constructor(private readonly onTokens?: (sampled: number) => void) {}

  async load({ modelFolder, threads, reference, critic, seed }: LoadOptions): Promise<LoadedModel> {
    const { config, weights } = await readDecoder(modelFolder);
    const session = { threads };
    this.loaded = {
      actor: new Policy(config, weights, session),
      generator: new Generator(config, weights, session),
      reference: reference ? new Policy(config, new Weights(weights.specs, weights.flat.slice()), session) : undefined,
      critic: critic ? new Critic(config, criticWeights(config, weights, new RandomStream(seed)), session) : undefined,
    };
    return {
      parameters: weights.count,
      sha256: createHash('sha256').update(new Uint8Array(weights.flat.buffer)).digest('hex'),
      maxPositions: config.maxPositions,
    };
  }

  generate(rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]> {
    return this.models.generator.generate(rows, sampling, this.onTokens);
  }

  async release(rows: string[]): Promise<void> {
    this.models.generator.release(rows);
  }

  async score(which: WhichPolicy, microBatches: Pick<TrainingSample, 'ids' | 'mask'>[][], temperature: number) {
    const policy = which === 'actor' ? this.models.actor : this.models.reference;
    if (!policy) throw new Error('engine: no reference policy was loaded');
    const logprobs: Float32Array[] = [];
    const entropies: Float32Array[] = [];
    for (const samples of microBatches) {
      const scores = await policy.score(samples, temperature);
      logprobs.push(...scores.logprobs);
      entropies.push(...scores.entropies);
    }
    return { logprobs, entropies };
  }

  update(microBatches: WeightedSample[][], loss: PolicyLossOptions, optimizer: OptimizerOptions): Promise<UpdateMetrics> {
    return this.models.actor.update(microBatches, loss, optimizer);
  }

  async values(microBatches: Pick<TrainingSample, 'ids' | 'mask'>[][]): Promise<Float32Array[]> {
    const values: Float32Array[] = [];
    for (const samples of microBatches) values.push(...(await this.critic.values(samples)));
    return values;
  }

  updateCritic(microBatches: CriticSample[][], loss: CriticLossOptions, optimizer: OptimizerOptions): Promise<UpdateMetrics> {
    return this.critic.update(microBatches, loss, optimizer);
  }

  imitate(samples: Pick<TrainingSample, 'ids' | 'mask'>[], optimizer: OptimizerOptions): Promise<number> {
    return this.models.actor.imitate(samples, optimizer);
  }

  async state(): Promise<EngineState> {
    const { actor, critic } = this.models;
    return { actor: await networkState(actor), ...(critic && { critic: await networkState(critic) }) };
  }

  async restore(state: EngineState): Promise<void> {
    const { actor, critic } = this.models;
    await restoreNetwork(actor, state.actor);
    if (critic && state.critic) await restoreNetwork(critic, state.critic);
  }

  async parameters(): Promise<NamedTensor[]> {
    const { weights } = this.models.actor;
    return weights.specs.map(({ name, dims }) => ({ name, dims, data: weights.view(name).slice() }));
  }

  private get models(): NonNullable<PolicyEngine['loaded']> {
    if (!this.loaded) throw new Error('engine: no model is loaded');
    return this.loaded;
  }

  private get critic(): Critic {
    const { critic } = this.models;
    if (!critic) throw new Error('engine: no critic was loaded');
    return critic;
  }
}

async function networkState(network: Policy | Critic): Promise<NetworkState> {
  const { m, v, step } = (await network.adamw()).state;
  return { weights: network.weights.flat.slice(), m: m.slice(), v: v.slice(), step };
}

async function restoreNetwork(network: Policy | Critic, saved: NetworkState): Promise<void> {
  const { state } = await network.adamw();
  for (const [target, source] of [
    [network.weights.flat, saved.weights],
    [state.m, saved.m],
    [state.v, saved.v],
  ]) {
    if (target.length !== source.length)
      throw new Error(`engine: the checkpoint holds ${source.length} numbers where the model has ${target.length}`);
    target.set(source);
  }
  state.step = saved.step;
}
