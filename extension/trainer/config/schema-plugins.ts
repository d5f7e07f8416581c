// Schema of the keys that name plug-ins: files of the workspace that define an estimator, a filter, a metric and the
// like (docs/PLUGINS.md). A path ends in `.ts`, so it cannot be confused with a built-in name.
import { z } from 'zod';
import { count } from './schema-policy';

/** A path of a plug-in's file, relative to the folder in which the run is started. */
export type PluginPath = `${string}.ts`;

export const pluginPath = z
  .templateLiteral([z.string(), '.ts'])
  .describe('Path of a plug-in (docs/PLUGINS.md), relative to the folder in which the run is started.');

/** Whether a value of a key is the path of a plug-in instead of a built-in name. */
export const isPluginPath = (value: string): value is PluginPath => value.endsWith('.ts');

export const plugins = z
  .strictObject({
    timeout_ms: count(
      'Time limit of one call of a plug-in’s function in milliseconds. An estimator or a filter that exceeds it ends the run.',
    ).default(10_000),
  })
  .describe('Plug-ins of the workspace (docs/PLUGINS.md).')
  // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
  .prefault({});
