// Rolls a run folder back to the end of a step, before a resume: truncates the logs to the checkpoint's offsets, and
// removes files of later steps. Also removes temporary files left by a crash. `removeLater` in checkpoint-writer.ts
// removes the checkpoints of later steps.
import { existsSync, statSync } from 'node:fs';
import { rm, truncate } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runFiles } from '../../run-data/run-file-names';
import { UserError } from '../../common/user-error';
import { listBoundedSync } from '../../node/bounded-file';
import { fileSystem, isTemporary, makeFolder, storeError } from '../../node/files';
import { mostEntries, namesInRunSync } from '../../node/read-run-file';
import { LineLog, readLines } from './line-log';
import { inTensorboard } from './run-folder';
import type { RunFolder } from './run-folder';

/** Maximum depth of folders in a run folder; the stored sources of environments are the deepest. */
const deepest = 64;

/**
 * Rolls the folder back to the end of `step`, or to the state before the work of step 0 if `step` is null: truncates
 * the logs, including TensorBoard's, to `offsets` (by file name), and removes episodes, diagnostics and timelines of
 * later steps. Episodes of step 0 are kept, because an evaluation continues them. If it fails, it can be called again.
 * The logs must have been synced before the checkpoint was written. TimelineWriter.continueAfter decides on the timeline
 * of the step that was in progress.
 */
export async function rollBack(
  folder: RunFolder,
  step: number | null,
  offsets: Readonly<Record<string, number>>,
): Promise<void> {
  try {
    await cutToStep(folder, step, offsets);
  } catch (error) {
    throw storeError('roll back', folder.path, error);
  }
}

async function cutToStep(
  folder: RunFolder,
  step: number | null,
  offsets: Readonly<Record<string, number>>,
): Promise<void> {
  await makeFolder(folder.file(runFiles.episodes), fileSystem, folder.path); // the user may have deleted the folder
  for (const name of [runFiles.metrics, runFiles.events, runFiles.checksums]) {
    if (name === runFiles.checksums && !existsSync(folder.file(name))) continue; // run of a version without checksums
    const log = new LineLog(folder.file(name), { fsync: 'explicit' });
    try {
      log.truncateTo(offsets[name] ?? 0);
    } finally {
      log.close();
    }
  }
  for (const name of namesInRunSync(folder.path, runFiles.tensorboard)) {
    const file = join(folder.file(runFiles.tensorboard), name);
    const offset = offsets[inTensorboard(name)] ?? 0;
    if (offset === 0) await rm(file, { force: true });
    else if (statSync(file).size > offset) await truncate(file, offset);
  }
  cutLines(folder, runFiles.scores, step ?? -1);
  cutLines(folder, runFiles.timelineSteps, step ?? -1);
  await removeTemporaries(folder);
  for (const name of [runFiles.episodes, runFiles.diagnostics, runFiles.timeline]) {
    const later = namesInRunSync(folder.path, name).filter(
      file => Number(/^[a-z][\w-]*-(\d{6,})\.\w+$/.exec(file)?.[1] ?? 0) > (step ?? 0),
    );
    for (const file of later) await rm(join(folder.file(name), file), { force: true });
  }
}

/** Removes temporary files left by a crash, except those in `checkpoints/`, which checkpoint-writer.ts removes. */
async function removeTemporaries(folder: RunFolder): Promise<void> {
  for (const name of names(folder))
    if (isTemporary(basename(name)) && !name.startsWith(runFiles.checkpoints))
      await rm(folder.file(name), { force: true });
}

/** Yields the names of all entries below the folder, at any depth. Links are not followed. */
function* names(folder: RunFolder, below = '', level = 0): Generator<string> {
  if (level > deepest)
    throw new UserError(`store: ${folder.file(below)} lies more than ${deepest} folders deep: remove it`);
  for (const { name, kind } of listBoundedSync(folder.file(below), { most: mostEntries, within: folder.path })) {
    const path = below === '' ? name : `${below}/${name}`;
    yield path;
    if (kind === 'folder') yield* names(folder, path, level + 1);
  }
}

/** Removes the lines of later steps from a log that has one line per step. */
function cutLines(folder: RunFolder, name: string, step: number): void {
  const file = folder.file(name);
  if (!existsSync(file)) return; // run of a version without this log
  const log = new LineLog(file, { fsync: 'explicit' });
  try {
    log.truncateTo(endOfStep(file, step));
  } finally {
    log.close();
  }
}

/** Returns the offset after the last line whose step is at most `step`. */
function endOfStep(file: string, step: number): number {
  let end = 0;
  for (const { text, next } of readLines(file)) {
    if (Number(/^\{"step":(\d+),/.exec(text)?.[1] ?? Infinity) > step) break;
    end = next;
  }
  return end;
}
