// Creates the models of a run on a Tinker server. First opens a session, and probes the server with a model that is
// used for nothing else. Then creates the actor and, if the run needs one, a critic. If the server lacks something that
// the run needs, an error is thrown here, before the first step. The error message names the configuration key, the
// key's value and the remedy.
import { UserError } from '../../common/user-error';
import type { ServerState } from '../../engine/engine';
import type { AdapterOptions, LoadOptions } from '../../engine/load-options';
import { adapterParts, expressibleTargets, type AdapterParts } from './adapter-parts';
import { ServerActor } from './server-actor';
import { ServerCritic } from './server-critic';
import { ServerModel } from './server-model';
import { probeServer, type ServerFacts } from './server-probe';
import { openSession } from './server-session';
import { engineKeyNames, ServerRefusal } from './server-refusal';
import type { ConnectionOptions, TinkerConnection } from './tinker-connection';
import { capabilitiesSchema, type SampledSequence } from './tinker-wire';

export interface LoadedModels {
  actor: ServerActor;
  /** The critic, if the run needs one. */
  critic?: ServerCritic;
  facts: ServerFacts;
  /** The base model's name on the server. */
  base: string;
  /** Folder of the tokenizer; used in error messages. */
  modelFolder: string;
  /** Creates another model in the same session. */
  create(seed: number, role?: 'policy' | 'critic'): Promise<ServerModel>;
}

/** Settings for connecting. */
export interface LoadSettings extends ConnectionOptions {
  /** The base model's name on the server. This may be null if the server offers only one model. */
  baseModel: string | null;
  /**
   * Whether the run is resumed from a checkpoint. The models of the run's earlier session may then still be on the
   * server.
   */
  resumes: boolean;
}

/** Milliseconds between attempts to create a model while the server has no room for another adapter. */
const roomMs = 10_000;

/** Returns the options of the adapters to train. @throws UserError if the API cannot express these options */
export function requireAdapters(lora: LoadOptions['lora']): AdapterOptions & { parts: AdapterParts } {
  if (!lora) throw new UserError('config: lora.rank is 0, but a Tinker server trains adapters: set lora.rank above 0');
  const parts = adapterParts(lora.targets);
  if (parts) return { ...lora, parts };
  throw new UserError(
    `config: lora.target_modules is ${JSON.stringify(lora.targets)}, which the Tinker API cannot express: set it to ${expressibleTargets}`,
  );
}

/**
 * Connects to a server and creates a run's models.
 * @param created receives each model that was created on the server. The caller must unload these models at the end of
 * the run, and after an error
 * @param draw samples a response to a prompt from a published version, always with the same seed
 */
export async function loadModels(
  connection: TinkerConnection,
  settings: LoadSettings,
  { lora, seed, modelFolder, critic }: Pick<LoadOptions, 'lora' | 'seed' | 'modelFolder' | 'critic'>,
  created: Set<ServerModel>,
  draw: (session: string, prompt: number[]) => Promise<SampledSequence>,
): Promise<LoadedModels> {
  const { url, baseModel } = settings;
  const { rank, parts } = requireAdapters(lora);
  const { supported_models } = await connection.get('get_server_capabilities', capabilitiesSchema);
  const offered = supported_models.map(({ model_name }) => model_name);
  const base = chosenModel(baseModel, offered, url);
  const session = await openSession(connection);
  let count = 0;
  const create: LoadedModels['create'] = async (seed, role) => {
    const model = await whenRoom(connection, settings, () =>
      ServerModel.create(connection, url, { session, number: count++, base, rank, seed, parts, role }),
    );
    created.add(model);
    return model;
  };
  const scratch = await create(seed);
  const facts = await probeServer(scratch, draw, url);
  // The model is unloaded before the actor is created, because its published version may have replaced the weights in
  // training.
  await scratch.unload();
  created.delete(scratch);
  const actor = new ServerActor(await create(seed), facts);
  const loaded = { actor, facts, base, modelFolder, create };
  return critic ? { ...loaded, critic: await createCritic(create, facts, url) } : loaded;
}

/**
 * Throws a UserError if the saved state belongs to another base model, or if the run needs a critic and the state
 * contains none.
 */
export function requireFitting(
  saved: Pick<ServerState['server'], 'base' | 'critic'>,
  { base, critic }: Pick<LoadedModels, 'base' | 'critic'>,
): void {
  if (saved.base !== base)
    throw new UserError(
      `config: workbench.engine_model is ${base}, but the checkpoint's adapter belongs to ${saved.base}: set it to ${saved.base}`,
    );
  if (critic && !saved.critic)
    throw new UserError(
      'config: algorithm.adv_estimator is gae, but the checkpoint has no critic: choose the estimator with which the checkpoint was trained',
    );
}

/** Creates the critic. @throws UserError if the server does not support critics */
async function createCritic(
  create: LoadedModels['create'],
  { gradientNorm }: ServerFacts,
  url: string,
): Promise<ServerCritic> {
  try {
    return new ServerCritic(await create(0, 'critic'), gradientNorm);
  } catch (error) {
    if (!(error instanceof ServerRefusal)) throw error;
    throw new UserError(
      `config: algorithm.adv_estimator is gae, but ${url} does not create a critic (${error.detail}): choose an estimator without a critic, such as grpo`,
    );
  }
}

/**
 * Returns the result of `create`. If the run is resumed and the server has no room for another adapter, calls `create`
 * repeatedly for at most `outageMs`. A later call may succeed, because the models of a lost session stay on the server
 * only until that session times out.
 */
async function whenRoom(
  connection: TinkerConnection,
  { resumes, outageMs, onOutage, pauseMs }: LoadSettings,
  create: () => Promise<ServerModel>,
): Promise<ServerModel> {
  const started = performance.now();
  for (let waits = false; ; waits = true) {
    try {
      const model = await create();
      if (waits) onOutage(null);
      return model;
    } catch (error) {
      if (!(error instanceof ServerRefusal && /maximum number of lora adapters/i.test(error.detail))) throw error;
      if (!resumes || performance.now() - started > outageMs)
        throw new UserError(
          `${error.message}: raise the server's limit, end other runs on it, or do without the reference policy (actor_rollout_ref.actor.use_kl_loss=false, algorithm.use_kl_in_reward=false)`,
        );
      if (!waits) onOutage(error.detail);
      await connection.pause(pauseMs?.longest ?? roomMs);
    }
  }
}

/**
 * Returns the name of the base model to use. @throws UserError if the server lists models and the chosen model is not
 * among them, or if no model is chosen and the server does not list exactly one model
 */
export function chosenModel(
  chosen: string | null,
  offered: readonly string[],
  url: string,
  key = engineKeyNames.model,
): string {
  if (chosen === null && offered.length === 1) return offered[0];
  if (chosen !== null && (offered.length === 0 || offered.includes(chosen))) return chosen;
  const models = offered.length > 0 ? offered.join(', ') : 'no model by name';
  throw new UserError(`config: ${key} is ${chosen}, but ${url} offers ${models}: set it to one of the server's models`);
}
