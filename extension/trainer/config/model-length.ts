// Checks max_model_len against the model's maximum positions, before the run folder is created. If the length was
// written for a model that was replaced, it is lowered with a note; if it was set for this model, it is rejected.
import { valueAt } from '../../run-data/settings';
import { ConfigError } from './config-error';
import { configHash } from './config-hash';
import type { LoadedConfig } from './loaded-config';
import type { RunConfig } from './schema';
import { nodeAt } from './yaml-tree';
import type { MapNode } from './yaml-tree';

const key = 'actor_rollout_ref.rollout.max_model_len';

/**
 * Returns whether the length was set for the configured model: by an override, or in the file that sets the model or a
 * file merged over it. A model set by override replaces the one in the files.
 * @param layers files in merge order, highest precedence last
 */
export function lengthIsOfModel(tree: MapNode, layers: readonly string[]): boolean {
  const length = nodeAt(tree, key.split('.'))?.location;
  const model = nodeAt(tree, ['model_path'])?.location;
  if (length?.override !== undefined) return true;
  if (model?.override !== undefined) return false;
  return layers.lastIndexOf(length?.file ?? '') >= layers.lastIndexOf(model?.file ?? '');
}

/** Returns the error message for a length beyond the model's positions; undefined if it fits. */
export function lengthProblem(config: RunConfig, maxPositions: number): string | undefined {
  const { max_model_len } = config.actor_rollout_ref.rollout;
  if (max_model_len <= maxPositions) return undefined;
  return `config: ${key} is ${max_model_len}, but ${config.model_path} has ${maxPositions} positions: lower it`;
}

/**
 * Returns a configuration whose episodes fit the model's positions.
 * @param reload reloads the configuration with one more override
 * @throws ConfigError if the length was set for this model
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

/** Returns whether a run was started from `loaded`, allowing for a max_model_len that was lowered for it. */
export function isMadeOf(
  run: { config: Readonly<Record<string, unknown>>; config_hash: string },
  loaded: Pick<LoadedConfig, 'config' | 'hash' | 'lengthIsOfModel'>,
): boolean {
  if (run.config_hash === loaded.hash) return true;
  if (loaded.lengthIsOfModel) return false;
  const length = valueAt(run.config, key);
  const { max_model_len } = loaded.config.actor_rollout_ref.rollout;
  if (typeof length !== 'number' || length >= max_model_len) return false;
  const { actor_rollout_ref: actor, ...rest } = run.config as RunConfig;
  const rollout = { ...actor.rollout, max_model_len };
  return loaded.hash === configHash({ ...rest, actor_rollout_ref: { ...actor, rollout } });
}
