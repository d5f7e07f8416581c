// The hub cache on disk, shared with Hugging Face's own tools. <cache>/models--organisation--name/blobs/<etag> contains
// the content of the file with this etag. Only this trainer uses the subfolder `ragen/`. `ragen/<commit>/` is a
// complete model folder: links to blobs, and download.json with all file sizes. `ragen/refs/<revision>` stores the
// commit that the revision had when it was downloaded. `ragen/partial/` contains unfinished downloads. The cache's
// location depends on HF_HUB_CACHE, HF_HOME and XDG_CACHE_HOME.
import { constants } from 'node:fs';
import { copyFile, link, readdir, realpath, rename, rm, stat, symlink, mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { getHFHubCachePath, getRepoFolderName } from '@huggingface/hub';
import { z } from 'zod';
import { jsonOrNothing } from '../common/json';
import { replaceFile, storeError, syncFolder } from '../node/files';
import type { HubFile } from './hub-client';
import { readRegular } from '../node/regular-file';
import { PartialDownloads, uniqueSuffix } from './partial-downloads';
import { sizeOf, isSound, matchesEtag } from './content-checksum';

const manifestName = 'download.json';
const manifestSchema = z.object({
  repo: z.string(),
  commit: z.string(),
  files: z.array(z.object({ name: z.string(), bytes: z.number(), etag: z.string() })),
});

/** A complete model folder in the cache. */
export interface CachedModel {
  folder: string;
  commit: string;
  files: HubFile[];
}

const readText = async (file: string): Promise<string> => (await readRegular(file)).toString('utf8');

/** Returns the files that were downloaded into a cached model folder; empty for any other folder. */
export async function readDownloaded(folder: string): Promise<HubFile[]> {
  const text = await readText(join(folder, manifestName)).catch(() => '');
  return manifestSchema.safeParse(jsonOrNothing(text)).data?.files ?? [];
}

export class HubCache {
  /** The repository's folder in the cache. */
  readonly root: string;
  private readonly own: string;
  readonly partials: PartialDownloads;

  constructor(
    readonly repo: string,
    readonly cache = getHFHubCachePath(),
    type: 'model' | 'dataset' = 'model',
  ) {
    this.root = join(cache, getRepoFolderName({ type, name: repo }));
    this.own = join(this.root, 'ragen');
    this.partials = new PartialDownloads(join(this.own, 'partial'));
  }

  blob(etag: string): string {
    return join(this.root, 'blobs', etag);
  }

  async hasBlob({ etag, bytes }: HubFile): Promise<boolean> {
    return (await sizeOf(this.blob(etag))) === bytes;
  }

  /** Creates the cache folders of the repository. Must be called before any method that writes files. */
  async prepare(): Promise<void> {
    for (const folder of [join(this.root, 'blobs'), this.partials.folder, join(this.own, 'refs')])
      await mkdir(folder, { recursive: true }).catch((error: unknown) => {
        throw storeError('make', folder, error);
      });
  }

  /** Returns the commit that a revision had when it was last downloaded; null if it was never downloaded. */
  async commitOf(revision: string): Promise<string | null> {
    if (isCommit(revision)) return revision;
    return commitIn(join(this.own, 'refs', encodeURIComponent(revision)));
  }

  async keepRevision(revision: string, commit: string): Promise<void> {
    if (!isCommit(revision)) await replaceFile(join(this.own, 'refs', encodeURIComponent(revision)), commit);
  }

  /**
   * Returns the model folder of a commit if every file exists with its full size; else null. For a folder of a data
   * set, `commit` is `<commit>-<folder>`.
   */
  async complete(commit: string): Promise<CachedModel | null> {
    const folder = join(this.own, commit);
    try {
      const { files } = manifestSchema.parse(JSON.parse(await readText(join(folder, manifestName))));
      const sizes = await Promise.all(files.map(({ name }) => sizeOf(join(folder, name))));
      return files.every(({ bytes }, i) => sizes[i] === bytes) ? { folder, commit, files } : null;
    } catch {
      return null; // missing or damaged: the folder is rebuilt
    }
  }

  /**
   * Returns the first file of a model folder whose content does not match its etag; undefined if all match. A file is
   * read on its first check and again after it has changed. Throws the reason of `signal` when it is aborted.
   */
  async damagedFile({ folder, files }: CachedModel, signal?: AbortSignal): Promise<HubFile | undefined> {
    for (const file of files) {
      if (!(await isSound(join(folder, file.name), file, signal))) return file;
    }
    return undefined;
  }

  /**
   * Whether a file's content is in the cache and matches its etag. Content that does not match is removed, so that it
   * is downloaded again.
   */
  async hasSoundBlob(file: HubFile, signal?: AbortSignal): Promise<boolean> {
    if (!(await this.hasBlob(file))) return false;
    const blob = this.blob(file.etag);
    if (await isSound(blob, file, signal)) return true;
    try {
      await rm(blob, { force: true });
    } catch (error) {
      throw storeError('remove', blob, error);
    }
    return false;
  }

  /**
   * Removes a model folder whose file `file` is damaged, so that the folder is downloaded again. Removes the file's
   * blob too if the blob is damaged.
   */
  async discard({ folder }: CachedModel, file: HubFile): Promise<void> {
    const blob = this.blob(file.etag);
    try {
      if ((await sizeOf(blob)) !== null && !(await matchesEtag(blob, file))) await rm(blob, { force: true });
      await rm(folder, { recursive: true, force: true });
    } catch (error) {
      throw storeError('remove', folder, error);
    }
  }

  /**
   * Builds the model folder of a commit from local contents and moves it into place atomically, replacing an incomplete
   * folder. Files are hard links, because onnxruntime does not map a file through a symbolic link to another folder. On
   * file systems without hard links, files are symbolic links or copies.
   * @param sources path of each file's content
   */
  async assemble(commit: string, files: readonly HubFile[], sources: readonly string[]): Promise<CachedModel> {
    const folder = join(this.own, commit);
    const made = join(this.own, `.${commit}-${uniqueSuffix()}`);
    try {
      await mkdir(made, { recursive: true });
      for (const [i, { name }] of files.entries()) {
        await mkdir(dirname(join(made, name)), { recursive: true });
        await linkOrCopy(sources[i], join(made, name));
      }
      await replaceFile(
        join(made, manifestName),
        `${JSON.stringify({ repo: this.repo, commit, files: files.map(({ name, bytes, etag }) => ({ name, bytes, etag })) }, null, 1)}\n`,
      );
      await rename(made, folder).catch(async () => {
        // Another process built the folder first, or the existing folder is damaged.
        if (await this.complete(commit)) return;
        const damaged = `${made}-damaged`;
        await rename(folder, damaged);
        await rename(made, folder);
        await rm(damaged, { recursive: true, force: true });
      });
      await syncFolder(this.own);
    } catch (error) {
      throw storeError('make', folder, error);
    } finally {
      await rm(made, { recursive: true, force: true }).catch(() => undefined);
    }
    return { folder, commit, files: [...files] };
  }

  /**
   * Calls `work` with a temporary folder of the given files, whose contents must be in the cache; then removes the
   * folder.
   */
  async withFiles<T>(files: readonly HubFile[], work: (folder: string) => Promise<T>): Promise<T> {
    const folder = join(this.own, `.look-${uniqueSuffix()}`);
    try {
      await mkdir(folder, { recursive: true });
      for (const { name, etag } of files) await linkOrCopy(this.blob(etag), join(folder, name));
      return await work(folder);
    } catch (error) {
      throw (error as NodeJS.ErrnoException).syscall === undefined ? error : storeError('make', folder, error);
    } finally {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /**
   * Returns a revision that other tools downloaded into the cache: the commit, the folder, the files, and the paths of
   * the files' contents. Returns null if no other tool downloaded this revision.
   */
  async otherSnapshot(
    revision: string,
  ): Promise<{ commit: string; folder: string; files: HubFile[]; sources: string[] } | null> {
    const commit = isCommit(revision) ? revision : await commitIn(join(this.root, 'refs', ...revision.split('/')));
    if (commit === null) return null;
    const folder = join(this.root, 'snapshots', commit);
    const files: HubFile[] = [];
    const sources: string[] = [];
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      const path = await realpath(join(folder, entry.name)).catch(() => null);
      const found = path === null ? undefined : await stat(path);
      if (path === null || !found?.isFile()) continue;
      files.push({ name: entry.name, bytes: found.size, etag: basename(path) });
      sources.push(path);
    }
    return files.length === 0 ? null : { commit, folder, files, sources };
  }

  /** Moves a complete, fsynced file to its final name in blobs/. */
  async keepBlob(file: string, etag: string): Promise<void> {
    try {
      await rename(file, this.blob(etag));
      await syncFolder(join(this.root, 'blobs'));
    } catch (error) {
      throw storeError('write', this.blob(etag), error);
    }
  }
}

const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);

async function commitIn(file: string): Promise<string | null> {
  const text = (await readText(file).catch(() => '')).trim();
  return isCommit(text) ? text : null;
}

async function linkOrCopy(source: string, file: string): Promise<void> {
  const content = await realpath(source);
  await link(content, file)
    .catch(() => symlink(content, file))
    .catch(() => copyFile(content, file, constants.COPYFILE_FICLONE));
}
