// One model on a Tinker server, a policy or a critic: its log-probs or values, its optimizer steps, its published versions
// and its saved states. Batches
// are split into requests of a bounded size. Every request has a sequence number, which newer servers use to recognise
// repeated requests.
import pMap from 'p-map';
import { UserError } from '../../common/user-error';
import { WeightsUncertain } from '../../engine/weights-uncertain';
import type { NamedTensor } from '../../engine/engine';
import type { OptimizerOptions } from '../../engine/loss-options';
import type { TrainingSample } from '../../engine/training-samples';
import type { WorkUnits } from '../../engine/work-units';
import { adapterTensors } from './adapter-archive';
import type { AdapterParts } from './adapter-parts';
import type { TinkerConnection } from './tinker-connection';
import {
  accumulatedSchema,
  createdSchema,
  datumOf,
  forwardSchema,
  loadedSchema,
  optimizedSchema,
  publishedSchema,
  savedSchema,
  type Datum,
} from './tinker-wire';

/** A sample without the numbers of its loss. */
export type MaskedSample = Pick<TrainingSample, 'ids' | 'mask'>;

/** Facts for the creation of a model. */
export interface NewModel {
  session: string;
  /** Number of the model within the session. */
  number: number;
  base: string;
  rank: number;
  seed: number;
  parts: AdapterParts;
  /** `critic`: a model with values of tokens, which is an extension of SkyRL. */
  role?: 'policy' | 'critic';
}

/** What `forward` returns of a model, and the loss under which it is asked for. */
const read = { policy: ['logprobs', 'cross_entropy'], critic: ['values', 'ppo_critic'] } as const;
/** The losses whose gradients carry those computed here (surrogate.ts, value-surrogate.ts). */
const carriers = { policy: 'importance_sampling', critic: 'ppo_critic' };

/** Maximum tokens per request. */
export const requestTokens = 2 ** 17;
/** Maximum concurrent scoring requests. */
const scoringRequests = 4;
/** Maximum bytes of an adapter's archive. */
const archiveBytes = 2 ** 32;
/** Maximum seed: servers take 31 bits. */
export const seedMask = 0x7fffffff;
/** LoRA's alpha of SkyRL's JAX backend, used if a server does not report its own. */
const usualAlpha = 32;

export class ServerModel {
  /** Number of the next request. */
  private requests = 0;

  private constructor(
    private readonly connection: TinkerConnection,
    private readonly url: string,
    readonly id: string,
    /** LoRA's alpha. */
    readonly alpha: number,
    private readonly role: 'policy' | 'critic',
  ) {}

  /** Creates a model with a new adapter, which changes nothing until it is trained. */
  static async create(
    connection: TinkerConnection,
    url: string,
    { session, number, base, rank, seed, parts, role = 'policy' }: NewModel,
  ): Promise<ServerModel> {
    const { result, modelId } = await connection.later(
      'create_model',
      {
        session_id: session,
        model_seq_id: number,
        base_model: base,
        lora_config: { rank, seed: seed & seedMask, ...parts },
        ...(role === 'critic' && { model_role: role }), // unknown to other servers
        type: 'create_model',
      },
      createdSchema,
    );
    const id = modelId ?? result.model_id;
    if (id === undefined) throw new UserError(`engine: ${url} created a model without an id: use another server`);
    checkParts(parts, result.lora_config ?? {}, url);
    return new ServerModel(connection, url, id, result.lora_config?.alpha ?? usualAlpha, role);
  }

  /** Returns the log-probs at the masked tokens under the current weights of a policy; 0 where mask = 0. */
  logprobs(samples: readonly MaskedSample[], units: WorkUnits): Promise<Float32Array[]> {
    return this.forward(samples, units);
  }

  /** Returns the values at the masked tokens under the current weights of a critic; 0 where mask = 0. */
  values(samples: readonly MaskedSample[], units: WorkUnits): Promise<Float32Array[]> {
    return this.forward(samples, units);
  }

  private async forward(samples: readonly MaskedSample[], units: WorkUnits): Promise<Float32Array[]> {
    const [output, loss_fn] = read[this.role];
    const found = samples.map(({ ids }) => new Float32Array(ids.length));
    const masked = [...samples.keys()].filter(i => samples[i].mask.includes(1));
    const parts = inRequests(masked, i => samples[i].ids.length);
    let done = 0;
    await pMap(
      parts,
      async part => {
        units.next(done, parts.length);
        const data = part.map(i => {
          const { ids, mask } = samples[i];
          const none = new Float32Array(ids.length);
          return datumOf(ids, mask, this.role === 'policy' ? { logprobs: none, advantages: none } : {});
        });
        const { result } = await this.connection.later(
          'forward',
          { model_id: this.id, forward_input: { data, loss_fn }, seq_id: this.requests++ },
          forwardSchema,
        );
        part.forEach((i, k) =>
          found[i].set(numbersOf(result.loss_fn_outputs.at(k)?.[output], samples[i], output, this.url)),
        );
        done++;
      },
      { concurrency: scoringRequests },
    );
    return found;
  }

