// One model on a Tinker server: a policy or a critic. Requests the model's log-probs or values, makes optimizer steps,
// publishes versions of the weights for sampling, and saves and loads weights and optimizer state. Batches are split
// into requests of limited size. Every request has a sequence number. Newer servers use this number to recognise
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

/** A training sample without the fields that only the computation of a loss needs. */
export type MaskedSample = Pick<TrainingSample, 'ids' | 'mask'>;

/** Properties of a model that is to be created. */
export interface NewModel {
  session: string;
  /** Number of the model within the session. */
  number: number;
  base: string;
  rank: number;
  seed: number;
  parts: AdapterParts;
  /** A critic returns values of tokens. Critics are an extension of the API by SkyRL. */
  role?: 'policy' | 'critic';
}

/** For each role: the output of `forward` that is used, and the loss that the request must name to get this output. */
const read = { policy: ['logprobs', 'cross_entropy'], critic: ['values', 'ppo_critic'] } as const;
/**
 * For each role: the name of the server's loss that serves as the surrogate loss. The surrogate loss has the gradient
 * that was computed on this machine (surrogate.ts, value-surrogate.ts).
 */
const carriers = { policy: 'importance_sampling', critic: 'ppo_critic' };

/** Maximum tokens per request. */
export const requestTokens = 2 ** 17;
/** Maximum concurrent scoring requests. */
const scoringRequests = 4;
/** Maximum bytes of an adapter's archive. */
const archiveBytes = 2 ** 32;
/** Mask that keeps the lowest 31 bits of a seed, because servers accept only these. */
export const seedMask = 0x7fffffff;
/** LoRA's alpha in SkyRL's JAX backend. Used for servers that do not report their alpha. */
const usualAlpha = 32;

export class ServerModel {
  /** Sequence number of the next request. */
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
        // The key is sent only for critics, because some servers do not know it.
        ...(role === 'critic' && { model_role: role }),
        type: 'create_model',
      },
      createdSchema,
    );
    const id = modelId ?? result.model_id;
    if (id === undefined) throw new UserError(`engine: ${url} created a model without an id: use another server`);
    checkParts(parts, result.lora_config ?? {}, url);
    return new ServerModel(connection, url, id, result.lora_config?.alpha ?? usualAlpha, role);
  }

  /** Returns a policy's log-probs of the masked tokens under the current weights; 0 where mask = 0. */
  logprobs(samples: readonly MaskedSample[], units: WorkUnits): Promise<Float32Array[]> {
    return this.forward(samples, units);
  }

  /** Returns a critic's values of the masked tokens under the current weights; 0 where mask = 0. */
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
   * Makes one optimizer step with the gradient of the surrogate loss over `data`. Returns the server's metrics. Sends
   * each request while the server still computes the previous one, so that the server is never idle between two
   * requests.
   * @throws WeightsUncertain if an answer is lost, or if the server has already received the request for the optimizer
   * step when it reports a failed gradient
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
      // At most two parts are unanswered at the same time, because unanswered parts are held in memory.
      await results.at(-2);
      const forward_backward_input = { data: part, loss_fn: carriers[this.role] };
      const body = { model_id: this.id, forward_backward_input, seq_id: this.requests++ };
      const { result } = await this.connection.submit('forward_backward', body, accumulatedSchema, 'once');
      results.push(result);
    }
    const adam_params = { learning_rate: lr, beta1, beta2, eps, weight_decay, grad_clip_norm: grad_clip };
    const body = { model_id: this.id, adam_params, seq_id: this.requests++, type: 'optim_step' };
    const { result } = await this.connection.submit('optim_step', body, optimizedSchema, 'once');
    await Promise.all(results).catch(async (error: unknown) => {
      if (!(error instanceof UserError)) throw error;
      throw new WeightsUncertain(`a gradient failed after its optimizer step was sent (${error.message})`);
    });
    return (await result).metrics ?? {};
  }

  /**
   * Publishes the current weights as version `version`; returns the id of the sampling session that uses these weights.
   */
  async publish(version: number): Promise<string> {
    const body = (): object => ({
      model_id: this.id,
      sampling_session_seq_id: version,
      seq_id: this.requests++, // each attempt needs a new number
      type: 'save_weights_for_sampler',
    });
    const { result } = await this.connection.later('save_weights_for_sampler', body, publishedSchema);
    return result.sampling_session_id;
  }

  /**
   * Saves weights and optimizer state on the server under the name that `newName` returns. Returns the address of the
   * saved state.
   */
  async save(newName: () => string): Promise<string> {
    const body = (): object => ({ model_id: this.id, path: newName(), type: 'save_weights' });
    return (await this.connection.later('save_weights', body, savedSchema)).result.path;
  }

  /** Loads weights and optimizer state from an address. */
  async load(path: string): Promise<void> {
    const body = { model_id: this.id, path, type: 'load_weights' };
    await this.connection.later('load_weights', body, loadedSchema, 'once');
  }

  /**
   * Downloads the adapter's tensors, and returns them under the names that the local engine uses. For the download, the
   * server saves a copy of the adapter. The copy stays on the server at the returned address `copy`.
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

  /**
   * Removes the model from the server. Does not throw if the server no longer has the model, for example because an
   * earlier attempt removed the model and its answer was lost.
   */
  async unload(): Promise<void> {
    try {
      await this.connection.later('unload_model', { model_id: this.id }, loadedSchema);
    } catch (error) {
      if (!(error instanceof WeightsUncertain)) throw error;
    }
  }
}

/** Throws a UserError if the server reports that it added adapters to other parts of the model than requested. */
function checkParts(asked: AdapterParts, made: Partial<Record<keyof AdapterParts, boolean | null>>, url: string): void {
  const other = (Object.keys(asked) as (keyof AdapterParts)[]).filter(
    part => (made[part] ?? asked[part]) !== asked[part],
  );
  if (other.length === 0) return;
  const layers = other.map(part => `${part}=${made[part]}`).join(', ');
  throw new UserError(
    `config: lora.target_modules chooses other layers than the adapters of ${url} have (${layers}): set it to all-linear, or use a server that follows this key`,
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

/**
 * Returns one number per token of a sample, taken from the server's output; 0 where mask = 0. The first entry of the
 * output belongs to the token with index 1.
 */
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
