// Checks a run folder before code from it is executed and before files in it are written. The files that determine the
// executed code must be signed by this user's trainer or accepted by the user. The folder must not contain links, which
// could redirect writes to other folders (node/run-trust.ts).
import { readdirSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import { runFiles } from '../../run-data/run-file-names';
import { untrusted, type RunCode } from '../../node/run-trust';
import { UserError } from '../../common/user-error';
import { storeError } from '../../node/files';
import type { RunFolder } from '../store/run-folder';

/** The CLI flag by which a user accepts a file once. */
export const trustFlag = '--trust-code';

/**
 * Requires that this product trained the run, because a run of another trainer has neither a model nor checkpoints here.
 * @throws UserError that names the trainer
 */
export function requireOwn({ id, manifest: { trainer } }: Pick<RunFolder, 'id' | 'manifest'>): void {
  if (trainer)
    throw new UserError(
      `run ${id} belongs to ${trainer.name}, and only its files are shown here: control it with ${trainer.name}, or choose a run that RAGEN Workbench has trained`,
    );
}

/**
 * Requires that a run's manifest is signed or accepted. Must be called before the trainer executes environments, models
 * or programs that the manifest names.
 * @param trustCode sha256 of a manifest that the user accepts once
 * @param remedy instruction in the message; `with --trust-code <sha256>` is appended to it
 * @throws UserError that names the manifest and its hash if it is neither signed nor accepted
 */
export function requireTrusted(
  { id, path, manifest, manifestCode }: Pick<RunFolder, 'id' | 'path' | 'manifest' | 'manifestCode'>,
  { trustCode, remedy = 'read the file, then repeat the command' }: { trustCode?: string; remedy?: string },
): void {
  requireOwn({ id, manifest });
  if (untrusted(id, [manifestCode], trustCode === undefined ? [] : [trustCode]).length === 0) return;
  const { file, sha256 } = manifestCode;
  throw new UserError(
    `run ${id}: ${join(path, file)} (sha256 ${sha256}) names the code to execute and was not written to this folder by your trainer (${runFiles.signature} does not sign it): ${remedy} with ${trustFlag} ${sha256}`,
  );
}

/**
 * Requires that code in a run folder is signed or accepted. Must be called before the code is executed.
 * @param code the code, with exactly the bytes to be executed
 * @param accepted sha256 hashes that the user accepts once
 * @throws UserError that names the first file that is neither signed nor accepted
 */
export function requireTrustedCode(
  { id, path }: Pick<RunFolder, 'id' | 'path'>,
  code: readonly RunCode[],
  accepted: readonly string[],
): void {
  const [first] = untrusted(id, code, accepted);
  if (first)
    throw new UserError(
      `run ${id}: ${join(path, first.file)} (sha256 ${first.sha256}) was not written to this folder by your trainer and is not executed: repeat the action in the editor, which shows the file first`,
    );
}

/**
 * Checks that a run folder contains only files, folders and sockets.
 * @throws UserError if the folder contains a link, which would redirect reads and writes, or a pipe or device, on which
 * a read would block
 */
export function requireNoLinks({ id, path }: Pick<RunFolder, 'id' | 'path'>): void {
  const other = otherThanFiles(path);
  if (other?.isLink)
    throw new UserError(
      `run ${id}: ${other.path} is a link, which a run folder must not contain: replace it by its target`,
    );
  if (other) throw new UserError(`run ${id}: ${other.path} is a pipe or a device, which no trainer writes: remove it`);
}

/**
 * Returns the first entry below a folder, at any depth, that is neither a file, a folder nor a socket (a killed trainer
 * leaves its socket behind). Files that are deleted during the search are skipped.
 */
function otherThanFiles(folder: string): { path: string; isLink: boolean } | undefined {
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink()) return { path, isLink: true };
    const below = entry.isDirectory() ? otherThanFiles(path) : undefined;
    if (below) return below;
    if (entry.isFIFO() || entry.isCharacterDevice() || entry.isBlockDevice()) return { path, isLink: false };
  }
  return undefined;
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw storeError('read', folder, error);
  }
}
