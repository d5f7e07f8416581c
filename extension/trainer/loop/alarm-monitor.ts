// Alarm monitor: checks the metrics of each step against the alarm rules (diagnostics/alarms.ts) and writes new alarms
// as events. An active alarm that is listed in `workbench.watch.stop_on` ends the run.
import type { AlarmRule } from '../../../envs/api/plugins/alarm';
import { isPluginPath, type PluginPath } from '../config/plugin-path';
import type { RunConfig } from '../config/schema';
import { activeAlarms, watchStep } from '../diagnostics/alarms';
import type { WatchState } from '../diagnostics/alarms';
import type { Journal } from '../run/journal';

/**
 * Checks the metrics of a finished step and writes each new alarm as an event. Returns the alarm state after the step.
 * @param own rules of plug-ins by the names of their alarms
 */
export function checkAlarms(
  { config, journal }: { config: Pick<RunConfig, 'workbench'>; journal: Pick<Journal, 'event'> },
  state: WatchState,
  step: number,
  metrics: Readonly<Record<string, number>>,
  own: Readonly<Record<string, AlarmRule>> = {},
): WatchState {
  if (!config.workbench.watch.enabled) return state;
  const watched = watchStep(state, metrics, own);
  for (const { name, metric, value, bound, sentence } of watched.alarms)
    journal.event('alarm', sentence, { alarm: name, step, metric, value, bound });
  return watched.state;
}

/**
 * Returns an active alarm that is listed in `workbench.watch.stop_on`, or null.
 * @param nameOf returns the name of the alarm that the plug-in at a path defines
 */
export function alarmStop(
  state: WatchState,
  { workbench: { watch } }: Pick<RunConfig, 'workbench'>,
  nameOf: (path: PluginPath) => string = path => path,
): { type: string; sentence: string } | null {
  if (!watch.enabled) return null;
  const alarm = activeAlarms(state).find(({ name }) => (watch.stop_on as readonly string[]).includes(name));
  if (alarm) return { type: alarm.name, sentence: `${alarm.sentence} (workbench.watch.stop_on)` };
  const path = watch.stop_on.filter(isPluginPath).find(each => state.raised.includes(`plugins/${nameOf(each)}`));
  if (path === undefined) return null;
  return { type: nameOf(path), sentence: `the alarm of the plug-in ${path} is active (workbench.watch.stop_on)` };
}
