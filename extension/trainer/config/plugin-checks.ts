// Rules for the keys that name plug-ins: an alarm that ends the run must be listed, alarms need the alarm monitor, and a
// file is named once.
import type { BrokenRule } from './broken-rule';
import { isPluginPath } from './plugin-path';
import type { RunConfig } from './schema';

export function pluginPathRules({ workbench: { plugins, watch } }: RunConfig): BrokenRule[] {
  const broken: BrokenRule[] = [];
  for (const path of watch.stop_on.filter(isPluginPath))
    if (!plugins.alarms.includes(path))
      broken.push({
        key: 'workbench.watch.stop_on',
        sentence: `names ${path}, which workbench.plugins.alarms does not list: add it there`,
      });
  if (!watch.enabled && plugins.alarms.length > 0)
    broken.push({
      key: 'workbench.plugins.alarms',
      sentence: 'names alarms, but workbench.watch.enabled is false: set it to true, or remove the alarms',
    });
  for (const [key, paths] of [
    ['metrics', plugins.metrics],
    ['alarms', plugins.alarms],
  ] as const) {
    const twice = paths.find((path, index) => paths.indexOf(path) !== index);
    if (twice !== undefined)
      broken.push({ key: `workbench.plugins.${key}`, sentence: `names ${twice} twice: name each file once` });
  }
  return broken;
}
