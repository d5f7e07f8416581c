// Checks max_model_len against the maximum number of positions of the model, before the run folder is created. A length
// that was set for another model is lowered with a note; a length that was set for this model is an error.
import { ConfigError } from './config-error';
import { configHash } from './config-hash';
import type { LoadedConfig } from './loaded-config';
import { runConfigSchema, type RunConfig } from './schema';
import { nodeAt } from './yaml-tree';
import type { MapNode } from './yaml-tree';

const key = 'actor_rollout_ref.rollout.max_model_len';

/**
 * Returns whether max_model_len was set for the configured model: by an override, in the file that sets the model, or
 * in a file that is merged over that file. Returns false if an override sets the model but no override sets the length.
 * @param layers files in merge order, highest precedence last
 */
export function lengthIsOfModel(tree: MapNode, layers: readonly string[]): boolean {
  const length = nodeAt(tree, key.split('.'))?.location;
  const model = nodeAt(tree, ['model_path'])?.location;
  if (length?.override !== undefined) return true;
  if (model?.override !== undefined) return false;
  return layers.lastIndexOf(length?.file ?? '') >= layers.lastIndexOf(model?.file ?? '');
}

/** Returns the error message if max_model_len exceeds the model's maximum number of positions, otherwise undefined. */
export function lengthProblem(config: RunConfig, maxPositions: number): string | undefined {
  const { max_model_len } = config.actor_rollout_ref.rollout;
  if (max_model_len <= maxPositions) return undefined;
  return `config: ${key} is ${max_model_len}, but ${config.model_path} supports only ${maxPositions} positions: use at most ${maxPositions}`;
}

/**
 * Returns `loaded` if its max_model_len fits the model, otherwise a reloaded configuration with max_model_len =
 * `maxPositions` and a note.
 * @param reload reloads the configuration with one more override
 * @throws ConfigError if the length is too large and was set for this model
 */
export function fitLength(
  loaded: LoadedConfig,
  maxPositions: number,
  reload: (override: string) => LoadedConfig,
): LoadedConfig {
  const problem = lengthProblem(loaded.config, maxPositions);
  if (problem === undefined) return loaded;
  if (loaded.lengthIsOfModel) throw new ConfigError([{ key, message: problem }]);
  const { model_path, actor_rollout_ref } = loaded.config;
  const shorter = reload(`${key}=${maxPositions}`);
  const note = `config: ${key} is lowered from ${actor_rollout_ref.rollout.max_model_len} to ${maxPositions}, the maximum number of positions of ${model_path}`;
  return { ...shorter, lengthIsOfModel: false, notes: [...shorter.notes, note] };
}

/** A stored configuration with the defaults of keys that it lacks; null if its version had other keys. */
type PresentForm = { config: RunConfig; hash: string } | null;

/** A sweep compares each of its runs with many configurations, and parsing one takes milliseconds. */
const presentForms = new WeakMap<object, PresentForm>();

function presentForm(stored: Readonly<Record<string, unknown>>): PresentForm {
  const known = presentForms.get(stored);
  if (known !== undefined) return known;
  const { data: config } = runConfigSchema.safeParse(stored);
  const form = config ? { config, hash: configHash(config) } : null;
  presentForms.set(stored, form);
  return form;
}

/**
 * Returns whether `run` was started from the configuration `loaded`. The run may have a lower max_model_len if
 * `fitLength` lowered it, and may lack keys that a later version has added, if `loaded` has their defaults.
 */
export function isMadeOf(
  run: { config: Readonly<Record<string, unknown>>; config_hash: string },
  loaded: Pick<LoadedConfig, 'config' | 'hash' | 'lengthIsOfModel'>,
): boolean {
  if (run.config_hash === loaded.hash) return true;
  const present = presentForm(run.config);
  if (!present) return false;
  if (present.hash === loaded.hash) return true;
  if (loaded.lengthIsOfModel) return false;
  const { config } = present;
  const length = config.actor_rollout_ref.rollout.max_model_len;
  const { max_model_len } = loaded.config.actor_rollout_ref.rollout;
  if (length >= max_model_len) return false;
  const { actor_rollout_ref: actor, ...rest } = config;
  const rollout = { ...actor.rollout, max_model_len };
  return loaded.hash === configHash({ ...rest, actor_rollout_ref: { ...actor, rollout } });
}
