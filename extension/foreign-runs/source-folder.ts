// The folder or file from which a run is attached, as a bounded listing. Links are not followed, and only files of the
// listing are opened, so no text in a file can name another file. Folders that contain no records, such as checkpoints
// and repositories, are left out. Modification times and sizes come from one walk, which `refresh` repeats.
import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { jsonOrNothing } from '../common/json';
import { UserError } from '../common/user-error';
import { isMissing, listBounded, readBounded } from '../node/bounded-file';
import { storeError } from '../node/files';

/** Maximum number of files in a listing, and maximum depth of folders. */
export const mostFiles = 200_000;
const mostDepth = 10;
/** Maximum number of files into which a log is rotated. */
const mostRotated = 1000;
/** Number of files and of folders that are looked at concurrently: on a network drive, each look is a round trip. */
const [filesAtOnce, foldersAtOnce] = [64, 8];

/** Maximum bytes of a document, such as a configuration, that is read completely. */
const mostDocumentBytes = 64 * 2 ** 20;

/** Folders that are not searched. */
const skipped = new Set(['.git', '.ragen', 'node_modules', '__pycache__', '.venv', 'site-packages', 'broadcasts']);

export interface SourceFile {
  size: number;
  mtimeMs: number;
}

export class SourceFolder {
  private listing = new Map<string, SourceFile>();
  /** Whether the folder has more files than are listed. */
  cut = false;

  private constructor(
    /** Absolute path of the folder, without links. */
    readonly root: string,
    /** Name of the only file that is used; undefined if a folder was given. */
    readonly only: string | undefined,
  ) {}

  /** Opens a folder, or a single file. Throws a UserError if the path is neither. */
  static async open(path: string): Promise<SourceFolder> {
    const given = resolve(path);
    try {
      const target = await realpath(given);
      const stats = await lstat(target);
      if (!stats.isDirectory() && !stats.isFile())
        throw new UserError(`${given} is neither a folder nor a file: give the folder into which the trainer writes`);
      const source = stats.isDirectory()
        ? new SourceFolder(target, undefined)
        : new SourceFolder(dirname(target), basename(target));
      await source.refresh();
      return source;
    } catch (error) {
      throw storeError('read', given, error);
    }
  }

  /** Absolute path of what was given: the folder, or the file. */
  get path(): string {
    return this.only === undefined ? this.root : join(this.root, this.only);
  }

  /** Relative paths with `/`, sorted. */
  get files(): string[] {
    return [...this.listing.keys()];
  }

  /** Returns size and modification time; undefined for a file that is not listed. */
  stat(name: string): SourceFile | undefined {
    return this.listing.get(name);
  }

  /** Returns the listed files whose path matches, with the match, sorted by path. */
  matching(pattern: RegExp): { name: string; match: RegExpExecArray }[] {
    return this.files.flatMap(name => {
      const match = pattern.exec(name);
      return match ? [{ name, match }] : [];
    });
  }

  /** Absolute path of a listed file. */
  at(name: string): string {
    if (!this.listing.has(name)) throw new UserError(`${join(this.root, name)} does not exist: check the path`);
    return join(this.root, name);
  }

  /**
   * Reads the listing again. If the folder cannot be read, for example because a drive is disconnected, the listing stays
   * as it was.
   */
  async refresh(): Promise<void> {
    const found = new Map<string, SourceFile>();
    try {
      if (this.only === undefined) await this.walk('', 0, found);
      else await this.addLog(this.only, found);
    } catch (error) {
      if (this.listing.size === 0) throw error;
      return;
    }
    this.cut = found.size >= mostFiles;
    this.listing = new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  private async walk(folder: string, depth: number, found: Map<string, SourceFile>): Promise<void> {
    let entries;
    try {
      entries = await listBounded(join(this.root, folder), { most: mostFiles, within: this.root });
    } catch (error) {
      if (depth === 0) throw error;
      return; // removed or unreadable
    }
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    const pathsOf = (wanted: 'file' | 'folder'): string[] =>
      entries.flatMap(({ name, kind }) => (kind === wanted ? [folder === '' ? name : `${folder}/${name}`] : []));
    const files = pathsOf('file');
    for (let i = 0; i < files.length && found.size < mostFiles; i += filesAtOnce)
      await Promise.all(files.slice(i, i + filesAtOnce).map(path => this.add(path, found)));
    if (depth >= mostDepth) return;
    const folders = pathsOf('folder').filter(path => !skipped.has(basename(path)));
    for (let i = 0; i < folders.length && found.size < mostFiles; i += foldersAtOnce)
      await Promise.all(folders.slice(i, i + foldersAtOnce).map(path => this.walk(path, depth + 1, found)));
  }

  /** Adds a file, and the files into which it was rotated (row-source.ts). */
  private async addLog(name: string, found: Map<string, SourceFile>): Promise<void> {
    await this.add(name, found);
    for (let i = 1; i <= mostRotated; i++) {
      await this.add(`${name}.${i}`, found);
      if (!found.has(`${name}.${i}`)) return;
    }
  }

  private async add(name: string, found: Map<string, SourceFile>): Promise<void> {
    try {
      const stats = await lstat(join(this.root, name));
      if (stats.isFile() && found.size < mostFiles) found.set(name, { size: stats.size, mtimeMs: stats.mtimeMs });
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  /** Returns a listed document as text; undefined if it is missing, too large or unreadable. */
  async text(name: string): Promise<string | undefined> {
    if (!this.listing.has(name)) return undefined;
    try {
      return (await readBounded(join(this.root, name), { most: mostDocumentBytes, within: this.root })).toString(
        'utf8',
      );
    } catch {
      return undefined;
    }
  }

  /** Returns a listed JSON document; undefined if it is missing or invalid. */
  async json(name: string): Promise<unknown> {
    const text = await this.text(name);
    return text === undefined ? undefined : jsonOrNothing(text);
  }
}
