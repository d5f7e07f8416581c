// The engine behind the training loop: actor, reference and critic with their sessions, on one provider. It lives in a worker
// thread (engine/worker.ts), because onnxruntime's run() blocks the thread that calls it.
import type {
  CriticLossOptions,
  CriticSample,
  Engine,
  EngineState,
  GeneratedRow,
  GenerationRow,
  LoadOptions,
  LoadedModel,
  MomentState,
  NamedTensor,
  OptimizerOptions,
  PolicyLossOptions,
  SamplingOptions,
  TrainingSample,
  UpdateMetrics,
  WeightedSample,
  WhichPolicy,
} from '../engine/engine';
import { UserError } from '../../protocol/user-error';
import { RandomStream } from '../engine/random-stream';
import { Critic, criticWeights } from './critic';
import { Generator } from './generator';
import { readDecoder } from './model-folder';
import { Policy } from './policy';

export class PolicyEngine implements Engine {
  private loaded?: { actor: Policy; generator: Generator; reference?: Policy; critic?: Critic };

  /** `onTokens` hears, during a generation, how many tokens it has sampled. */
  constructor(private readonly onTokens?: (sampled: number) => void) {}

  async load({ modelFolder, referenceFolder, threads, critic, seed }: LoadOptions): Promise<LoadedModel> {
    const { config, weights } = await readDecoder(modelFolder);
    const session = { threads };
    const reference = referenceFolder === null ? undefined : (await readDecoder(referenceFolder)).weights;
    if (reference && reference.flat.length !== weights.flat.length)
      throw new UserError(
        `${referenceFolder}: the reference policy is of another shape than the policy: use weights of one model`,
      );
    this.loaded = {
      actor: new Policy(config, weights, session),
      generator: new Generator(config, weights, session),
      reference: reference && new Policy(config, reference, session),
      critic: critic ? new Critic(config, criticWeights(config, weights, new RandomStream(seed)), session) : undefined,
    };
    return { parameters: weights.count, maxPositions: config.maxPositions };
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

  update(
    microBatches: WeightedSample[][],
    loss: PolicyLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    return this.models.actor.update(microBatches, loss, optimizer);
  }

  async values(microBatches: Pick<TrainingSample, 'ids' | 'mask'>[][]): Promise<Float32Array[]> {
    const values: Float32Array[] = [];
    for (const samples of microBatches) values.push(...(await this.critic.values(samples)));
    return values;
  }

  updateCritic(
    microBatches: CriticSample[][],
    loss: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    return this.critic.update(microBatches, loss, optimizer);
  }

  imitate(samples: Pick<TrainingSample, 'ids' | 'mask'>[], optimizer: OptimizerOptions): Promise<number> {
    return this.models.actor.imitate(samples, optimizer);
  }

  async state(): Promise<EngineState> {
    const { actor, critic } = this.models;
    return {
      actor: await momentsOf(actor),
      ...(critic && { critic: { ...(await momentsOf(critic)), weights: critic.weights.flat.slice() } }),
    };
  }

  async restore(state: EngineState): Promise<void> {
    const { actor, critic } = this.models;
    await restoreMoments(actor, state.actor);
    if (!critic || !state.critic) return;
    copyInto(critic.weights.flat, state.critic.weights);
    await restoreMoments(critic, state.critic);
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

async function momentsOf(network: Policy | Critic): Promise<MomentState> {
  const { m, v, step } = (await network.adamw()).state;
  return { m: m.slice(), v: v.slice(), step };
}

async function restoreMoments(network: Policy | Critic, saved: MomentState): Promise<void> {
  const { state } = await network.adamw();
  copyInto(state.m, saved.m);
  copyInto(state.v, saved.v);
  state.step = saved.step;
}

function copyInto(target: Float32Array, source: Float32Array): void {
  if (target.length !== source.length)
    throw new UserError(
      `checkpoint: it holds ${source.length} numbers where the model has ${target.length}: resume with the model it was made with`,
    );
  target.set(source);
}
