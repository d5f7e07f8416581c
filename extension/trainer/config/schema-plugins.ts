// Schema of `workbench.plugins`: lists of plug-ins that a run uses in addition to the built-in parts, and their limits
// (docs/PLUGINS.md). Other keys name plug-ins that replace a built-in part (plugin-path.ts).
import { z } from 'zod';
import { pluginPath } from './plugin-path';
import { count } from './schema-policy';

const paths = (meaning: string) => z.array(pluginPath).describe(meaning).default([]);

export const plugins = z
  .strictObject({
    metrics: paths('Plug-ins that measure each step. Their values have keys that begin with plugins/.'),
    charts: paths('Plug-ins that define charts of the dashboard, of metrics or of computed lines.'),
    alarms: paths('Plug-ins that define further alarms; they need workbench.watch.enabled.'),
    memory: pluginPath
      .nullable()
      .describe(
        'Plug-in that writes the summary of earlier turns in the prompt; it needs agent_proxy.context_window_mode single_turn. null: the built-in summary.',
      )
      .default(null),
    timeout_ms: count(
      'Time limit of one call of a plug-in’s function in milliseconds. An estimator or a filter that exceeds it ends the run.',
    ).default(10_000),
  })
  .describe('Plug-ins of the workspace (docs/PLUGINS.md).')
  // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
  .prefault({});
