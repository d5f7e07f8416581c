// max_model_len against the positions of the model: where another model takes the place of the one that the length was written for, the
// length is lowered with a note; where it was set for this very model, it is refused. Checked before there is a run folder.
import { valueAt } from '../../protocol/settings';
import { ConfigError } from './config-error';
import { configHash } from './config-hash';
import type { LoadedConfig } from './load-config';
import type { RunConfig } from './schema';
import { nodeAt } from './yaml-tree';
import type { MapNode } from './yaml-tree';

const key = 'actor_rollout_ref.rollout.max_model_len';

/**
 * Whether the length was set for the model that is named: by an override, or in the model's own file or one laid over it. A model by
 * override takes the place of the one that the files name.
 * @param layers the files as they were merged, the last on top
 */
export function lengthIsOfModel(tree: MapNode, layers: readonly string[]): boolean {
  const length = nodeAt(tree, key.split('.'))?.place;
  const model = nodeAt(tree, ['model_path'])?.place;
  if (length?.override !== undefined) return true;
  if (model?.override !== undefined) return false;
  return layers.lastIndexOf(length?.file ?? '') >= layers.lastIndexOf(model?.file ?? '');
}

/** The sentence about a length that the model has no positions for; undefined where it has. */
export function lengthProblem(config: RunConfig, maxPositions: number): string | undefined {
  const { max_model_len } = config.actor_rollout_ref.rollout;
  if (max_model_len <= maxPositions) return undefined;
  return `config: ${key} is ${max_model_len}, but ${config.model_path} has ${maxPositions} positions: lower it`;
}

/**
 * A configuration whose episodes the model has positions for.
 * @param reload loads it with one more override
 * @throws ConfigError where the length was set for this model
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
  const note = `config: ${key} is lowered from ${actor_rollout_ref.rollout.max_model_len} to ${maxPositions}, all that ${model_path} has positions for`;
  return { ...shorter, lengthIsOfModel: false, notes: [...shorter.notes, note] };
}

/** Whether a run was made of `loaded`, whose length may have been lowered for it. */
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
