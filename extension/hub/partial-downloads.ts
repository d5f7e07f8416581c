// Unfinished downloads of a repository's contents. A partial file is written by one process, whose host and id its name
// holds; when that process has ended, the next one continues it.
import { randomBytes } from 'node:crypto';
import { readdir, rename, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isAlive, currentPidScope } from '../node/process-identity';
import type { HubFile } from './hub-client';
import { sizeOf } from './content-checksum';

/** Milliseconds without a write after which a partial file of another machine's process counts as abandoned. */
const foreignStaleMs = 120_000;

export class PartialDownloads {
  constructor(readonly folder: string) {}

  /**
   * Claims the partial content of an etag or begins a new one: a file that only this process writes, named after host
   * and process. While another living process downloads it, returns that process's file instead.
   */
  async claim(etag: string): Promise<{ file: string } | { busyWith: string }> {
    const { folder } = this;
    const mine = join(folder, `${etag}.${thisHost}.${process.pid}.${uniqueSuffix()}`);
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
  async bytes(files: readonly HubFile[]): Promise<number> {
    const { folder } = this;
    const names = (await readdir(folder)).filter(name => files.some(({ etag }) => etag === name.split('.')[0]));
    const sizes = await Promise.all(names.map(name => sizeOf(join(folder, name))));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }

  /** Leaves partial content for later processes to reuse. */
  async release(file: string, etag: string): Promise<void> {
    await rename(file, join(this.folder, etag)).catch(() => undefined);
  }
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

/** Makes a name unique; it never appears in results. */
export const uniqueSuffix = (): string => randomBytes(4).toString('hex');
