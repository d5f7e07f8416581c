// Alarms of the workspace, in the form of the built-in rules. Their bounds are computed by the plug-in process before the
// rules are judged, so the judgement itself is the same function for all alarms. An alarm that fails is not judged in this
// step, and an event names the error.
import type { AlarmRule } from '../../../envs/api/plugins/alarm';
import { PluginError } from '../../plugins/client/plugin-runner';
import { metricsOfRules } from '../../run-data/alarm-rules';
import { judgementOf, withMetrics, type WatchState } from '../diagnostics/alarms';
import type { LivePlugins } from './live-plugins';
import { boundWith, ruleOf } from './checked-alarm';
import type { CallablePlugin } from './checked-values';
import type { PluginSet } from './plugin-set';

/**
 * Returns the rules of the configured alarms by the names of their alarms, `plugins/<name>`. `bound` of a rule returns
 * the bound for the next judgement, which includes the values in `metrics`.
 */
export async function pluginRules(
  plugins: Pick<LivePlugins, 'failed'> & { readonly set: Pick<PluginSet, 'pathsOf' | 'plugin'> },
  state: WatchState,
  metrics: Readonly<Record<string, number>>,
): Promise<Record<string, AlarmRule>> {
  const rules: Record<string, AlarmRule> = {};
  for (const path of plugins.set.pathsOf('alarm')) {
    const plugin = plugins.set.plugin(path);
    try {
      rules[`plugins/${plugin.description.name}`] = await ruleWith(plugin, state, metrics);
      plugins.failed(path, null);
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      plugins.failed(path, error);
    }
  }
  return rules;
}

/** Returns an alarm's rule with its bound for the next judgement. @throws PluginError if the bound is invalid */
async function ruleWith(
  plugin: CallablePlugin,
  { series }: WatchState,
  metrics: Readonly<Record<string, number>>,
): Promise<AlarmRule> {
  const declared = ruleOf(plugin.description, plugin.path);
  // Reads the arguments with which the judgement will ask for the bound.
  let asked: Parameters<AlarmRule['bound']> | undefined;
  const reads = (...args: Parameters<AlarmRule['bound']>) => ((asked = args), null);
  judgementOf({ ...declared, bound: reads }, withMetrics(series, metricsOfRules([declared]), metrics));
  const bound = asked ? await boundWith(plugin, ...asked) : null;
  return { ...declared, bound: () => bound };
}
