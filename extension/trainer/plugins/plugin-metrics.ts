// Metrics and computed charts of the workspace: measures each finished step and adds the values under `plugins/…` and
// `plugin_charts/…`. One that fails has no value in this step; the run continues, and an event names the error, once for
// each error in a row.
import type { MeasuredStep } from '../../../envs/api/plugins/metric';
import { PluginError } from '../../plugins/client/plugin-runner';
import { isRecord } from '../../common/json';
import { computesLines } from './checked-chart';
import type { LivePlugins } from './live-plugins';
import { mostLines } from '../../run-data/charts/own-charts';
import { badValue, shown, type CallablePlugin } from './checked-values';

/** Returns the values of the configured metrics and charts for a step. */
export async function pluginMetrics(
  plugins: Pick<LivePlugins, 'set' | 'failed'>,
  step: MeasuredStep,
): Promise<Record<string, number>> {
  const values: Record<string, number> = {};
  for (const path of [...plugins.set.pathsOf('metric'), ...plugins.set.pathsOf('chart')]) {
    const plugin = plugins.set.plugin(path);
    if (plugin.description.kind === 'chart' && !computesLines(plugin.description)) continue;
    try {
      Object.assign(values, await measureWith(plugin, step));
      plugins.failed(path, null);
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      plugins.failed(path, error);
    }
  }
  return values;
}

/** Measures a step with one metric or chart. @throws PluginError if it fails or returns an invalid value */
export async function measureWith(plugin: CallablePlugin, step: MeasuredStep): Promise<Record<string, number>> {
  const { kind, name } = plugin.description;
  const [called, key, remedy] =
    kind === 'chart'
      ? [
          { path: plugin.path, function: 'lines' },
          `plugin_charts/${name}`,
          'return numbers by line, such as { words: 12 }',
        ]
      : [
          { path: plugin.path, function: 'measure' },
          `plugins/${name}`,
          'return a number, or numbers by key, such as { words: 12 }',
        ];
  const value = await plugin.call(called.function, step);
  if (typeof value === 'number' && kind === 'metric') return { [key]: finite(value, key) };
  if (!isRecord(value)) throw badValue(called, `returned ${shown(value)}`, remedy);
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  if (entries.length > mostLines)
    throw badValue(called, `returned ${entries.length} values`, `return at most ${mostLines} values`);
  return Object.fromEntries(
    entries.map(([name, each]) => {
      if (!/^[\w.-]{1,60}$/.test(name))
        throw badValue(called, `returned the key ${shown(name)}`, 'use letters, digits, hyphens, dots and underscores');
      return [`${key}/${name}`, finite(each, `${key}/${name}`)];
    }),
  );

  function finite(number: unknown, of: string): number {
    if (typeof number === 'number' && Number.isFinite(number)) return number;
    throw badValue(called, `returned ${shown(number)} for ${of}`, 'return finite numbers, or leave the key out');
  }
}
