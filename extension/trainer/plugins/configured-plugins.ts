// The plug-ins that a configuration names: for each key, the path of the file and the kind of plug-in that the key needs.
import type { PluginKind } from '../../protocol/plugin-link';
import type { RunConfig } from '../config/schema';
import { isPluginPath, type PluginPath } from '../config/plugin-path';

export interface ConfiguredPlugin {
  /** Key of the configuration that names the file. */
  key: string;
  /** Path of the file as it is configured, relative to the workspace. */
  path: PluginPath;
  kind: PluginKind;
}

/** Returns the plug-ins that a run needs, in the order of the keys: an evaluation needs only the memory. */
export function configuredPlugins({ algorithm, actor_rollout_ref, trainer, workbench }: RunConfig): ConfiguredPlugin[] {
  const { plugins } = workbench;
  const memory: [string, PluginKind, string[]] = [
    'workbench.plugins.memory',
    'memory',
    plugins.memory === null ? [] : [plugins.memory],
  ];
  const named: [key: string, kind: PluginKind, values: readonly string[]][] = [
    ['algorithm.adv_estimator', 'estimator', [algorithm.adv_estimator]],
    ['actor_rollout_ref.rollout.rollout_filter_metric', 'filter', [actor_rollout_ref.rollout.rollout_filter_metric]],
    ['actor_rollout_ref.actor.policy_loss.loss_mode', 'loss', [actor_rollout_ref.actor.policy_loss.loss_mode]],
    ['workbench.credit_mask', 'mask', [workbench.credit_mask]],
    ['workbench.plugins.metrics', 'metric', plugins.metrics],
    ['workbench.plugins.charts', 'chart', plugins.charts],
    ['workbench.plugins.alarms', 'alarm', plugins.alarms],
  ];
  const found = (trainer.val_only ? [memory] : [...named, memory]).flatMap(([key, kind, values]) =>
    values.flatMap(path => (isPluginPath(path) ? [{ key, path, kind }] : [])),
  );
  return found.filter(({ path }, i) => found.findIndex(other => other.path === path) === i);
}
