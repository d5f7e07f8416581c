// Schema of the lines of `events.jsonl` in a run folder, and schemas of `data` for the kinds of events that readers
// use. The log is append-only; a resume truncates it to the length that it had at the checkpoint, and
// appends the later events that it keeps (event-marks.ts).
import { z } from 'zod';

/** A line of `events.jsonl`. */
export const eventSchema = z.object({
  time: z.string(),
  step: z.number().int(),
  kind: z.enum([
    'state',
    'checkpoint',
    'memory_plan',
    'longest_batch',
    'resume',
    'download',
    'environment_error',
    'environment_version',
    'environment_reload',
    'environment_ran',
    'environment_refused',
    'environment_mended',
    'environment_debug',
    'plugin_reload',
    'plugin_refused',
    'plugin_mended',
    'plugin_version',
    'plugin_error',
    'plugin_charts',
    'alarm',
    'setting',
    'warning',
    'early_stop',
  ]),
  message: z.string(),
  data: z.record(z.string(), z.unknown()).optional(),
});
export type RunEvent = z.infer<typeof eventSchema>;

/** `data` of a `setting` event: a configuration value that changed, effective from the step after the event. */
export const settingChangeSchema = z.object({ key: z.string(), from: z.number(), to: z.number() });
export type SettingChange = z.infer<typeof settingChangeSchema>;

const sourceProblemSchema = z.object({
  file: z.string().describe('absolute path'),
  line: z.number().int(),
  column: z.number().int(),
  endLine: z.number().int().optional(),
  endColumn: z.number().int().optional(),
  message: z.string(),
  kind: z.enum(['build', 'type', 'load']),
});

/** `data` of `environment_reload`: episodes that start after the event run the new code. */
export const environmentReloadSchema = z.object({
  tag: z.string(),
  from: z.string().describe('version of the environment code before the change'),
  to: z.string(),
  files: z.array(z.string()).describe('absolute paths of the saved files'),
  step: z.number().int().describe('the first step whose episodes may run the new code'),
  ms: z.number().describe('milliseconds from the save until the code is in use'),
});
/** `data` of `environment_ran`: `step` is the first step whose training episodes ran the edited code. */
export const environmentRanSchema = z.object({ tag: z.string(), version: z.string(), step: z.number().int() });
/**
 * `data` of `environment_refused`: the code on disk is invalid and not used. The tag's next `environment_mended` or
 * `environment_reload` event reports that the code on disk is valid again.
 */
export const environmentRefusedSchema = z.object({
  tag: z.string(),
  version: z.string().describe('version of the environment code that remains in use'),
  problems: z.array(sourceProblemSchema),
});
/** `data` of `environment_error`: an episode ended because environment code failed. */
export const environmentErrorSchema = z.object({
  tag: z.string(),
  seed: z.number(),
  kind: z.string(),
  at: z.string().optional().describe('location of the failure in the source, as file:line'),
  episodes: z.number().int().optional().describe('number of episodes that this event reports; default 1'),
});
/**
 * `data` of `environment_version`: a run was resumed, and the environment code on disk differs from the code that ran
 * before the checkpoint.
 */
export const environmentVersionSchema = z.object({ tag: z.string(), from: z.string(), to: z.string() });

/** `data` of `plugin_reload`: the steps from `step` on use the new code. */
export const pluginReloadSchema = z.object({
  plugin: z.string().describe('path of the plug-in, as it is configured'),
  from: z.string().describe('version of the code before the change'),
  to: z.string(),
  step: z.number().int(),
});
/** `data` of `plugin_refused`: the code on disk is invalid and not used, until a later `plugin_mended` or `plugin_reload`. */
export const pluginRefusedSchema = z.object({
  plugin: z.string(),
  version: z.string().describe('version of the code that remains in use'),
  problems: z.array(sourceProblemSchema),
});
/** `data` of `plugin_version`: a run was resumed, and the code on disk differs from the code before the checkpoint. */
export const pluginVersionSchema = z.object({ plugin: z.string(), from: z.string(), to: z.string() });
