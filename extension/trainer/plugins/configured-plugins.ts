// The plug-ins that a configuration names: for each key, the path of the file and the kind of plug-in that the key needs.
import type { PluginKind } from '../../protocol/plugin-link';
import type { RunConfig } from '../config/schema';
import { isPluginPath, type PluginPath } from '../config/schema-plugins';

export interface ConfiguredPlugin {
  /** Key of the configuration that names the file. */
  key: string;
  /** Path of the file as it is configured, relative to the workspace. */
  path: PluginPath;
  kind: PluginKind;
}

/** Returns the plug-ins that a training needs, in the order of the keys. An evaluation needs none. */
export function configuredPlugins({ algorithm, trainer }: RunConfig): ConfiguredPlugin[] {
  if (trainer.val_only) return [];
  const named: [key: string, kind: PluginKind, value: string][] = [
    ['algorithm.adv_estimator', 'estimator', algorithm.adv_estimator],
  ];
  return named.flatMap(([key, kind, path]) => (isPluginPath(path) ? [{ key, path, kind }] : []));
}
