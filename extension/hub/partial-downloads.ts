// Unfinished downloads of a repository's contents. Only one process at a time writes a partial file, and the file's
// name contains the host and pid of this writer. After the writer has ended, another process may continue the file.
import { randomBytes } from 'node:crypto';
import { readdir, rename, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isAlive, currentPidScope } from '../node/process-identity';
import type { HubFile } from './hub-client';
import { sizeOf } from './content-checksum';

/** Milliseconds since the last write after which a partial file of another machine is considered abandoned. */
const foreignStaleMs = 120_000;

export class PartialDownloads {
  constructor(readonly folder: string) {}

  /**
   * Claims a download, so that only this process continues it. `etag` is the etag of the content. Returns the path of
   * the partial file, whose name contains this process's host and pid. An abandoned partial file is renamed to this
   * path. If another living process is downloading the content, returns the file of that process instead.
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
        await rename(join(folder, name), mine); // if several processes try, only one succeeds
        return { file: mine };
      } catch {
        continue;
      }
    }
    return { file: mine };
  }

  /** Returns the number of bytes in the partial downloads of the given files. */
  async bytes(files: readonly HubFile[]): Promise<number> {
    const { folder } = this;
    const names = (await readdir(folder)).filter(name => files.some(({ etag }) => etag === name.split('.')[0]));
    const sizes = await Promise.all(names.map(name => sizeOf(join(folder, name))));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }

  /** Removes host and pid from the name of a partial file, so that another process can claim it. */
  async release(file: string, etag: string): Promise<void> {
    await rename(file, join(this.folder, etag)).catch(() => undefined);
  }
}

/**
 * The host and the PID namespace of this process, encoded for file names. A pid identifies a process only within one
 * host and one PID namespace.
 */
export const thisHost = encodeURIComponent(
  [currentPidScope.host, currentPidScope.pid_namespace].filter(Boolean).join('~'),
);

/** Whether a living process writes this partial file, according to its name <etag>.<host>.<pid>.<hex>. */
async function isWritten(file: string): Promise<boolean> {
  const parts = basename(file).split('.');
  if (parts.length < 4) return false;
  const pid = Number(parts.at(-2));
  const host = parts.slice(1, -2).join('.');
  if (host === thisHost) return isAlive(pid);
  const touched = (await stat(file).catch(() => null))?.mtimeMs ?? 0;
  return Math.abs(Date.now() - touched) < foreignStaleMs;
}

/** Returns a random suffix that makes a temporary name unique. */
export const uniqueSuffix = (): string => randomBytes(4).toString('hex');
