// Reads the configuration of a run folder in two forms: as stored in the manifest, and with the changes of settings
// that the run's events record.
import { jsonOrNothing } from '../../common/json';
import { eventSchema } from '../../run-data/run-events';
import { runFiles } from '../../run-data/run-file-names';
import type { RunEvent } from '../../run-data/run-events';
import { configInEffect, settingKeys, valueAt } from '../../run-data/changeable-settings';
import { UserError } from '../../common/user-error';
import { runConfigSchema } from '../config/schema';
import type { RunConfig } from '../config/schema';
import { readDamagedLines, readValues } from '../store/line-log';
import type { RunFolder } from '../store/run-folder';

/**
 * Returns the remedy for the error message about a run whose configuration this version cannot read. The remedy is to
 * start a new run from the old run's checkpoint.
 */
const startFrom = (path: string): string =>
  `start a new run with trainer.resume_mode=resume_path and trainer.resume_from_path=${path}`;

/**
 * Returns the configuration in the manifest.
 * @throws UserError if the run was created by a version with other configuration keys; the message ends with `remedy`
 */
export function storedConfig(
  { id, path, manifest }: Pick<RunFolder, 'id' | 'path' | 'manifest'>,
  remedy = startFrom(path),
): RunConfig {
  const parsed = runConfigSchema.safeParse(manifest.config);
  if (parsed.success) return parsed.data;
  const [{ path: key, message }] = parsed.error.issues;
  throw new UserError(
    `run ${id}: its configuration was written by an incompatible version (${key.join('.')}: ${message}): ${remedy}`,
  );
}

/** Whether a configuration belongs to an evaluation. The configuration may be of any version. */
export const onlyEvaluates = (config: unknown): boolean => valueAt(config, 'trainer.val_only') === true;

/** Returns the configuration with all changes that the run's events record. @throws UserError like `storedConfig` */
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

/**
 * Like `presentConfig`, but does not validate the configuration, so that configurations of other versions can be read.
 */
export function changedConfig(folder: RunFolder): Readonly<Record<string, unknown>> {
  return configInEffect(folder.manifest.config, eventsOf(folder));
}

/**
 * Like `presentConfig`, but skips events that cannot be read. For use before a resume has checked the logs for damage
 * (resumed-logs.ts).
 */
export function readableConfig(folder: RunFolder): RunConfig {
  const { id, path, manifest } = folder;
  const config = configInEffect(manifest.config, readableEvents(folder.file(runFiles.events)));
  return storedConfig({ id, path, manifest: { ...manifest, config: { ...config } } });
}

/** Yields the readable events of a log between bytes `from` and `end`; `from` must be the end of a line. */
export function* readableEvents(file: string, { from = 0, end = Infinity } = {}): Generator<RunEvent> {
  for (const { text, next } of readDamagedLines(file, from)) {
    if (next > end) return;
    const { data } = eventSchema.safeParse(jsonOrNothing(text));
    if (data) yield data;
  }
}

/** Yields the events of a run. Throws a UserError at an unreadable event. */
function* eventsOf(folder: RunFolder): Generator<RunEvent> {
  for (const { value } of readValues(folder.file(runFiles.events), line => eventSchema.parse(line))) yield value;
}
