// Checks the logs of a run on resume. The weights do not depend on the logs. The logs are results, however, so a run
// with a damaged log cannot be resumed until the user accepts the damage (`--accept-damaged-logs`). The damaged file is
// then copied to `damaged/`, its readable lines are kept, and an event reports the damage. Even then, the settings in
// events.jsonl must match those of the checkpoint.
import { copyFileSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { runFiles } from '../../run-data/run-file-names';
import { configInEffect } from '../../run-data/changeable-settings';
import { UserError } from '../../common/user-error';
import type { StoredCheckpoint } from '../store/checkpoint';
import { rebuildIndex } from '../store/episode-index-log';
import { makeFolderSync, replaceFile, storeError } from '../../node/files';
import { readDamagedLines, readLines } from '../store/line-log';
import { checkLogs, cutUncovered, isGone } from '../store/log-ledger';
import type { LogDamage } from '../store/log-ledger';
import type { RunFolder } from '../store/run-folder';
import { readableEvents, settingsOf } from './stored-config';

interface Acceptance {
  accept: boolean;
  /** The command that resumes the run, without `--accept-damaged-logs`, for messages. */
  command: string;
}

/**
 * The result of checking the logs: notes for the user, and for each log (by file name) the number of bytes to keep from
 * its beginning.
 */
interface AcceptedLogs {
  notes: string[];
  offsets: Record<string, number>;
}

/** Folder for copies of damaged logs, relative to the run folder. */
const setAside = 'damaged';

/**
 * Checks the logs up to a checkpoint. Must be called before any log is truncated.
 * @throws UserError if there is damage that the user did not accept; the message names the damage
 */
export async function acceptLogs(
  folder: RunFolder,
  checkpoint: StoredCheckpoint | null,
  { accept, command }: Acceptance,
): Promise<AcceptedLogs> {
  if (checkpoint === null) {
    refuseLostCheckpoints(folder);
    return { notes: [], offsets: {} };
  }
  const { offsets, log_chain, schema, step } = checkpoint.manifest;
  if (schema === 1) {
    refuseOtherSettings(folder, checkpoint, offsets[runFiles.events]);
    return {
      notes: [
        `checkpoint ${step} and the logs before it were written without checksums, so they could not be verified`,
      ],
      offsets,
    };
  }
  const mark = { offset: offsets[runFiles.checksums] ?? 0, chain: log_chain };
  const { damages, covered } = await checkLogs(folder.path, mark);
  const { damaged, derived, notes } = sorted(damages);
  if (damaged.length > 0 && !accept) throw refusal(folder, damaged, command);
  const kept: Record<string, number> = { ...offsets };
  for (const { file } of damaged) Object.assign(kept, await salvage(folder, file, step));
  refuseOtherSettings(folder, checkpoint, kept[runFiles.events]);
  for (const { file } of derived) remake(folder, file);
  if (damaged.length > 0) kept[runFiles.checksums] = 0;
  else await cutUncovered(folder.path, covered);
  return { notes: [...notes, ...damaged.map(accepted)], offsets: kept };
}

/**
 * Like `acceptLogs`, but for an evaluation. An evaluation resumes from its finished episodes, because it has no
 * checkpoint.
 */
export async function acceptEvaluation(folder: RunFolder, { accept, command }: Acceptance): Promise<AcceptedLogs> {
  const ledger = folder.file(runFiles.checksums);
  const offsets = { [runFiles.checksums]: existsSync(ledger) ? statSync(ledger).size : 0 };
  if (!folder.verifySeal().sealed && !existsSync(ledger))
    return {
      notes: ['this evaluation was begun without checksums, so its finished episodes could not be verified'],
      offsets,
    };
  const isEpisodes = (file: string): boolean => file.startsWith(`${runFiles.episodes}/`);
  const results = `${runFiles.episodes}/val-000000.jsonl`;
  const { damages, covered } = existsSync(ledger)
    ? await checkLogs(folder.path, null, isEpisodes)
    : { damages: [{ file: runFiles.checksums, how: isGone, gone: false }], covered: new Map<string, number>() };
  const missing = damages.map(damage => ({ ...damage, gone: false }));
  if (missing.length > 0 && !accept) throw refusal(folder, missing, command);
  if (missing.length === 0) {
    await cutUncovered(folder.path, new Map([[results, 0], ...covered])); // episodes without checksums are played again
    return { notes: [], offsets };
  }
  for (const { file } of missing) await salvage(folder, file, 0);
  return { notes: missing.map(accepted), offsets: {} };
}

/**
 * Divides damaged logs into three kinds, which a resume treats differently: logs to repair, files to rebuild from other
 * files, and missing files. A missing file of episodes, diagnoses or TensorBoard events is only mentioned in a note,
 * because the user has probably deleted it to free space.
 */
function sorted(damages: readonly LogDamage[]): {
  damaged: LogDamage[];
  derived: LogDamage[];
  notes: string[];
} {
  const derived = damages.filter(({ file }) => isDerived(file));
  const removed = damages.filter(({ file, gone }) => gone && file.includes('/') && !isDerived(file));
  const note = `${removed.length} result files are missing, such as ${removed[0]?.file}`;
  return {
    damaged: damages.filter(damage => !removed.includes(damage) && !derived.includes(damage)),
    derived,
    notes: removed.length > 0 ? [note] : [],
  };
}

/** Whether a file can be rebuilt from other files. */
const isDerived = (file: string): boolean => file === runFiles.columns || file === runFiles.episodeIndex;

/**
 * Rebuilds a derived file. The file metrics.columns is only deleted here; the code that writes this file rebuilds it
 * when it opens the file. The episode index is rebuilt from the episode files.
 */
function remake(folder: RunFolder, file: string): void {
  if (file === runFiles.episodeIndex) {
    makeFolderSync(folder.file(runFiles.episodes), folder.path); // the user may have deleted the folder
    rebuildIndex(folder.file(file), folder.file(runFiles.episodes));
  } else rmSync(folder.file(file), { force: true });
}

function refusal(folder: RunFolder, [first, ...others]: readonly LogDamage[], command: string): UserError {
  const more = others.length > 0 ? ` (and ${others.map(({ file }) => file).join(', ')})` : '';
  return new UserError(
    `store: ${folder.file(first.file)} ${first.how}${more}: restore the file or, to continue with its readable lines, run: ${command} --accept-damaged-logs`,
  );
}

const accepted = ({ file, how }: LogDamage): string =>
  how === isGone
    ? `${file} ${how}; the user accepted the damage`
    : `${file} ${how}; the user accepted the damage, and the damaged file is in ${setAside}/`;

/**
 * Throws a UserError if the events record a saved checkpoint but the run has no checkpoint left. Without this check,
 * the run would start again from the beginning and overwrite its results.
 */
function refuseLostCheckpoints(folder: RunFolder): void {
  for (const { text } of readLines(folder.file(runFiles.events)))
    if (text.includes('"kind":"checkpoint"'))
      throw new UserError(
        `store: ${folder.file(runFiles.checkpoints)} contains no checkpoint, although the run has saved some: restore one, or start a new run`,
      );
}

/**
 * Copies a damaged file to `damaged/`, then keeps only its readable lines up to `step`. Returns the new length of the
 * file, by file name.
 */
async function salvage(folder: RunFolder, file: string, step: number): Promise<Record<string, number>> {
  const path = folder.file(file);
  if (!existsSync(path)) return { [file]: 0 };
  const copy = join(folder.file(setAside), file.replaceAll('/', '-'));
  try {
    mkdirSync(folder.file(setAside), { recursive: true });
    copyFileSync(path, copy);
  } catch (error) {
    throw storeError('copy', path, error);
  }
  if (!file.endsWith('.jsonl')) return { [file]: statSync(path).size };
  await replaceFile(path, readableLines(path, step));
  return { [file]: statSync(path).size };
}

/**
 * Yields the readable lines of a damaged log up to `step`, in chunks of about 1 MiB, because a log may be larger than
 * memory.
 */
function* readableLines(path: string, step: number): Generator<Buffer> {
  let held = '';
  for (const { text } of readDamagedLines(path)) {
    if (stepOf(text) > step) continue;
    held += `${text}\n`;
    if (held.length < 2 ** 20) continue;
    yield Buffer.from(held);
    held = '';
  }
  yield Buffer.from(held);
}

/** Returns the step of a line; Infinity if the line cannot be parsed. */
function stepOf(line: string): number {
  try {
    const { step } = JSON.parse(line) as { step?: unknown };
    return typeof step === 'number' ? step : Infinity;
  } catch {
    return Infinity;
  }
}

/** Throws a UserError if the settings in the events up to byte `end` differ from those stored in the checkpoint. */
function refuseOtherSettings(folder: RunFolder, { manifest, folder: path }: StoredCheckpoint, end = 0): void {
  const { settings } = manifest.state as { settings?: Record<string, number> };
  if (settings === undefined) return; // checkpoint of an earlier version
  const file = folder.file(runFiles.events);
  const found = settingsOf(configInEffect(folder.manifest.config, readableEvents(file, { end })));
  const key = Object.keys(settings).find(each => settings[each] !== found[each]);
  if (key === undefined) return;
  throw new UserError(
    `store: ${file} sets ${key} to ${found[key]}, but ${path} was trained with ${settings[key]}: restore events.jsonl, or start a new run with trainer.resume_mode=resume_path`,
  );
}
