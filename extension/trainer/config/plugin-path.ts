// The schema of a path of a plug-in: a file of the workspace that defines a part of the training loop (docs/PLUGINS.md). A
// path ends in `.ts`, so it cannot be confused with a built-in name.
import { z } from 'zod';

/** A path of a plug-in's file, relative to the folder in which the run is started. */
export type PluginPath = `${string}.ts`;

export const pluginPath = z
  .templateLiteral([z.string(), '.ts'])
  .describe('Path of a plug-in (docs/PLUGINS.md), relative to the folder in which the run is started.');

/** Whether a value of a key is the path of a plug-in instead of a built-in name. */
export const isPluginPath = (value: string): value is PluginPath => value.endsWith('.ts');
