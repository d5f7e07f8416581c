// The user's storage, outside all workspaces and run folders. It contains the key that signs the output of this user's
// trainer, and the list of accepted files from other people's run folders. Other users cannot read it.
// `RAGEN_USER_STORAGE` overrides the folder. Must not import `vscode`: shared by editor, terminal and trainer.
import { randomBytes } from 'node:crypto';
import { appendFileSync, constants, copyFileSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { readBoundedSync } from './bounded-file';
import { jsonOrNothing } from '../common/json';
import { UserError } from '../common/user-error';

const keyName = 'signing-key';
const keyBytes = 32;
const acceptedName = 'accepted-code.jsonl';

/** Returns the absolute path of the user's storage. */
export function userStorage(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string {
  if (env.RAGEN_USER_STORAGE) return env.RAGEN_USER_STORAGE;
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local'), 'ragen-workbench');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'ragen-workbench');
  return join(env.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'ragen-workbench');
}

/** Returns the user's signing key, 32 bytes; undefined if it does not exist or cannot be read. */
export function signingKey(): Buffer | undefined {
  try {
    const key = readBoundedSync(join(userStorage(), keyName), { most: 4096, within: null });
    return key.length === keyBytes ? key : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the user's signing key; creates it if it does not exist. If several processes create the key at the same
 * time, all return the same key. Each process writes a temporary file and links it to the final name; only the first
 * link succeeds.
 * @throws UserError if the storage cannot be written, or contains a damaged key
 */
export function signingKeyOrNew(): Buffer {
  const known = signingKey();
  if (known) return known;
  const folder = userStorage();
  const file = join(folder, keyName);
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(temporary, randomBytes(keyBytes), { flag: 'wx', mode: 0o600, flush: true });
    try {
      moveIntoPlace(temporary, file);
    } finally {
      rmSync(temporary, { force: true });
    }
  } catch (error) {
    throw new UserError(
      `${file} cannot be created (${(error as Error).message}): set the environment variable RAGEN_USER_STORAGE to a writable folder`,
    );
  }
  const made = signingKey();
  if (made) return made;
  throw new UserError(
    `${file} does not contain a key of ${keyBytes} bytes: remove the file, so that a new key can be created`,
  );
}

/**
 * Hard-links `temporary` to the path `file`, unless `file` exists. Copies `temporary` instead if the file system has no
 * hard links.
 */
function moveIntoPlace(temporary: string, file: string): void {
  for (const put of [() => linkSync(temporary, file), () => copyFileSync(temporary, file, constants.COPYFILE_EXCL)]) {
    try {
      return put();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST') return;
      if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    }
  }
}

const acceptedSchema = z.object({ run: z.string(), file: z.string(), sha256: z.string() });
/**
 * A file of a run folder: the run id, the file's path in the folder (forward slashes), and the SHA-256 (hex) of its
 * bytes.
 */
export type AcceptedFile = z.infer<typeof acceptedSchema>;

/** Maximum bytes of the list of accepted files. */
const mostAcceptedBytes = 2 ** 26;

/** Returns the files that the user has accepted. Damaged lines are ignored. */
export function acceptedFiles(): AcceptedFile[] {
  let text: string;
  try {
    text = readBoundedSync(join(userStorage(), acceptedName), { most: mostAcceptedBytes, within: null }).toString(
      'utf8',
    );
  } catch {
    return [];
  }
  return text.split('\n').flatMap(line => acceptedSchema.safeParse(jsonOrNothing(line)).data ?? []);
}

/** Records files as accepted. @throws UserError when the storage cannot be written */
export function acceptFiles(files: readonly AcceptedFile[]): void {
  const file = join(userStorage(), acceptedName);
  const lines = files.map(({ run, file: name, sha256 }) => `${JSON.stringify({ run, file: name, sha256 })}\n`).join('');
  try {
    mkdirSync(userStorage(), { recursive: true, mode: 0o700 });
    appendFileSync(file, lines, { mode: 0o600, flush: true });
  } catch (error) {
    throw new UserError(
      `${file} cannot be written (${(error as Error).message}): set the environment variable RAGEN_USER_STORAGE to a writable folder`,
    );
  }
}
