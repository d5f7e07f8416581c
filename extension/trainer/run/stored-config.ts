// Reads the configuration of a run folder: as stored when the run was created, resolved and validated by the version
// that created it, and as it is in effect after later changes.
import { jsonOrNothing } from '../../common/json';
import { eventSchema } from '../../run-data/run-events';
import { runFiles } from '../../run-data/run-files';
import type { RunEvent } from '../../run-data/run-events';
import { configInEffect, settingKeys, valueAt } from '../../run-data/settings';
import { UserError } from '../../common/user-error';
import { runConfigSchema } from '../config/schema';
import type { RunConfig } from '../config/schema';
import { readDamagedLines, readValues } from '../store/line-log';
import type { RunFolder } from '../store/run-folder';

/** The remedy for a run of another version, which cannot be continued. */
const startFrom = (path: string): string =>
  `start a new run with trainer.resume_mode=resume_path and trainer.resume_from_path=${path}`;

/**
 * @throws UserError, ending with `remedy`, if this version has other configuration keys than the one that created the
 * run
 */
export function storedConfig(
  { id, path, manifest }: Pick<RunFolder, 'id' | 'path' | 'manifest'>,
  remedy = startFrom(path),
): RunConfig {
  const parsed = runConfigSchema.safeParse(manifest.config);
  if (parsed.success) return parsed.data;
  const [{ path: key, message }] = parsed.error.issues;
  throw new UserError(`run ${id}: its configuration is of another version (${key.join('.')}: ${message}): ${remedy}`);
}

/** Whether a configuration of any version belongs to an evaluation, which takes no steps. */
export const onlyEvaluates = (config: unknown): boolean => valueAt(config, 'trainer.val_only') === true;

/** The configuration after all changes recorded in the run's events. @throws UserError as `storedConfig` */
export function presentConfig(folder: RunFolder, remedy?: string): RunConfig {
  const { id, path, manifest } = folder;
  return storedConfig({ id, path, manifest: { ...manifest, config: { ...changedConfig(folder) } } }, remedy);
}

/** Values of the settings that may change during training, by key. */
export const settingsOf = (config: unknown): Record<string, number> =>
  Object.fromEntries(
    settingKeys.flatMap(key => {
      const value = valueAt(config, key);
      return typeof value === 'number' ? [[key, value]] : [];
    }),
  );

/** Like `presentConfig`, for a configuration of any version, without validation. */
export function changedConfig(folder: RunFolder): Readonly<Record<string, unknown>> {
  return configInEffect(folder.manifest.config, eventsOf(folder));
}

/**
 * The configuration after the changes that can be read of the run's events. For what comes before a resume has judged
 * whether they are damaged (resumed-logs.ts). @throws UserError as `storedConfig` does
 */
export function readableConfig(folder: RunFolder): RunConfig {
  const { id, path, manifest } = folder;
  const config = configInEffect(manifest.config, readableEvents(folder.file(runFiles.events)));
  return storedConfig({ id, path, manifest: { ...manifest, config: { ...config } } });
}

/** The events of a log that can be read, up to byte `end`. */
export function* readableEvents(file: string, end = Infinity): Generator<RunEvent> {
  for (const { text, next } of readDamagedLines(file)) {
    if (next > end) return;
    const { data } = eventSchema.safeParse(jsonOrNothing(text));
    if (data) yield data;
  }
}

/** The events of a run, one at a time. */
function* eventsOf(folder: RunFolder): Generator<RunEvent> {
  for (const { value } of readValues(folder.file(runFiles.events), line => eventSchema.parse(line))) yield value;
}
