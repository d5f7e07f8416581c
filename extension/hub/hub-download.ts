// Downloads one hub file into the cache: resumes an earlier attempt, verifies the content against its etag, and fsyncs
// the file before moving it to its final name. An interrupted download is retried from its current offset. Partial
// content remains on disk when the process ends. p-retry is not used, because it cannot restart its count of attempts
// when new bytes arrive. The number of attempts is `mostTries` in hub-client.ts; the first pause is `retryMs` in
// hub-call.ts.
import type { Hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { UserError } from '../common/user-error';
import { fileSystem, storeError } from '../node/files';
import type { FileSystem } from '../node/files';
import type { HubCache } from './hub-cache';
import { HubInterrupted, HubRangeRefused } from './hub-call';
import type { HubModel } from './hub-call';
import { mostTries, pause } from './hub-client';
import type { HubClient, HubFile } from './hub-client';
import { sizeOf, hashFor } from './content-checksum';

export interface FileDownload {
  client: HubClient;
  cache: HubCache;
  model: HubModel;
  commit: string;
  /** Receives the number of bytes on disk; the number decreases if the download restarts. */
  onBytes: (here: number) => void;
  signal?: AbortSignal;
  fs?: FileSystem;
}

/** Milliseconds between two checks whether another process has finished downloading the same file. */
const lookMs = 500;
/** Size of a write in bytes; network chunks are combined up to this size. */
const writeBytes = 1 << 20;
const readBytes = 1 << 22;

/**
 * Downloads a file's content into the cache unless the cache contains it. `HubCache.prepare` must have been called
 * before. Throws a UserError that names the file and the remedy; on abort, throws the signal's reason. Partial content
 * is kept in both cases.
 */
export async function downloadFile(file: HubFile, download: FileDownload): Promise<void> {
  const { cache, signal, onBytes, client } = download;
  for (;;) {
    signal?.throwIfAborted();
    if (await cache.hasSoundBlob(file, signal)) return onBytes(file.bytes);
    const claim = await cache.partials.claim(file.etag);
    if ('busyWith' in claim) {
      onBytes((await sizeOf(claim.busyWith)) ?? 0);
      await pause(Math.min(lookMs, client.options.retryMs), signal);
      continue;
    }
    if (await cache.hasSoundBlob(file, signal)) {
      await rm(claim.file, { force: true }); // another process finished the download
      continue;
    }
    const { fs = fileSystem } = download;
    let partial: PartialFile | undefined;
    try {
      partial = await PartialFile.open(claim.file, file, fs);
      await fill(partial, file, download);
      await partial.close();
      return await cache.keepBlob(claim.file, file.etag);
    } catch (error) {
      await partial?.close().catch(() => undefined);
      if (partial?.bytes) await cache.partials.release(claim.file, file.etag);
      else await rm(claim.file, { force: true }).catch(() => undefined);
      throw error;
    }
  }
}

/** Downloads until the partial file is complete, verified and fsynced. */
async function fill(
  partial: PartialFile,
  file: HubFile,
  { client, model, commit, onBytes, signal }: FileDownload,
): Promise<void> {
  let [tries, damaged] = [0, false];
  for (;;) {
    const before = partial.bytes;
    onBytes(before);
    try {
      if (before < file.bytes)
        for await (const chunk of client.read(model, commit, file, before, signal)) {
          await partial.append(chunk);
          onBytes(partial.bytes);
          if (partial.bytes > file.bytes) break;
        }
      await partial.flush();
      if (partial.bytes < file.bytes) throw endedEarly(file, model, partial.bytes);
      if (partial.bytes === file.bytes && partial.matches()) return await partial.sync();
      // Restart once: content from an earlier attempt may be damaged.
      await partial.restart();
      if (damaged)
        throw new UserError(
          `hub: ${file.name} of ${model.repo} arrived damaged twice (its hash is not ${file.etag}): try again later, and check whether a proxy modifies downloads`,
        );
      damaged = true;
    } catch (error) {
      await partial.flush();
      if (error instanceof HubRangeRefused && before > 0) {
        await partial.restart();
        continue;
      }
      if (error instanceof HubRangeRefused)
        throw new UserError(
          `hub: ${client.options.endpoint} refuses to send ${file.name} of ${model.repo} (${error.message}): try again later`,
        );
      if (!(error instanceof HubInterrupted)) throw error;
      tries = partial.bytes > before ? 1 : tries + 1;
      if (tries >= mostTries) throw new UserError(error.message, { cause: error });
      await pause(Math.max(error.waitMs, client.options.retryMs * 2 ** (tries - 1)), signal);
    }
  }
}

const endedEarly = ({ name, bytes }: HubFile, { repo }: HubModel, here: number): HubInterrupted =>
  new HubInterrupted(
    `hub: the download of ${name} of ${repo} ended after ${here} of ${bytes} bytes`,
    'check the network and try again; the downloaded part is kept',
  );

/** Partial content of a file, with the running checksum of its bytes. */
class PartialFile {
  private waiting: Uint8Array[] = [];
  private waitingBytes = 0;
  private written = 0;
  private hash: Hash;
  private closed = false;

  private constructor(
    private readonly path: string,
    private readonly file: HubFile,
    private readonly handle: Awaited<ReturnType<FileSystem['open']>>,
  ) {
    this.hash = hashFor(file);
  }

  /** Opens or creates the file; reads existing content once to compute its checksum. */
  static async open(path: string, file: HubFile, fs: FileSystem): Promise<PartialFile> {
    const begun = (await sizeOf(path)) !== null;
    const handle = await fs.open(path, begun ? 'r+' : 'wx+', 0o644).catch((error: unknown) => {
      throw storeError('write', path, error);
    });
    const partial = new PartialFile(path, file, handle);
    try {
      await partial.guarded(() => partial.readAll());
      return partial;
    } catch (error) {
      await partial.close();
      throw error;
    }
  }

  /** Adds the existing content to the checksum. */
  private async readAll(): Promise<void> {
    const { size } = await this.handle.stat();
    if (size > this.file.bytes) return this.restart();
    const buffer = Buffer.allocUnsafe(Math.min(readBytes, size));
    while (this.written < size) {
      const { bytesRead } = await this.handle.read(buffer, 0, buffer.length, this.written);
      if (bytesRead === 0) break;
      this.hash.update(buffer.subarray(0, bytesRead));
      this.written += bytesRead;
    }
  }

  /** Number of bytes received, including bytes that are not written yet. */
  get bytes(): number {
    return this.written + this.waitingBytes;
  }

  async append(chunk: Uint8Array): Promise<void> {
    this.waiting.push(chunk);
    this.waitingBytes += chunk.length;
    if (this.waitingBytes >= writeBytes) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.waitingBytes === 0) return;
    const block = Buffer.concat(this.waiting);
    [this.waiting, this.waitingBytes] = [[], 0];
    await this.guarded(async () => {
      for (let from = 0; from < block.length;) {
        const { bytesWritten } = await this.handle.write(block, from, block.length - from, this.written);
        this.hash.update(block.subarray(from, from + bytesWritten));
        from += bytesWritten;
        this.written += bytesWritten;
      }
    });
  }

  /** Whether the content matches its etag. Called once, when the download is complete. */
  matches(): boolean {
    return this.hash.copy().digest('hex') === this.file.etag;
  }

  /** Discards the content. */
  async restart(): Promise<void> {
    [this.waiting, this.waitingBytes, this.written] = [[], 0, 0];
    this.hash = hashFor(this.file);
    await this.guarded(() => this.handle.truncate(0));
  }

  sync(): Promise<void> {
    return this.guarded(() => this.handle.sync());
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.handle.close();
  }

  private async guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw storeError('write', this.path, error);
    }
  }
}