  /**
   * Makes one optimizer step with the gradient of the carrying loss over `data`; returns the server's metrics. Requests
   * are sent while the server still computes the ones before, so that it does not wait between them.
   * @throws WeightsUncertain if an answer is lost, or a gradient failed after the step was sent
   */
  async step(
    data: readonly Datum[],
    { lr, betas: [beta1, beta2], eps, weight_decay, grad_clip }: OptimizerOptions,
    units: WorkUnits,
  ): Promise<Readonly<Record<string, number>>> {
    const parts = inRequests(data, ({ model_input }) => model_input.chunks[0].tokens.length);
    const results: Promise<unknown>[] = [];
    for (const [k, part] of parts.entries()) {
      units.next(k, parts.length);
      await results.at(-2); // at most two parts are sent ahead, because each is held in memory
      const forward_backward_input = { data: part, loss_fn: carriers[this.role] };
      const body = { model_id: this.id, forward_backward_input, seq_id: this.requests++ };
      const { result } = await this.connection.submit('forward_backward', body, accumulatedSchema, 'once');
      result.catch(() => undefined); // reported below
      results.push(result);
    }
    const adam_params = { learning_rate: lr, beta1, beta2, eps, weight_decay, grad_clip_norm: grad_clip };
    const body = { model_id: this.id, adam_params, seq_id: this.requests++, type: 'optim_step' };
    const { result } = await this.connection.submit('optim_step', body, optimizedSchema, 'once');
    result.catch(() => undefined); // reported below
    await Promise.all(results).catch(async (error: unknown) => {
      if (!(error instanceof UserError)) throw error;
      throw new WeightsUncertain(`a gradient failed after its optimizer step was sent (${error.message})`);
    });
    return (await result).metrics ?? {};
  }

  /** Publishes the current weights as version `version`; returns the sampling session that uses them. */
  async publish(version: number): Promise<string> {
    const body = (): object => ({
      model_id: this.id,
      sampling_session_seq_id: version,
      seq_id: this.requests++, // must be new at each attempt
      type: 'save_weights_for_sampler',
    });
    const { result } = await this.connection.later('save_weights_for_sampler', body, publishedSchema);
    return result.sampling_session_id;
  }

  /** Saves weights and optimizer state on the server under a new name; returns their address. */
  async save(newName: () => string): Promise<string> {
    const body = (): object => ({ model_id: this.id, path: newName(), type: 'save_weights' });
    return (await this.connection.later('save_weights', body, savedSchema)).result.path;
  }

  /** Loads weights and optimizer state from an address. */
  async load(path: string): Promise<void> {
    const body = { model_id: this.id, path, type: 'load_weights' };
    await this.connection.later('load_weights', body, loadedSchema);
  }

  /**
   * Downloads the adapter's tensors, under their names in the local engine. The server keeps a copy at the address
   * `copy`.
   */
  async parameters(newName: () => string): Promise<{ tensors: NamedTensor[]; copy: string }> {
    let name = '';
    const body = (): object => ({
      model_id: this.id,
      path: (name = newName()),
      type: 'save_weights_for_sampler',
    });
    const { result } = await this.connection.later('save_weights_for_sampler', body, savedSchema);
    const archive = `training_runs/${this.id}/checkpoints/${name}/archive`;
    const bytes = await this.connection.download(archive, archiveBytes);
    return { tensors: await adapterTensors(bytes, this.url), copy: result.path };
  }

  /** Removes the model from the server. */
  async unload(): Promise<void> {
    await this.connection.later('unload_model', { model_id: this.id }, loadedSchema);
  }
}

/** Throws if the server says that it has put adapters on other layers. */
function checkParts(asked: AdapterParts, made: Partial<Record<keyof AdapterParts, boolean | null>>, url: string): void {
  const other = (Object.keys(asked) as (keyof AdapterParts)[]).filter(
    part => (made[part] ?? asked[part]) !== asked[part],
  );
  if (other.length === 0) return;
  const layers = other.map(part => `${part}=${made[part]}`).join(', ');
  throw new UserError(
    `config: lora.target_modules chooses other layers than the adapters of ${url} have (${layers}): set it to all-linear, or use a server that follows it`,
  );
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

/** The numbers of a sample from a server's output, whose first entry belongs to token 1; 0 where mask = 0. */
function numbersOf(
  output: { data: (number | null)[] } | undefined,
  { ids, mask }: MaskedSample,
  what: string,
  url: string,
): Float32Array {
  const data = output?.data;
  if (data?.length !== ids.length - 1)
    throw new UserError(
      `engine: ${url} returned ${data?.length ?? 'no'} ${what} for ${ids.length - 1} targets: use a server of the Tinker API`,
    );
  return Float32Array.from(mask, (bit, token) => (bit ? (data[token - 1] ?? NaN) : 0));
}
