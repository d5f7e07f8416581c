// The pictures of a run's own episodes: `pictures/<sha256>.png` or `.jpg` in the run folder. A picture is stored once,
// however many turns and episodes show it; episodes name it. Files are written under a temporary name and then renamed,
// so a file of this name is complete. Pictures are never removed while the run exists.
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pictureEnding } from '../common/picture-type';
import { isStoredPicture, runFiles } from '../run-data/run-file-names';
import { UserError } from '../common/user-error';
import { readBounded } from './bounded-file';
import { storeError } from './files';

/** Returns the name under which a PNG or JPEG file is stored: its SHA-256, and the ending of its format. */
export function pictureName(bytes: Uint8Array): string {
  return `${createHash('sha256').update(bytes).digest('hex')}.${pictureEnding(bytes)}`;
}

export class PictureStore {
  /** Absolute path of the folder that contains the files. */
  readonly folder: string;
  /** The writes in progress, by name. */
  private readonly writes = new Map<string, Promise<void>>();

  /** @param runFolder absolute path of the run folder, or of another folder that is to contain `pictures` */
  constructor(private readonly runFolder: string) {
    this.folder = join(runFolder, runFiles.pictures);
  }

  /**
   * Stores a PNG or JPEG file, unless it is already stored. Returns its name.
   * @param name the file's `pictureName`, if the caller knows it
   * @throws UserError if the file cannot be written
   */
  async add(bytes: Uint8Array, name = pictureName(bytes)): Promise<string> {
    let writing = this.writes.get(name);
    if (!writing) {
      writing = this.write(name, bytes).finally(() => this.writes.delete(name));
      this.writes.set(name, writing);
    }
    await writing;
    return name;
  }

  /** Reads a stored picture of at most `most` bytes. @throws UserError if it is missing or cannot be read */
  async read(name: string, most: number): Promise<Buffer> {
    const file = join(this.folder, name);
    if (!isStoredPicture(name)) throw new UserError(`store: ${name} is not the name of a picture: use a sha256 name`);
    try {
      return await readBounded(file, { most, within: this.runFolder });
    } catch (error) {
      throw storeError('read', file, error);
    }
  }

  private async write(name: string, bytes: Uint8Array): Promise<void> {
    const file = join(this.folder, name);
    try {
      // A file that was renamed shortly before a power failure may be empty.
      if ((await stat(file)).size === bytes.length) return;
    } catch {
      // not stored yet
    }
    const temporary = join(this.folder, `.tmp-${randomBytes(6).toString('hex')}`);
    try {
      await mkdir(this.folder, { recursive: true });
      await writeFile(temporary, bytes, { flag: 'wx' });
      await rename(temporary, file);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw storeError('write', file, error);
    }
  }
}
