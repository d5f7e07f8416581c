// Rules for the keys that name plug-ins: what does not work together with the loss of a plug-in, an alarm that ends the
// run must be listed, alarms need the alarm monitor, a memory needs
// prompts of one turn, and a file is named once.
import type { BrokenRule } from './broken-rule';
import { isPluginPath } from './plugin-path';
import type { RunConfig } from './schema';

export function pluginPathRules({ actor_rollout_ref, agent_proxy, lora, trainer, workbench }: RunConfig): BrokenRule[] {
  const { plugins, watch } = workbench;
  const broken: BrokenRule[] = [];
  const loss = actor_rollout_ref.actor.policy_loss.loss_mode;
  if (isPluginPath(loss) && trainer.gradient_analysis_mode)
    broken.push({
      key: 'trainer.gradient_analysis_mode',
      sentence: `is true, but the gradients of the loss of a plug-in (${loss}) cannot be analysed: set it to false`,
    });
  if (isPluginPath(loss) && lora.rank > 0 && lora.dropout > 0)
    broken.push({
      key: 'lora.dropout',
      sentence: `is ${lora.dropout}, but the loss of a plug-in (${loss}) is computed without dropout: set it to 0`,
    });
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
  if (plugins.memory !== null && agent_proxy.context_window_mode !== 'single_turn')
    broken.push({
      key: 'workbench.plugins.memory',
      sentence: `names a memory, but agent_proxy.context_window_mode is ${agent_proxy.context_window_mode}: set it to single_turn, or set workbench.plugins.memory to null`,
    });
  for (const [key, paths] of [
    ['metrics', plugins.metrics],
    ['charts', plugins.charts],
    ['alarms', plugins.alarms],
  ] as const) {
    const twice = paths.find((path, index) => paths.indexOf(path) !== index);
    if (twice !== undefined)
      broken.push({ key: `workbench.plugins.${key}`, sentence: `names ${twice} twice: name each file once` });
  }
  return broken;
}
