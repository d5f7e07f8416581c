// The hub cache on disk, shared with Hugging Face's own tools: <cache>/models--organisation--name/blobs/<etag> holds
// file contents under the hub's name for them. The subfolder `ragen/` belongs to this trainer: `<commit>/` is a model
// folder that appears only when complete (links to blobs, and download.json with every size), `refs/<revision>` stores
// the commit of a revision when it was fetched, and `partial/` holds unfinished downloads. Location: HF_HUB_CACHE,
// HF_HOME, XDG_CACHE_HOME.
import { createHash, randomBytes, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, readdir, realpath, rename, rm, stat, symlink, mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { getHFHubCachePath, getRepoFolderName } from '@huggingface/hub';
import { z } from 'zod';
import { jsonOrNothing } from '../../protocol/json';
import { isAlive, currentPidScope } from '../../protocol/process-identity';
import { replaceFile, storeError, syncFolder } from './files';
import type { HubFile } from './hub-client';
import { cachedChecksum } from './checksum-cache';
import { openRegular, readRegular } from './regular-file';

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

/** The files that a cached model folder was fetched with; empty for any other folder. */
export async function readDownloaded(folder: string): Promise<HubFile[]> {
  const text = await readText(join(folder, manifestName)).catch(() => '');
  return manifestSchema.safeParse(jsonOrNothing(text)).data?.files ?? [];
}

/** A hash for the checksum type of an etag: sha256, or git's sha1 of a blob, which includes its length. */
export function hashFor({ etag, bytes }: Pick<HubFile, 'etag' | 'bytes'>): Hash {
  return etag.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Whether the bytes of a file match its etag. @throws the signal's reason when it is aborted */
export async function matchesEtag(path: string, file: HubFile, signal?: AbortSignal): Promise<boolean> {
  return (await contentSum(path, file, signal)) === file.etag;
}

async function contentSum(path: string, file: HubFile, signal?: AbortSignal): Promise<string> {
  const hash = hashFor(file);
  signal?.throwIfAborted();
  const handle = await openRegular(path);
  for await (const chunk of handle.createReadStream()) {
    hash.update(chunk as Buffer);
    signal?.throwIfAborted();
  } // closes the handle, however it is left
  return hash.digest('hex');
}

/** Whether an etag is a checksum: in a cache without links, other tools store files under their own names. */
const isChecksum = (etag: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(etag);

/** Milliseconds without a write after which a partial file of another machine's process counts as abandoned. */
const foreignStaleMs = 120_000;

export class HubCache {
  /** The repository's folder in the cache. */
  readonly root: string;
  private readonly own: string;

  constructor(
    readonly repo: string,
    readonly cache = getHFHubCachePath(),
    type: 'model' | 'dataset' = 'model',
  ) {
    this.root = join(cache, getRepoFolderName({ type, name: repo }));
    this.own = join(this.root, 'ragen');
  }

  blob(etag: string): string {
    return join(this.root, 'blobs', etag);
  }

  async hasBlob({ etag, bytes }: HubFile): Promise<boolean> {
    return (await sizeOf(this.blob(etag))) === bytes;
  }

  /** Creates the folders for contents; must be called before any other write of this class. */
  async prepare(): Promise<void> {
    for (const folder of [join(this.root, 'blobs'), join(this.own, 'partial'), join(this.own, 'refs')])
      await mkdir(folder, { recursive: true }).catch((error: unknown) => {
        throw storeError('make', folder, error);
      });
  }

  /** The commit of a revision when it was last fetched; null if it was not. */
  async commitOf(revision: string): Promise<string | null> {
    if (isCommit(revision)) return revision;
    return commitIn(join(this.own, 'refs', encodeURIComponent(revision)));
  }

  async keepRevision(revision: string, commit: string): Promise<void> {
    if (!isCommit(revision)) await replaceFile(join(this.own, 'refs', encodeURIComponent(revision)), commit);
  }

  /**
   * The model folder of a commit, if it exists with every file at full size; else null. A part of a data set has a
   * folder name of its own.
   */
  async complete(commit: string): Promise<CachedModel | null> {
    const folder = join(this.own, commit);
    try {
      const { files } = manifestSchema.parse(JSON.parse(await readText(join(folder, manifestName))));
      const sizes = await Promise.all(files.map(({ name }) => sizeOf(join(folder, name))));
      return files.every(({ bytes }, i) => sizes[i] === bytes) ? { folder, commit, files } : null;
    } catch {
      return null; // missing or damaged: it is built again
    }
  }

  /**
   * The first file of a model folder whose content does not match its etag; undefined if all match. A file is read on
   * its first check and after a change. Throws the signal's reason when it is aborted.
   */
  async damagedFile({ folder, files }: CachedModel, signal?: AbortSignal): Promise<HubFile | undefined> {
    for (const file of files) {
      if (!(await isSound(join(folder, file.name), file, signal))) return file;
    }
    return undefined;
  }

  /**
   * Whether a file's content is here and matches its etag; content that does not match is removed, so that it is
   * fetched again.
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

  /** Removes a model folder with a damaged file, and the content if it is damaged too, so that it is fetched again. */
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
   * one. Files are hard links, since onnxruntime does not map a file through a symbolic link that leads out of its
   * folder; on file systems without hard links they are symbolic links or copies.
   * @param sources path of each file's content
   */
  async assemble(commit: string, files: readonly HubFile[], sources: readonly string[]): Promise<CachedModel> {
    const folder = join(this.own, commit);
    const made = join(this.own, `.${commit}-${unique()}`);
    try {
      await mkdir(made, { recursive: true });
      for (const [i, { name }] of files.entries()) {
        await mkdir(dirname(join(made, name)), { recursive: true });
        await bring(sources[i], join(made, name));
      }
      await replaceFile(
        join(made, manifestName),
        `${JSON.stringify({ repo: this.repo, commit, files: files.map(({ name, bytes, etag }) => ({ name, bytes, etag })) }, null, 1)}\n`,
      );
      await rename(made, folder).catch(async () => {
        // Another process was faster, or the existing folder is damaged.
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

  /** Calls `work` with a temporary folder of these files, whose contents must be here; removes it afterwards. */
  async withFiles<T>(files: readonly HubFile[], work: (folder: string) => Promise<T>): Promise<T> {
    const folder = join(this.own, `.look-${unique()}`);
    try {
      await mkdir(folder, { recursive: true });
      for (const { name, etag } of files) await bring(this.blob(etag), join(folder, name));
      return await work(folder);
    } catch (error) {
      throw (error as NodeJS.ErrnoException).syscall === undefined ? error : storeError('make', folder, error);
    } finally {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /**
   * What other tools fetched of a revision: the commit, its files and the paths of their contents. Null if there is
   * nothing.
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

  /**
   * Claims the partial content of an etag or begins a new one: a file that only this process writes, named after host
   * and process. While another living process downloads it, returns that process's file instead.
   */
  async claimPartial(etag: string): Promise<{ file: string } | { busyWith: string }> {
    const folder = join(this.own, 'partial');
    const mine = join(folder, `${etag}.${thisHost}.${process.pid}.${unique()}`);
    const names = (await readdir(folder)).filter(name => name.split('.')[0] === etag);
    const sized: { name: string; size: number }[] = [];
    for (const name of names) {
      const file = join(folder, name);
      if (await isWritten(file)) return { busyWith: file };
      sized.push({ name, size: (await sizeOf(file)) ?? 0 });
    }
    for (const { name } of sized.sort((a, b) => b.size - a.size)) {
      try {
        await rename(join(folder, name), mine); // of two processes, one succeeds
        return { file: mine };
      } catch {
        continue;
      }
    }
    return { file: mine };
  }

  /** Bytes of these contents that are partially downloaded. */
  async partialBytes(files: readonly HubFile[]): Promise<number> {
    const folder = join(this.own, 'partial');
    const names = (await readdir(folder)).filter(name => files.some(({ etag }) => etag === name.split('.')[0]));
    const sizes = await Promise.all(names.map(name => sizeOf(join(folder, name))));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }

  /** Leaves partial content for later processes to reuse. */
  async releasePartial(file: string, etag: string): Promise<void> {
    await rename(file, join(this.own, 'partial', etag)).catch(() => undefined);
  }

  /** Moves complete, durable content into place. */
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

/** Bytes of a file; null if there is none. */
export async function sizeOf(file: string): Promise<number | null> {
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? found.size : null;
}

/** The scope of process ids, as part of file names. */
export const thisHost = encodeURIComponent(
  [currentPidScope.host, currentPidScope.pid_namespace].filter(Boolean).join('~'),
);

/** Whether a living process writes this partial content, judged by its name <etag>.<host>.<pid>.<hex>. */
async function isWritten(file: string): Promise<boolean> {
  const parts = basename(file).split('.');
  if (parts.length < 4) return false;
  const pid = Number(parts.at(-2));
  const host = parts.slice(1, -2).join('.');
  if (host === thisHost) return isAlive(pid);
  const touched = (await stat(file).catch(() => null))?.mtimeMs ?? 0;
  return Math.abs(Date.now() - touched) < foreignStaleMs;
}

async function commitIn(file: string): Promise<string | null> {
  const text = (await readText(file).catch(() => '')).trim();
  return isCommit(text) ? text : null;
}

async function bring(source: string, file: string): Promise<void> {
  const content = await realpath(source);
  await link(content, file)
    .catch(() => symlink(content, file))
    .catch(() => copyFile(content, file, constants.COPYFILE_FICLONE));
}

/** Makes a name unique; it never appears in results. */
const unique = (): string => randomBytes(4).toString('hex');

/**
 * Whether a file's content matches its etag, if that is a checksum. It is read on its first check and after a change.
 */
async function isSound(path: string, file: HubFile, signal?: AbortSignal): Promise<boolean> {
  if (!isChecksum(file.etag)) return true;
  const kind = file.etag.length === 64 ? 'sha256' : 'git';
  const sum = await cachedChecksum(path, kind, () => contentSum(path, file, signal)).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw storeError('read', path, error);
  });
  return sum === file.etag;
}
