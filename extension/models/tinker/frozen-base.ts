// The base model of a server of the Tinker API, for scoring texts. The API scores only models of a session, so an adapter
// is created that is never trained and adds nothing. The server must have the caller's vocabulary; this cannot be checked
// over the API.
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkUnits } from '../../engine/work-units';
import { chosenModel } from './loaded-models';
import { ServerModel, type MaskedSample } from './server-model';
import type { KeyNames } from './server-refusal';
import { openSession } from './server-session';
import { TinkerConnection, type ConnectionOptions } from './tinker-connection';
import { capabilitiesSchema } from './tinker-wire';

/** The adapter that is created but never trained; servers may refuse smaller ranks. */
const adapter = { rank: 8, seed: 0, parts: { train_attn: true, train_mlp: true, train_unembed: false } };
/** Maximum milliseconds for unloading the model at the end. */
const unloadMs = 3000;

export interface FrozenBaseOptions extends Omit<ConnectionOptions, 'keyNames'> {
  /** Configuration keys or options of URL, key and model, for error messages. */
  keyNames: KeyNames;
  /** Name of the base model on the server; null if it offers only one. */
  name: string | null;
}

export class FrozenBase {
  private constructor(
    private readonly connection: TinkerConnection,
    private readonly options: FrozenBaseOptions,
  ) {}

  private model: ServerModel | undefined;

  /** Prepares the connection; `create` connects. */
  static on(options: FrozenBaseOptions): FrozenBase {
    return new FrozenBase(new TinkerConnection(options), options);
  }

  /** Creates the model, and returns the name of the base model. @throws UserError if the server cannot be used */
  async create(): Promise<string> {
    const { connection, options } = this;
    const { supported_models } = await connection.get('get_server_capabilities', capabilitiesSchema);
    const offered = supported_models.map(({ model_name }) => model_name);
    const base = chosenModel(options.name, offered, options.url, options.keyNames.model);
    const session = await openSession(connection);
    this.model = await ServerModel.create(connection, options.url, { ...adapter, session, number: 0, base });
    return base;
  }

  /** Returns the log-probs of the tokens with mask 1, in nats, and 0 for the other tokens: one array per sample. */
  logprobs(samples: readonly MaskedSample[], units: WorkUnits): Promise<Float32Array[]> {
    return this.model!.logprobs(samples, units);
  }

  /** Ends all waiting for the server. */
  interrupt(): void {
    this.connection.interrupt();
  }

  /** Unloads the model and ends the connection. */
  async close(): Promise<void> {
    const unloaded = this.model?.unload().catch(() => undefined); // the server drops the model after the last heartbeat
    await Promise.race([unloaded, sleep(unloadMs, undefined, { ref: false })]);
    await this.connection.close();
  }
}
