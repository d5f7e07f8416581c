// The user's own storage, which is in no workspace and in no run folder: the key that signs what this user's trainer makes, and the files
// of other people's run folders that the user has accepted. Only its owner may read it. `RAGEN_USER_STORAGE` names another folder.
// No `vscode` here: editor, terminal and trainer share it.
import { randomBytes } from 'node:crypto';
import { appendFileSync, constants, copyFileSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { readBoundedSync } from './bounded-file';
import { jsonOrNothing } from './json';
import { UserError } from './user-error';

const keyName = 'signing-key';
const keyBytes = 32;
const acceptedName = 'accepted-code.jsonl';

/** Absolute path of the user's storage. */
export function userStorage(
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
): string {
  if (env.RAGEN_USER_STORAGE) return env.RAGEN_USER_STORAGE;
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local'), 'ragen-workbench');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'ragen-workbench');
  return join(env.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'ragen-workbench');
}

/** The user's signing key, 32 bytes; undefined where none was made yet or it cannot be read. */
export function signingKey(): Buffer | undefined {
  try {
    const key = readBoundedSync(join(userStorage(), keyName), { most: 4096, within: null });
    return key.length === keyBytes ? key : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The user's signing key, made where there is none. Of processes that make it at once all get the same: the key is written beside its
 * place and linked there, which fails where another process was faster.
 * @throws UserError where the storage cannot be written, or holds a damaged key
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
      putInPlace(temporary, file);
    } finally {
      rmSync(temporary, { force: true });
    }
  } catch (error) {
    throw new UserError(
      `${file} cannot be made (${(error as Error).message}): name a writable folder in RAGEN_USER_STORAGE`,
    );
  }
  const made = signingKey();
  if (made) return made;
  throw new UserError(`${file} is no key of ${keyBytes} bytes: remove it, and runs are signed with a new one`);
}

/** Gives a file a second name unless that is taken. Where the file system has no links it is copied. */
function putInPlace(temporary: string, file: string): void {
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
/** A file of a run folder, by the run's id, its name in the folder (forward slashes) and the sha256 (hex) of its bytes. */
export type AcceptedFile = z.infer<typeof acceptedSchema>;

/** Bytes of the list of accepted files. */
const mostAcceptedBytes = 2 ** 26;

/** The files that the user has accepted. A line that is damaged accepts nothing. */
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

/** Remembers files as accepted. @throws UserError where the storage cannot be written */
export function acceptFiles(files: readonly AcceptedFile[]): void {
  const file = join(userStorage(), acceptedName);
  const lines = files.map(({ run, file: name, sha256 }) => `${JSON.stringify({ run, file: name, sha256 })}\n`).join('');
  try {
    mkdirSync(userStorage(), { recursive: true, mode: 0o700 });
    appendFileSync(file, lines, { mode: 0o600, flush: true });
  } catch (error) {
    throw new UserError(
      `${file} cannot be written (${(error as Error).message}): name a writable folder in RAGEN_USER_STORAGE`,
    );
  }
}
